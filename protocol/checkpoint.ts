// What a checkpoint folder holds beside the engine's own files: the state of the loop, and the finish mark that lists every
// file with size and hash. A folder without a finish mark that agrees with its files is not a checkpoint.
import { z } from "zod";

const count = z.int().min(0);

/** Everything the loop needs to go on with the same data order and random streams (which are counted, not stored). */
export const loopStateSchema = z.strictObject({
  /** Steps taken, skipped ones included. */
  step: count,
  /** Steps that changed the weights; the schedule counts these. */
  applied: count,
  /** Window that the next step belongs to, and how many steps of it were taken. */
  window: count,
  stepOfWindow: count,
  /** Where the data order goes on: the epoch and how many of its tasks were scheduled. */
  epoch: count,
  taskPosition: count,
  seed: count,
  policyVersion: count,
  /** null: no critic. */
  criticVersion: count.nullable(),
});
export type LoopState = z.infer<typeof loopStateSchema>;

export const checkpointFileSchema = z.strictObject({
  /** Relative to the checkpoint's folder, with forward slashes. */
  path: z.string().min(1),
  bytes: count,
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

export const finishMarkSchema = z.strictObject({
  format: z.literal(1),
  step: count,
  files: z.array(checkpointFileSchema),
});
export type FinishMark = z.infer<typeof finishMarkSchema>;
