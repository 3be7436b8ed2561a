// What this machine has left: processors, memory, the disk that holds the runs. Absent numbers are no error.
import { readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { cpus, freemem, totalmem } from "node:os";
import { dirname } from "node:path";

export interface CpuTimes {
  readonly busy: number;
  readonly all: number;
}

export function cpuTimes(): CpuTimes {
  let busy = 0;
  let all = 0;
  for (const { times } of cpus()) {
    const total = times.user + times.nice + times.sys + times.idle + times.irq;
    all += total;
    busy += total - times.idle;
  }
  return { busy, all };
}

/** 0…1 over all processors between two looks. */
export function cpuUse(before: CpuTimes, after: CpuTimes): number {
  const passed = after.all - before.all;
  return passed <= 0 ? 0 : Math.min(1, Math.max(0, (after.busy - before.busy) / passed));
}

/** Bytes; what can be had without swapping, where the system tells. */
export function memoryLeft(): { readonly total: number; readonly available: number } {
  try {
    const found = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"));
    if (found !== null) return { total: totalmem(), available: Number(found[1]) * 1024 };
  } catch {
    // Another system.
  }
  return { total: totalmem(), available: freemem() };
}

/** Of the file system that a path lies on, or would lie on; null where it does not tell. */
export async function diskLeft(path: string): Promise<{ path: string; total: number; free: number } | null> {
  try {
    const { blocks, bavail, bsize } = await statfs(path);
    return { path, total: blocks * bsize, free: bavail * bsize };
  } catch {
    const above = dirname(path);
    return above === path ? null : await diskLeft(above);
  }
}
