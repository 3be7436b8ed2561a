// Tells one process from a later one with the same number: by the moment it started. Nothing is signalled, and no lock believed,
// on a process number alone.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Numbers of processes begin anew with each boot, and so do the ticks that /proc counts. */
function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/** Field 22 of /proc/PID/stat, in ticks since boot; null for a process that is gone or has ended and waits for its parent. */
function startTicks(pid: number): string | null {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name may hold anything, blanks and brackets too; it ends at the last bracket.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? null : (fields[19] ?? null);
}

/**
 * When a living process started, as a text that no other process of this machine has together with its number; null when there is
 * no such process.
 */
export function startOfProcess(pid: number): string | null {
  if (!Number.isInteger(pid) || pid <= 0) return null;
  if (process.platform === "linux") {
    try {
      const ticks = startTicks(pid);
      return ticks === null ? null : `${bootId()}:${ticks}`;
    } catch {
      return null;
    }
  }
  try {
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim() || null;
  } catch {
    return null;
  }
}

export function isSameProcess(pid: number, start: string): boolean {
  return startOfProcess(pid) === start;
}
