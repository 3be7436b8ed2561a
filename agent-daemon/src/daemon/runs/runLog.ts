// The end of a run's log, which the helper writes into the run's folder and turns over when it is full.
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import type { DaemonResult } from "../../../../protocol/daemonMethods.ts";
import type { RunFolder } from "../../runs/runFolder.ts";

export const runLogFile = (folder: Pick<RunFolder, "path">) => join(folder.path, "run.log");

/**
 * At most so many bytes, beginning with a whole line where there is an end of one: an escape code that was cut in two would be read as
 * text. The file before goes first where the log has just begun anew.
 */
export function readRunLog(folder: Pick<RunFolder, "path">, bytes: number): DaemonResult<"run/log"> {
  const file = runLogFile(folder);
  const now = tailOf(file, bytes);
  const before =
    now.bytes.length < bytes
      ? tailOf(`${file}.1`, bytes - now.bytes.length)
      : { bytes: Buffer.alloc(0), all: !existsSync(`${file}.1`) };
  const joined = Buffer.concat([before.bytes, now.bytes]);
  const truncated = !(now.all && before.all);
  let start = truncated ? joined.indexOf(0x0a) + 1 : 0;
  if (start === joined.length) start = 0;
  while (start < joined.length && (joined[start]! & 0xc0) === 0x80) start += 1;
  return { text: joined.subarray(start).toString("utf8"), truncated };
}

function tailOf(file: string, bytes: number): { bytes: Buffer; all: boolean } {
  let descriptor: number;
  try {
    descriptor = openSync(file, "r");
  } catch {
    return { bytes: Buffer.alloc(0), all: true };
  }
  try {
    const { size } = fstatSync(descriptor);
    const buffer = Buffer.alloc(Math.min(size, bytes));
    const read = readSync(descriptor, buffer, 0, buffer.length, size - buffer.length);
    return { bytes: buffer.subarray(0, read), all: buffer.length === size };
  } finally {
    closeSync(descriptor);
  }
}
