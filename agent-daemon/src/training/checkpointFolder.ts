// One checkpoint folder on disk: its name, its finish mark, and whether it is whole. It never changes what it reads.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir, readFile, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { type FinishMark, finishMarkSchema, type LoopState, loopStateSchema } from "../../../protocol/checkpoint.ts";

export const finishMarkFile = "checkpoint.json";
export const stateFile = "state.json";

export function checkpointName(step: number): string {
  return `step_${step}`;
}

/** Steps of the folders in `dir` that are named like checkpoints, newest first. */
export async function checkpointSteps(dir: string): Promise<number[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  return entries
    .flatMap((entry) => (entry.isDirectory() ? [/^step_(\d+)$/.exec(entry.name)?.[1]] : []))
    .flatMap((digits) => (digits === undefined ? [] : [Number(digits)]))
    .sort((a, b) => b - a);
}

/** All files below a folder, as relative paths with forward slashes, in order. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort();
}

export async function sha256Of(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest("hex");
}

/** Makes a file's bytes, or a folder's entries, survive a loss of power. */
export async function syncToDisk(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export type Wholeness =
  | { readonly kind: "whole"; readonly mark: FinishMark; readonly state: LoopState }
  | { readonly kind: "broken"; readonly reason: string };

const broken = (reason: string): Wholeness => ({ kind: "broken", reason });

/** Whether a folder is a checkpoint of `step`: the finish mark agrees with every file. `hashes` false: sizes only. */
export async function inspectCheckpoint(folder: string, step: number, hashes: boolean): Promise<Wholeness> {
  const text = await readFile(join(folder, finishMarkFile), "utf8").catch(() => null);
  if (text === null) return broken(`it has no finish mark (${finishMarkFile}), so it was not written to its end`);
  const mark = finishMarkSchema.safeParse(parseJson(text));
  if (!mark.success) return broken(`its finish mark (${finishMarkFile}) is not valid`);
  if (mark.data.step !== step) return broken(`its finish mark is that of step ${mark.data.step}`);
  for (const { path, bytes, sha256 } of mark.data.files) {
    const file = join(folder, path);
    const size = await stat(file).then(
      (found) => found.size,
      () => null,
    );
    if (size === null) return broken(`${path} is missing`);
    if (size !== bytes) return broken(`${path} has ${size} bytes instead of ${bytes}`);
    if (hashes && (await sha256Of(file)) !== sha256)
      return broken(`the contents of ${path} are not those that were written`);
  }
  if (!mark.data.files.some(({ path }) => path === stateFile)) return broken(`${stateFile} is missing`);
  const state = loopStateSchema.safeParse(parseJson(await readFile(join(folder, stateFile), "utf8")));
  if (!state.success) return broken(`${stateFile} is not a state of the loop`);
  return { kind: "whole", mark: mark.data, state: state.data };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
