// What the daemon tells clients about runs: a summary a run, a snapshot, then numbered events. Metric series travel as columns
// (see daemonMethods.ts); trajectories have their own page of the contract.
import { z } from "zod";
import { advisorySchema } from "./advisory.ts";
import {
  journalErrorSchema,
  journalEventSchema,
  journalNumberSchema,
  recordCountsSchema,
  runPhases,
} from "./journal.ts";

const count = z.int().min(0);
const time = z.number();

/**
 * `starting`: the process is there, its journal is not yet. `crashed`: the process ended without saying so. `lost`: the journal
 * says that it runs, but no process of it is there and this daemon did not see it end (the machine was restarted).
 */
export const runStatusSchema = z.enum([
  "starting",
  "running",
  "paused",
  "stopping",
  "completed",
  "stopped",
  "failed",
  "crashed",
  "lost",
]);
export type RunStatus = z.infer<typeof runStatusSchema>;

/** Why a run's process ended without an `ended` event. */
export const crashReportSchema = z.object({
  exitCode: z.int().nullable(),
  signal: z.string().nullable(),
  /** Last lines that it wrote to its standard error. */
  stderrTail: z.string(),
  /** Bytes; null where the machine does not tell. */
  memory: z.object({
    peak: z.number().nullable(),
    /** What the machine could give when the process was last seen. */
    available: z.number().nullable(),
    /** The kernel says that it ended the process for want of memory. */
    killedForMemory: z.boolean().nullable(),
  }),
  /** One sentence, and what to do now. */
  message: z.string(),
  next: z.string(),
  at: time,
});
export type CrashReport = z.infer<typeof crashReportSchema>;

export const runSummarySchema = z.object({
  /** Absolute path of the run's folder on the daemon's machine: the key of every method about the run. */
  folder: z.string().min(1),
  /** Id of the run; a copied folder has the same one. */
  run: z.string(),
  recipe: z.string(),
  recipeFolder: z.string().nullable(),
  model: z.string(),
  status: runStatusSchema,
  phase: z.enum(runPhases).nullable(),
  attempt: count,
  /** Optimizer steps committed, of how many. */
  step: count,
  steps: count,
  /** reward_mean and loss of the last step; held-out score before training and newest. */
  reward: journalNumberSchema.nullable(),
  loss: journalNumberSchema.nullable(),
  evaluation: z.object({ base: journalNumberSchema.nullable(), latest: journalNumberSchema.nullable() }),
  begun: time.nullable(),
  ended: time.nullable(),
  pid: z.int().nullable(),
  error: journalErrorSchema.nullable(),
  crash: crashReportSchema.nullable(),
  /** Advisories in force; the worst first. */
  advisories: z.array(advisorySchema),
});
export type RunSummary = z.infer<typeof runSummarySchema>;

/** Everything that a view needs before deltas, at event number `cursor`. Metric values are read as columns. */
export const runSnapshotSchema = z.object({
  summary: runSummarySchema,
  /** Number of the last event that the snapshot contains; 0 = none. */
  cursor: count,
  attempts: z.array(
    z.object({
      attempt: z.int().min(1),
      /** Steps of the attempt: (from, to]; a later attempt that resumed from `from` makes later steps of earlier ones void. */
      from: count,
      to: count,
      begun: time,
      voidedAfter: count.nullable(),
    }),
  ),
  /** Names of the metrics that some step had, in the order of protocol/metrics.ts, then others by name. */
  metricNames: z.array(z.string()),
  /** Steps with an evaluation, and its scores. */
  evaluations: z.array(
    z.object({ step: count, attempt: z.int(), scores: z.record(z.string(), journalNumberSchema), tasks: count }),
  ),
  /** Records of the last sampled wave. */
  records: recordCountsSchema.nullable(),
  warnings: z.array(z.object({ step: count.nullable(), at: time, error: journalErrorSchema })),
  checkpoints: z.array(z.object({ step: count, checkpoint: z.string() })),
  /** Bytes of weights, rollouts and blobs in the run's folder; null until counted. */
  disk: z.object({ checkpoints: z.number(), store: z.number(), blobs: z.number() }).nullable(),
});
export type RunSnapshot = z.infer<typeof runSnapshotSchema>;

/**
 * What a follower gets: first `snapshot` (always when it asked without a cursor, when its cursor is older than the journal keeps,
 * or when it was too slow), then `events` whose numbers follow each other without gap or repetition.
 */
export const runDeltaSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("snapshot"), folder: z.string(), snapshot: runSnapshotSchema }),
  z.object({
    kind: z.literal("events"),
    folder: z.string(),
    /** n of the last one. */
    cursor: count,
    events: z.array(journalEventSchema),
    /** As it is after them. */
    summary: runSummarySchema,
  }),
  /** The folder was removed or cannot be read any more. */
  z.object({ kind: z.literal("gone"), folder: z.string(), error: journalErrorSchema }),
]);
export type RunDelta = z.infer<typeof runDeltaSchema>;

/** Stages of a sampled token on its way to the gradient, in order; each token is counted in exactly one. */
export const wasteStages = [
  "notCaptured",
  "masked",
  "truncated",
  "stale",
  "zeroVariance",
  "filtered",
  "clipped",
  "contributing",
] as const;
export type WasteStage = (typeof wasteStages)[number];

/** sampled = Σ stages, exactly. */
export const waterfallSchema = z.object({
  /** null: the whole run. */
  step: count.nullable(),
  sampled: count,
  stages: z.record(z.enum(wasteStages), count),
});
export type Waterfall = z.infer<typeof waterfallSchema>;

/** An answer of *Explain Why Loss Is Zero* and of the other explanations: what the data say, from cause to effect. */
export const explanationSchema = z.object({
  step: count,
  /** One sentence: the answer. */
  answer: z.string(),
  causes: z.array(
    z.object({
      sentence: z.string(),
      /** The numbers that show it. */
      evidence: z.record(z.string(), journalNumberSchema),
      /** Records to look at. */
      records: z.array(z.string()),
      /** Key of recipe.yaml that decides it; null when none does. */
      key: z.string().nullable(),
    }),
  ),
});
export type Explanation = z.infer<typeof explanationSchema>;
