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
import { readJournal } from "./journal.ts";
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
  if (checkpoint !== null) await requireRecords(folder, checkpoint.step, store);
  const valid = await store.steps.count({ run: folder.run });
  // Without a checkpoint step 0 is done again too.
  await resumeAfter(store, blobs, folder.run, checkpoint === null ? -1 : state.step, attempt);
  const left = await store.steps.count({ run: folder.run });
  await closeRecords(folder, attempt, store);
  return { state, checkpoint, skipped, voidedSteps: valid.count - left.count };
}

/**
 * A step is in the store, on the disk, before its checkpoint is written. A checkpoint without it stands beside the records of
 * another run, or of none: going on would leave steps without the tokens they were trained on.
 */
async function requireRecords(folder: RunFolder, step: number, store: RecordStore): Promise<void> {
  if ((await store.steps.count({ run: folder.run, step })).count > 0) return;
  throw new RollscopeError(
    "RUN_FOLDER_INVALID",
    `The newest checkpoint is of step ${step}, and ${folder.records} knows no such step of ${folder.run}.`,
    {
      next: "Put the run's record store back; without it the checkpoint can be used as the model of a new run only.",
      at: { path: folder.records, step },
    },
  );
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

/** @throws RUN_NOT_RESUMABLE when an attempt ended with the run complete */
export function requireUnfinished(folder: RunFolder): void {
  const end = readJournal(folder.journal).events.find(
    (event) => event.type === "ended" && event.status === "completed",
  );
  if (end?.type !== "ended") return;
  throw new RollscopeError(
    "RUN_NOT_RESUMABLE",
    `The run ${folder.run} is complete: it has taken its ${end.step} steps.`,
    {
      next: "Start a new run, with training.steps raised if it should train longer.",
      at: { run: folder.run, step: end.step },
    },
  );
}
