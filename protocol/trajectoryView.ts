// A trajectory as views read it, piece by piece: an outline, then turns by range, then token columns by range. The same shape
// holds for records of a run and for files of other tools; what a source does not have is null or absent, never made up.
import { z } from "zod";
import { driftSchema } from "./call.ts";
import { journalNumberSchema } from "./journal.ts";
import { jsonObjectSchema } from "./json.ts";
import { documentErrorSchema } from "./record.ts";

const count = z.int().min(0);
const id = z.string().min(1);

/** Where a trajectory lies: a record of a run, or the index-th trajectory of a file. */
export const trajectorySourceSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("record"), folder: id, record: id }),
  z.object({ kind: z.literal("file"), path: id, index: count }),
]);
export type TrajectorySource = z.infer<typeof trajectorySourceSchema>;

/** One line of a list of trajectories. */
export const trajectoryRowSchema = z.object({
  source: trajectorySourceSchema,
  /** Record id, or what the file calls it. */
  id: z.string(),
  /** Task document of a run, or the task that the file names. */
  task: z.string().nullable(),
  taskName: z.string().nullable(),
  group: z.string().nullable(),
  sample: count.nullable(),
  attempt: count.nullable(),
  split: z.string().nullable(),
  status: z.string(),
  score: journalNumberSchema.nullable(),
  turns: count.nullable(),
  promptTokens: count.nullable(),
  outputTokens: count.nullable(),
  truncated: z.boolean(),
  toolErrors: count,
  driftedCalls: count,
  staleness: count.nullable(),
  mismatch: journalNumberSchema.nullable(),
  steps: z.array(count),
  error: documentErrorSchema.nullable(),
  labels: z.array(z.string()),
});
export type TrajectoryRow = z.infer<typeof trajectoryRowSchema>;

/** One path from the root to a leaf; a record with branches has several, and calls may be on more than one. */
export const branchSchema = z.object({
  /** Last call of the path. */
  leaf: z.string(),
  /** Turn numbers of TrajectoryOutline.turns, in order. */
  turns: z.array(z.tuple([count, count])),
  /** Why it parted from the branch before: null for the first. */
  drift: driftSchema.nullable(),
});

export const trajectoryOutlineSchema = z.object({
  row: trajectoryRowSchema,
  /** Turns that can be read now, and whether there will be more (a file that is still being indexed, a rollout that runs). */
  turnCount: count,
  complete: z.boolean(),
  /** Bytes read of how many, while a file is indexed. */
  progress: z.object({ done: z.number(), total: z.number() }).nullable(),
  /** Of a file: how many trajectories it has, as far as it was read. */
  inFile: count.optional(),
  branches: z.array(branchSchema),
  /** Sampled tokens of all turns; null when the source has none. */
  tokenCount: count.nullable(),
  /** Token columns that it has; see tokenColumnNames. */
  columns: z.array(z.string()),
  /** Steps that trained it: token columns exist for each. */
  trained: z.array(z.object({ step: count, attempt: count, pass: count, row: z.string() })),
  reward: z.record(z.string(), z.union([journalNumberSchema, z.string(), z.null()])),
  /** This and the values below have no bigint: withoutBigints made them, jsonText shows them with every digit. */
  payload: jsonObjectSchema.nullable(),
  fields: jsonObjectSchema,
  /** Format and whatever else the file says about the trajectory. */
  metadata: jsonObjectSchema,
  tools: z.array(z.object({ name: z.string(), description: z.string(), parameters: z.unknown() })),
});
export type TrajectoryOutline = z.infer<typeof trajectoryOutlineSchema>;

/** Images are fetched by handle; an image is one cell of the token strip. */
export const turnPartSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: z.string() }),
  z.object({ kind: z.literal("reasoning"), text: z.string() }),
  z.object({
    kind: z.literal("image"),
    handle: z.string(),
    mediaType: z.string(),
    width: count.nullable(),
    height: count.nullable(),
  }),
  /** Characters left out of a very long part; `turn/part` reads them. */
  z.object({ kind: z.literal("cut"), characters: count, part: count }),
]);
export type TurnPart = z.infer<typeof turnPartSchema>;

export const turnToolCallSchema = z.object({
  id: z.string(),
  name: z.string(),
  /** As the model wrote it. */
  arguments: z.string(),
});

/** One message of a conversation, with what is known of how it came to be. */
export const turnViewSchema = z.object({
  /** Place in the record, from 0; the key of every method about the turn. */
  turn: count,
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  parts: z.array(turnPartSchema),
  toolCalls: z.array(turnToolCallSchema),
  /** Of a tool's answer. */
  result: z
    .object({
      callId: z.string().nullable(),
      name: z.string().nullable(),
      error: z.string().nullable(),
      milliseconds: z.number().nullable(),
    })
    .nullable(),
  /** Model call that sampled it; null for what was put in. */
  call: z.string().nullable(),
  policyVersions: z.object({ min: count, max: count }).nullable(),
  /** Sampled tokens [first, first + length) of the record, in order of turns; null when the source has none. */
  tokens: z.object({ first: count, length: count }).nullable(),
  finishReason: z.string().nullable(),
  temperature: z.number().nullable(),
  promptTokens: count.nullable(),
  cachedTokens: count.nullable(),
  started: z.number().nullable(),
  ended: z.number().nullable(),
  drift: driftSchema.nullable(),
  error: documentErrorSchema.nullable(),
  /** Shown as an example, or marked as not to be trained. */
  demonstration: z.boolean(),
  trainable: z.boolean(),
});
export type TurnView = z.infer<typeof turnViewSchema>;

/** Columns by token, with what they mean. `f32` unless said otherwise; NaN where a token has no such number. */
export const tokenColumns = {
  id: { dtype: "i32", description: "Token id." },
  logprob: { dtype: "f32", description: "Log-probability as the sampler recorded it, log-softmax(logits / T)." },
  sampledLogprob: {
    dtype: "f32",
    description: "After penalties, grammar and truncation, where those changed the distribution.",
  },
  version: { dtype: "i32", description: "Policy version that sampled the token." },
  mask: { dtype: "u8", description: "1 = trained by the chosen step." },
  old: { dtype: "f32", description: "Trainer's log-probability when the window began." },
  new: { dtype: "f32", description: "Trainer's log-probability after the step." },
  reference: { dtype: "f32", description: "Log-probability under the reference." },
  ratio: { dtype: "f32", description: "exp(trainer − sampler or old): what the objective weighs by." },
  advantage: { dtype: "f32", description: "Advantage in the chosen step." },
  entropy: { dtype: "f32", description: "Entropy of the distribution it was drawn from." },
  weight: { dtype: "f32", description: "Product of the corrections' weights." },
  gradient: { dtype: "f32", description: "∂loss/∂logprob of the token in the chosen step." },
  mismatch: { dtype: "f32", description: "Trainer − sampler log-probability." },
  value: { dtype: "f32", description: "Critic's value before the token." },
  tokenReward: { dtype: "f32", description: "Reward at the token, KL included." },
  return: { dtype: "f32", description: "Return from the token on." },
  staleness: { dtype: "i32", description: "Optimizer steps between sampling and training." },
} as const;
export type TokenColumnName = keyof typeof tokenColumns;
export const tokenColumnNames = Object.keys(tokenColumns) as TokenColumnName[];

/** Text of tokens beside the columns of a bulk frame: token i is text.slice(ends[i − 1], ends[i]), with U+FFFD for half characters. */
export const tokenTextSchema = z.object({ text: z.string(), ends: z.array(count) });
