// Checkpoints of a run, whole or not at all: written under another name, synced, given a finish mark, renamed. A folder under
// its final name is never half of one, and an old one is never deleted before a newer one is whole.
import { mkdir, open, readdir, rename, rm, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { FinishMark, LoopState } from "../../../protocol/checkpoint.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { TrainingEngine } from "../engines/interface.ts";
import {
  checkpointName,
  checkpointSteps,
  filesBelow,
  finishMarkFile,
  inspectCheckpoint,
  sha256Of,
  stateFile,
  syncToDisk,
} from "./checkpointFolder.ts";

/** What is saved and loaded: the part of an engine that keeps weights, optimizer state and version. */
export type Saved = Pick<TrainingEngine, "save" | "load">;

export interface TrainedEngines {
  readonly policy: Saved;
  readonly critic?: Saved | undefined;
}

export interface Checkpoint {
  readonly step: number;
  readonly path: string;
  readonly state: LoopState;
}

export interface SkippedCheckpoint {
  readonly step: number;
  readonly path: string;
  /** A half-sentence about the folder: "it has no finish mark …". */
  readonly reason: string;
}

const partialPrefix = ".partial-";
const replacedPrefix = ".replaced-";

/**
 * Writes `dir/step_N`; a folder of that name, whole or not, is replaced only when the new one is whole.
 * @throws CHECKPOINT_DISK_FULL or CHECKPOINT_WRITE_FAILED; nothing half is left then, and older checkpoints are as before
 */
export async function writeCheckpoint(dir: string, state: LoopState, engines: TrainedEngines): Promise<Checkpoint> {
  const name = checkpointName(state.step);
  const path = join(dir, name);
  const partial = join(dir, `${partialPrefix}${name}`);
  try {
    await mkdir(dir, { recursive: true });
    await tidy(dir);
    await mkdir(partial);
    await engines.policy.save(join(partial, "policy"), "full");
    await engines.critic?.save(join(partial, "critic"), "full");
    await writeSynced(join(partial, stateFile), state);
    await writeSynced(join(partial, finishMarkFile), await finishMark(partial, state.step));
    await syncToDisk(partial);
    await replace(dir, name);
    await syncToDisk(dir);
  } catch (error) {
    await tidy(dir).catch(() => undefined);
    throw await writeError(error, path, dir);
  }
  return { step: state.step, path, state };
}

/** The newest whole checkpoint, and the newer folders that are not, with reasons. Verifies every hash. */
export async function latestWhole(
  dir: string,
): Promise<{ readonly checkpoint: Checkpoint | null; readonly skipped: readonly SkippedCheckpoint[] }> {
  await restoreReplaced(dir);
  const skipped: SkippedCheckpoint[] = [];
  for (const step of await checkpointSteps(dir)) {
    const path = join(dir, checkpointName(step));
    const found = await inspectCheckpoint(path, step, true);
    if (found.kind === "whole") return { checkpoint: { step, path, state: found.state }, skipped };
    skipped.push({ step, path, reason: found.reason });
  }
  return { checkpoint: null, skipped };
}

/**
 * Loads the engines from a checkpoint.
 * @throws CHECKPOINT_INVALID when it has no part for an engine that the run has, or the engine refuses it
 */
export async function loadCheckpoint(checkpoint: Checkpoint, engines: TrainedEngines): Promise<LoopState> {
  try {
    await engines.policy.load(join(checkpoint.path, "policy"));
    await engines.critic?.load(join(checkpoint.path, "critic"));
  } catch (error) {
    throw new RollscopeError("CHECKPOINT_INVALID", `Checkpoint ${checkpoint.path} cannot be loaded: ${text(error)}`, {
      next: "Resume with the model and recipe that wrote it, or remove the folder to resume from an older one.",
      cause: error,
      at: { path: checkpoint.path },
    });
  }
  return checkpoint.state;
}

/**
 * Deletes whole checkpoints beyond the newest `keepLast`, and broken ones older than the newest whole one. Without a whole
 * one nothing is deleted. Returns the steps whose folders went.
 */
export async function pruneCheckpoints(dir: string, keepLast: number): Promise<number[]> {
  const deleted: number[] = [];
  let whole = 0;
  for (const step of await checkpointSteps(dir)) {
    const path = join(dir, checkpointName(step));
    const found = await inspectCheckpoint(path, step, false);
    if (found.kind === "whole") whole += 1;
    if (whole === 0 || (found.kind === "whole" && whole <= keepLast)) continue;
    const gone = join(dir, `${partialPrefix}deleted-${step}`);
    await rename(path, gone);
    await rm(gone, { recursive: true, force: true });
    deleted.push(step);
  }
  return deleted;
}

async function finishMark(folder: string, step: number): Promise<FinishMark> {
  const files: FinishMark["files"] = [];
  const folders = new Set<string>();
  for (const path of await filesBelow(folder)) {
    const file = join(folder, path);
    await syncToDisk(file);
    folders.add(dirname(file));
    const handle = await open(file, "r");
    const { size } = await handle.stat().finally(() => handle.close());
    files.push({ path, bytes: size, sha256: await sha256Of(file) });
  }
  for (const inner of folders) await syncToDisk(inner);
  return { format: 1, step, files };
}

async function writeSynced(path: string, value: unknown): Promise<void> {
  const handle = await open(path, "wx");
  try {
    await handle.writeFile(`${JSON.stringify(value, null, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Puts the finished partial folder under its final name. A crash between the renames is undone by `restoreReplaced`. */
async function replace(dir: string, name: string): Promise<void> {
  const path = join(dir, name);
  const old = join(dir, `${replacedPrefix}${name}`);
  const replaced = await renameIfThere(path, old);
  await rename(join(dir, `${partialPrefix}${name}`), path);
  if (replaced) await rm(old, { recursive: true, force: true });
}

async function renameIfThere(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

/** Removes what a killed writer left. There is one writer a run, so nobody else's work is touched. */
async function tidy(dir: string): Promise<void> {
  await restoreReplaced(dir);
  for (const entry of await readdir(dir)) {
    if (entry.startsWith(partialPrefix)) await rm(join(dir, entry), { recursive: true, force: true });
  }
}

async function restoreReplaced(dir: string): Promise<void> {
  const entries = await readdir(dir).catch((): string[] => []);
  for (const entry of entries.filter((name) => name.startsWith(replacedPrefix))) {
    const name = entry.slice(replacedPrefix.length);
    if (entries.includes(name)) await rm(join(dir, entry), { recursive: true, force: true });
    else await rename(join(dir, entry), join(dir, name));
  }
}

async function writeError(error: unknown, path: string, dir: string): Promise<RollscopeError> {
  const full = isDiskFull(error) || (await freeBytes(dir)) === 0;
  return new RollscopeError(
    full ? "CHECKPOINT_DISK_FULL" : "CHECKPOINT_WRITE_FAILED",
    full
      ? `The disk is full: checkpoint ${path} was not written. Older checkpoints are untouched.`
      : `Checkpoint ${path} was not written: ${text(error)}. Older checkpoints are untouched.`,
    {
      next: full
        ? `Free space on the disk of ${dir} (or lower training.checkpoint.keepLast), then resume the run.`
        : `Make ${dir} writable, then resume the run.`,
      cause: error,
      at: { path },
    },
  );
}

function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ["ENOSPC", "EDQUOT"].includes(codeOf(error) ?? "") || isDiskFull(error.cause);
}

async function freeBytes(dir: string): Promise<number | null> {
  return statfs(dir).then(
    ({ bavail }) => bavail,
    () => null,
  );
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null)?.code;
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
