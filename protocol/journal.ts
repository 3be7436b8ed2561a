// The journal of a run: one numbered event a line, written by the coordinator only, read by the command line, the daemon
// and views. It tells what happened; what was sampled and trained stands in the store and is only named here.
import { z } from "zod";

const count = z.int().min(0);
const id = z.string().min(1);

/** JSON has no NaN and no infinities; the journal writes them as these words, so that a step is never hidden by one. */
const specials = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
} as const;

export const journalNumberSchema = z.union([
  // What was parsed once may be parsed again, by the next who passes it on: then the words are numbers already.
  z.custom<number>((value) => typeof value === "number"),
  z.enum(["NaN", "Infinity", "-Infinity"]).transform((word) => specials[word]),
]);

/** By name, as in StepDocument.metrics. */
export const journalNumbersSchema = z.record(z.string().min(1), journalNumberSchema);

export const journalErrorSchema = z.object({
  code: z.string().min(1),
  message: z.string(),
  /** What the person can do now. */
  next: z.string(),
  record: id.optional(),
  call: id.optional(),
});
export type JournalError = z.infer<typeof journalErrorSchema>;

export const runPhases = [
  "opening",
  "sampling",
  "comparing",
  "training",
  "evaluating",
  "saving",
  "paused",
  "stopping",
] as const;
export type RunPhase = (typeof runPhases)[number];

export const endStatuses = ["completed", "stopped", "failed"] as const;
export type EndStatus = (typeof endStatuses)[number];

/** How the records of one wave ended. */
export const recordCountsSchema = z.object({
  /** Every try, retries included. */
  records: count,
  graded: count,
  ungraded: count,
  failed: count,
  cancelled: count,
  retried: count,
  truncated: count,
  groups: count,
  /** Groups without variance that other tasks replaced, and those that stayed. */
  replaced: count,
  withoutVariance: count,
  /** Groups that had fewer graded records than needed. */
  dropped: count,
});
export type RecordCounts = z.infer<typeof recordCountsSchema>;

export const evaluationSummarySchema = z.object({
  tasks: count,
  graded: count,
  ungraded: count,
  failed: count,
  truncated: count,
  /** Means over the graded records; `score` and every named part that evaluate returned. */
  scores: journalNumbersSchema,
});
export type EvaluationSummary = z.infer<typeof evaluationSummarySchema>;

const events = {
  /** First event of each attempt. */
  started: z.object({
    type: z.literal("started"),
    run: id,
    recipe: z.string(),
    model: z.string(),
    steps: count,
    seed: count,
    /** Steps after which the held-out tasks are evaluated; 0 is before the first. */
    evaluations: z.array(count),
    /** Step that the attempt goes on from, and the checkpoint it read; null for the first attempt. */
    resumed: z.object({ step: count, checkpoint: z.string().nullable(), voidedSteps: count }).nullable(),
  }),
  phase: z.object({ type: z.literal("phase"), step: count, phase: z.enum(runPhases) }),
  records: z.object({ type: z.literal("records"), step: count, counts: recordCountsSchema }),
  /** A committed optimizer step. Wall times stand apart, so that two runs with one seed have equal metrics. */
  step: z.object({
    type: z.literal("step"),
    step: count,
    weightVersion: count,
    skipped: z.object({ code: z.string(), reason: z.string() }).nullable(),
    metrics: journalNumbersSchema,
    /** Milliseconds by name. */
    timings: journalNumbersSchema,
  }),
  evaluation: z.object({
    type: z.literal("evaluation"),
    step: count,
    summary: evaluationSummarySchema,
    milliseconds: z.number(),
  }),
  /** Sampler against trainer before the first update of the attempt. */
  mismatch: z.object({ type: z.literal("mismatch"), step: count, metrics: journalNumbersSchema }),
  checkpoint: z.object({
    type: z.literal("checkpoint"),
    step: count,
    checkpoint: z.string(),
    milliseconds: z.number(),
  }),
  warning: z.object({ type: z.literal("warning"), step: count.nullable(), error: journalErrorSchema }),
  /** Last event of an attempt that was not killed. */
  ended: z.object({
    type: z.literal("ended"),
    status: z.enum(endStatuses),
    step: count,
    error: journalErrorSchema.nullable(),
    /** Most memory that the process had, in bytes; null in journals that do not tell. */
    peakMemory: z.number().nullable().default(null),
    /** A trajectory worth looking at: the largest |advantage| of the last step. */
    record: id.nullable(),
  }),
} as const;

const eventBodySchema = z.discriminatedUnion("type", [
  events.started,
  events.phase,
  events.records,
  events.step,
  events.evaluation,
  events.mismatch,
  events.checkpoint,
  events.warning,
  events.ended,
]);
export type JournalEventBody = z.infer<typeof eventBodySchema>;

const envelopeSchema = z.object({
  /** From 1, without gaps, over all attempts. */
  n: z.int().min(1),
  /** Milliseconds since 1970. */
  at: z.number(),
  attempt: z.int().min(1),
});

export const journalEventSchema = z.intersection(envelopeSchema, eventBodySchema);
export type JournalEvent = z.infer<typeof journalEventSchema>;
export type JournalEventOf<Type extends JournalEventBody["type"]> = Extract<JournalEvent, { readonly type: Type }>;

/**
 * For JSON.stringify: numbers that JSON lacks become the words that journalNumberSchema reads, and an integer that a number cannot
 * hold becomes its digits.
 */
export function specialsAsWords(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

/** One line of the journal, without its newline. */
export function journalLine(event: JournalEvent): string {
  return JSON.stringify(event, specialsAsWords);
}
