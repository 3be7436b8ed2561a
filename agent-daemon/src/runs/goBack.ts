// Takes a run back to its last whole checkpoint for a new attempt: engines loaded, later steps void, and what the earlier
// attempt left unfinished closed, so that the same tasks are sampled anew from the same place in the data.
import type { LoopState } from "../../../protocol/checkpoint.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { RecordStatus } from "../../../protocol/record.ts";
import type { BlobStore, RecordStore } from "../store/interface.ts";
import { resumeAfter } from "../store/ledger.ts";
import { allDocuments } from "../store/pages.ts";
import {
  type Checkpoint,
  latestWhole,
  loadCheckpoint,
  type SkippedCheckpoint,
  type TrainedEngines,
} from "../training/checkpoints.ts";
import type { RunFolder } from "./runFolder.ts";

export interface GoneBack {
  readonly state: LoopState;
  /** null: no checkpoint was whole, the run begins again with its initial weights. */
  readonly checkpoint: Checkpoint | null;
  readonly skipped: readonly SkippedCheckpoint[];
  readonly voidedSteps: number;
}

/** Before a record was handed to training. */
const unfinished: readonly RecordStatus[] = ["created", "running", "completed", "scoring", "scored", "ready"];

/**
 * @param initial the state of a run that has done nothing
 * @throws CHECKPOINT_INVALID, and what the store throws; calling it again after a crash inside completes it
 */
export async function goBack(
  folder: RunFolder,
  attempt: number,
  initial: LoopState,
  engines: TrainedEngines,
  { store, blobs }: { readonly store: RecordStore; readonly blobs: BlobStore },
): Promise<GoneBack> {
  const { checkpoint, skipped } = await latestWhole(folder.checkpoints);
  const state = checkpoint === null ? initial : await loadCheckpoint(checkpoint, engines);
  const valid = await store.steps.count({ run: folder.run });
  // Without a checkpoint step 0 is done again too.
  await resumeAfter(store, blobs, folder.run, checkpoint === null ? -1 : state.step, attempt);
  const left = await store.steps.count({ run: folder.run });
  await closeRecords(folder, attempt, store);
  return { state, checkpoint, skipped, voidedSteps: valid.count - left.count };
}

/** Records of earlier attempts that no committed step consumed are over; those that evaluated stay as they ended. */
async function closeRecords(folder: RunFolder, attempt: number, store: RecordStore): Promise<void> {
  const records = await allDocuments(store.records, { run: folder.run, status: unfinished });
  const open = records.filter(
    (record) =>
      record.attempt < attempt &&
      record.trainedCount === 0 &&
      !(record.split === "heldOut" && record.status === "scored"),
  );
  const results = await store.records.update(
    open.map((record) => ({
      id: record.id,
      set: {
        status: "abandoned" as const,
        error: record.error ?? {
          code: "SAMPLING_CANCELLED",
          message: `Attempt ${record.attempt} ended before a step consumed this record; attempt ${attempt} samples its task anew.`,
          call: null,
        },
      },
    })),
  );
  const refused = results.find((error) => error !== null);
  if (refused) throw refused;
}

/** @throws RUN_NOT_RESUMABLE when the run had reached its last step */
export function requireUnfinished(folder: RunFolder, state: LoopState, steps: number): void {
  if (state.step < steps) return;
  throw new RollscopeError("RUN_NOT_RESUMABLE", `The run ${folder.run} is complete: it has taken its ${steps} steps.`, {
    next: "Start a new run, with training.steps raised if it should train longer.",
    at: { run: folder.run, step: state.step },
  });
}
