// Opens what a run has written, for reading: its journal folded to a progress, its stores, its tokenizer. Never writes.
import { existsSync } from "node:fs";
import type { ControlState } from "../../../protocol/control.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { loadModelText, type ModelText } from "../engines/tokenizer/load.ts";
import { askCoordinator } from "../runs/controlClient.ts";
import { readRunEnvironment } from "../runs/environment.ts";
import { readJournal } from "../runs/journal.ts";
import type { RunFolder } from "../runs/runFolder.ts";
import { openFileBlobs } from "../store/fileBlobs.ts";
import type { BlobStore, RecordStore } from "../store/interface.ts";
import { openSqliteStore } from "../store/sqliteStore.ts";
import { foldEvent, noProgress, type RunProgress } from "./runProgress.ts";

export function progressOf(folder: RunFolder): RunProgress {
  return readJournal(folder.journal).events.reduce(foldEvent, noProgress);
}

/**
 * `running` and `paused` have a coordinator that answers; a run without one that never wrote its end has crashed. `unknown`: its
 * journal ends with an event that this version cannot read, which may have been the end.
 */
export type RunStatus = "running" | "paused" | "completed" | "stopped" | "failed" | "crashed" | "unknown";

export interface SeenRun {
  readonly progress: RunProgress;
  readonly status: RunStatus;
}

/** Reads the journal and asks the coordinator, if there is one. */
export async function seeRun(folder: RunFolder): Promise<SeenRun> {
  const state = await liveState(folder);
  const { events, endsUnreadable } = readJournal(folder.journal);
  const progress = events.reduce(foldEvent, noProgress);
  if (state !== null) return { progress, status: state.phase === "paused" ? "paused" : "running" };
  if (progress.ended !== null) return { progress, status: progress.ended.status };
  return { progress, status: endsUnreadable ? "unknown" : "crashed" };
}

async function liveState(folder: RunFolder): Promise<ControlState | null> {
  return existsSync(folder.control) ? await askCoordinator(folder, "status") : null;
}

export interface OpenRun {
  readonly store: RecordStore;
  readonly blobs: BlobStore;
  dispose(): Promise<void>;
}

export async function openStores(folder: RunFolder): Promise<OpenRun> {
  if (!existsSync(folder.records)) {
    throw new RollscopeError("RUN_FOLDER_INVALID", `The run ${folder.run} has no records yet.`, {
      next: "Wait until its first phase is over.",
      at: { path: folder.records },
    });
  }
  const store = await openSqliteStore(folder.records, { readOnly: true });
  return { store, blobs: await openFileBlobs(folder.blobs), dispose: () => store.dispose() };
}

/** The text side of the model that the run trains; null when its files are gone. */
export function modelTextOf(folder: RunFolder): ModelText | null {
  const path = readRunEnvironment(folder)?.model.path;
  return path === undefined || !existsSync(path) ? null : loadModelText(path);
}
