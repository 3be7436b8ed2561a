// One document per optimizer step: its metrics and the ledger of what it consumed. The insert of a step commits it. The
// plan of a step is written before it, so that after a crash one can tell what was meant to be consumed and was not.
import { z } from "zod";
import { blobHashSchema } from "./column.ts";

const id = z.string().min(1);
const count = z.int().min(0);
const attempt = z.int().min(1);
const time = z.number();

/** Metric by name. NaN and the infinities are values: a view shows the gap instead of hiding the step. */
export const metricsSchema = z.record(
  z.string().min(1),
  z.custom<number>((value) => typeof value === "number", "not a number"),
);
export type Metrics = z.infer<typeof metricsSchema>;

/** The unit of exactly-once: pass k of the step's window over a record. */
export const consumptionSchema = z.strictObject({ record: id, pass: count });
export type Consumption = z.infer<typeof consumptionSchema>;

export const ledgerEntrySchema = z.strictObject({
  record: id,
  pass: count,
  /** Calls and trainable tokens that the step used. */
  calls: count,
  tokens: count,
});
export type LedgerEntry = z.infer<typeof ledgerEntrySchema>;

/** Inline, or the hash of a blob that holds the same array as JSON and was written before. */
function inlineOrBlob<Item extends z.ZodType>(item: Item) {
  return z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("inline"), entries: z.array(item) }),
    z.strictObject({ kind: z.literal("blob"), hash: blobHashSchema, bytes: count, count }),
  ]);
}

export const planSchema = inlineOrBlob(consumptionSchema);
export const ledgerSchema = inlineOrBlob(ledgerEntrySchema);

/** What a step is going to consume. At most one plan per (run, step) is not void. */
export const planDocumentSchema = z.strictObject({
  id,
  run: id,
  attempt,
  step: count,
  window: count,
  plan: planSchema,
  planned: time,
  /** The attempt that went back before this step and made it void; null = it counts. */
  voidedBy: attempt.nullable(),
});
export type PlanDocument = z.infer<typeof planDocumentSchema>;

/** A skipped step (no trainable token, non-finite gradient) consumes its records and leaves the weights alone. */
export const stepOutcomeSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("applied") }),
  z.strictObject({ kind: z.literal("skipped"), code: z.string().min(1), reason: z.string() }),
]);

/** Step 0 is the state before any update: it has metrics (evaluation of the base weights) and an empty ledger. */
export const stepDocumentSchema = z.strictObject({
  id,
  run: id,
  attempt,
  step: count,
  window: count,
  outcome: stepOutcomeSchema,
  /** Pooled by token count over micro-batches and ranks. */
  metrics: metricsSchema,
  ledger: ledgerSchema,
  /** Policy version of the weights after the step. */
  weightVersion: count,
  /** Folder of the checkpoint written with this step, relative to the run's folder. */
  checkpoint: z.string().min(1).nullable(),
  wallMs: z.number().min(0),
  committed: time,
  voidedBy: attempt.nullable(),
});
export type StepDocument = z.infer<typeof stepDocumentSchema>;

/** Id of the step document, and of its plan. */
export function stepDocumentId(run: string, attempt: number, step: number): string {
  return `${run}/${attempt}/${step}`;
}
