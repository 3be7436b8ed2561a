// Documents about what was sampled, but for the model calls: tasks, records (trajectories), tool events, and the leases
// that say who works on a record. Times are milliseconds since 1970 by the clock of the writer.
import { z } from "zod";
import { jsonObjectSchema, jsonValueSchema } from "./json.ts";

const id = z.string().min(1);
const count = z.int().min(0);
const time = z.number();

export const splitSchema = z.enum(["train", "heldOut"]);

export const taskStatusSchema = z.enum(["created", "running", "completed"]);
export type TaskStatus = z.infer<typeof taskStatusSchema>;

/** One problem as it was scheduled: the group of records that is sampled for it names it. */
export const taskDocumentSchema = z.strictObject({
  id,
  run: id,
  /** The row's own id (Task.id); the same row is another document in another epoch. */
  name: z.string(),
  split: splitSchema,
  epoch: count,
  /** Row number in the task file, from 0. */
  index: count,
  payload: jsonObjectSchema,
  groupSize: z.int().min(1),
  status: taskStatusSchema,
  /** Scores of the group once it is decided; null = ungraded. */
  scores: z.array(z.number().nullable()),
  created: time,
});
export type TaskDocument = z.infer<typeof taskDocumentSchema>;

/** created → running → completed → scoring → scored → ready; the others are ends without training. */
export const recordStatusSchema = z.enum([
  "created",
  "running",
  "completed",
  "scoring",
  "scored",
  "ready",
  "abandoned",
  "failed",
  "cancelled",
]);
export type RecordStatus = z.infer<typeof recordStatusSchema>;

export const documentErrorSchema = z.strictObject({
  code: z.string().min(1),
  message: z.string(),
  /** The call that failed, where one did. */
  call: id.nullable(),
});
export type DocumentError = z.infer<typeof documentErrorSchema>;

/** What queries ask about a trajectory, summed or at its worst over its calls; the writer of the record counts. */
export const recordStatsSchema = z.strictObject({
  turns: count,
  calls: count,
  promptTokens: count,
  outputTokens: count,
  /** Output tokens that may be trained. */
  trainableTokens: count,
  truncated: z.boolean(),
  toolErrors: count,
  /** Calls whose re-rendered history differed from the tokens sampled. */
  driftedCalls: count,
  /** Largest number of optimizer steps between sampling and training; null before training. */
  staleness: count.nullable(),
  /** Largest |trainer − sampler| log-probability under one policy version; null before training. */
  mismatch: z.number().nullable(),
});
export type RecordStats = z.infer<typeof recordStatsSchema>;

export const recordTimingsSchema = z.strictObject({
  started: time.nullable(),
  ended: time.nullable(),
  scored: time.nullable(),
});

/** One trajectory. */
export const recordDocumentSchema = z.strictObject({
  id,
  run: id,
  /** Id of the task document. */
  task: id,
  /** Place in the group, from 0. */
  sample: count,
  /** 0 for the first try, one more each time the trajectory was sampled anew. */
  resample: count,
  attempt: z.int().min(1),
  split: splitSchema,
  status: recordStatusSchema,
  /** null until evaluated; "ungraded" when evaluation gave no score. */
  score: z.union([z.number(), z.literal("ungraded")]).nullable(),
  reward: z.record(z.string(), z.number()),
  error: documentErrorSchema.nullable(),
  /** Oldest and newest policy version among its sampled tokens. */
  policyVersions: z.strictObject({ min: count, max: count }).nullable(),
  /** How often a step consumed it, and the last step that did. */
  trainedCount: count,
  lastTrainedStep: count.nullable(),
  stats: recordStatsSchema,
  created: time,
  timings: recordTimingsSchema,
  labels: z.array(z.string()),
  /** The recipe's recordFields. */
  fields: jsonObjectSchema,
});
export type RecordDocument = z.infer<typeof recordDocumentSchema>;

/** A call that a recipe or harness reports between turns. */
export const toolEventDocumentSchema = z.strictObject({
  id,
  run: id,
  record: id,
  /** Order within the record, from 0. */
  index: count,
  /** The model call whose answer asked for it; null when none did. */
  call: id.nullable(),
  name: z.string(),
  arguments: jsonValueSchema,
  result: jsonValueSchema,
  error: documentErrorSchema.nullable(),
  started: time,
  durationMs: z.number().min(0),
});
export type ToolEventDocument = z.infer<typeof toolEventDocumentSchema>;

export const leasePurposeSchema = z.enum(["rollout", "score", "train"]);

/** The n-th claim on a record. Its id is `record#n`, so that the unique key decides who gets it. */
export const leaseDocumentSchema = z.strictObject({
  id,
  run: id,
  record: id,
  n: z.int().min(1),
  owner: z.string().min(1),
  purpose: leasePurposeSchema,
  acquired: time,
  expires: time,
  released: time.nullable(),
});
export type LeaseDocument = z.infer<typeof leaseDocumentSchema>;

/** The part of a lease that its owner shows with every later request. */
export type LeaseKey = Pick<LeaseDocument, "record" | "n" | "owner">;

/** A record with nothing known about it yet. */
export function newRecord(
  start: Pick<RecordDocument, "id" | "run" | "task" | "sample" | "split" | "created"> &
    Partial<Pick<RecordDocument, "resample" | "attempt">>,
): RecordDocument {
  return {
    resample: 0,
    attempt: 1,
    ...start,
    status: "created",
    score: null,
    reward: {},
    error: null,
    policyVersions: null,
    trainedCount: 0,
    lastTrainedStep: null,
    stats: {
      turns: 0,
      calls: 0,
      promptTokens: 0,
      outputTokens: 0,
      trainableTokens: 0,
      truncated: false,
      toolErrors: 0,
      driftedCalls: 0,
      staleness: null,
      mismatch: null,
    },
    timings: { started: null, ended: null, scored: null },
    labels: [],
    fields: {},
  };
}
