// One shape for trajectories of every tool's files. What a format does not have is null or empty, never made up; what it has and
// this shape has no place for stands in `metadata`.
import { z } from "zod";
import { journalNumberSchema } from "./journal.ts";
import { jsonObjectSchema } from "./json.ts";

const count = z.int().min(0);

export const importedFormats = [
  "rollscope-chat",
  "openai-chat",
  "openai-preference",
  "openai-responses",
  "nemo-gym",
  "sharegpt",
  "alpaca",
  "preference",
  "swe-agent",
  "mini-swe-agent",
  "inspect",
  "openhands",
  "tau-bench",
  "claude-code",
  "verifiers-v1",
  "verifiers-legacy",
  "trl-completions",
  "verl",
] as const;
export const importedFormatSchema = z.enum(importedFormats);
export type ImportedFormat = z.infer<typeof importedFormatSchema>;

/** Where something lies: bytes [start, end) of the file (of the zip's member), and its line, from 1, in files of lines. */
export const sourceRangeSchema = z.object({
  start: count,
  end: count,
  line: z.int().min(1).nullable(),
  /** Member of a zip. */
  member: z.string().nullable(),
});
export type SourceRange = z.infer<typeof sourceRangeSchema>;

export const importedPartSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: z.string() }),
  z.object({ kind: z.literal("reasoning"), text: z.string() }),
  /** `reference` is a URL, a path, or a data: URL, as the file says. */
  z.object({ kind: z.literal("image"), reference: z.string(), mediaType: z.string().nullable() }),
]);
export type ImportedPart = z.infer<typeof importedPartSchema>;

export const importedToolCallSchema = z.object({
  /** null where the format has no ids. */
  id: z.string().nullable(),
  name: z.string(),
  /** Exactly as the source has them: the JSON text that the model wrote, or the file's own text of an object. */
  arguments: z.string(),
});
export type ImportedToolCall = z.infer<typeof importedToolCallSchema>;

export const importedTokensSchema = z.object({
  /** What the turn adds to the sequence. */
  ids: z.array(z.int()),
  /** 1 = sampled by the model; as long as ids. */
  sampled: z.array(z.int().min(0).max(1)),
  /** One per sampled token; null: the file has none. */
  logprobs: z.array(z.number()).nullable(),
  advantages: z.array(z.number()).nullable(),
});
export type ImportedTokens = z.infer<typeof importedTokensSchema>;

export const importedRoleSchema = z.enum(["system", "developer", "user", "assistant", "tool"]);
export type ImportedRole = z.infer<typeof importedRoleSchema>;

export const importedTurnSchema = z.object({
  role: importedRoleSchema,
  /** Who speaks, where the format tells apart speakers of one role. */
  name: z.string().nullable(),
  parts: z.array(importedPartSchema),
  toolCalls: z.array(importedToolCallSchema),
  /** Of a tool's answer. */
  result: z
    .object({ callId: z.string().nullable(), name: z.string().nullable(), error: z.string().nullable() })
    .nullable(),
  /** An example that was not part of this run. */
  demonstration: z.boolean(),
  /** Written by the model and not marked as left out of training. */
  trainable: z.boolean(),
  /** Milliseconds since 1970. */
  started: z.number().nullable(),
  ended: z.number().nullable(),
  /** What the source calls it: types of its messages, items, events or blocks. */
  kinds: z.array(z.string()),
  finishReason: z.string().nullable(),
  tokens: importedTokensSchema.nullable(),
  source: sourceRangeSchema.nullable(),
  /** Why it could not be read; its text is then what the file holds at that place. */
  problem: z.string().nullable(),
});
export type ImportedTurn = z.infer<typeof importedTurnSchema>;

const importedBranchSchema = z.object({
  kind: z.enum(["branch", "sidechain", "chosen", "rejected"]),
  /** Place among the trajectories of the record, from 0, and how many there are. */
  index: count,
  of: z.int().min(1),
  /** First turn that is not that of the record's first trajectory; null for the first one. */
  parts: count.nullable(),
  /** Its history was rendered anew with another outcome than the tokens sampled before: they are not trained with it. */
  drifted: z.boolean(),
});

export const rewardValueSchema = z.union([journalNumberSchema, z.string(), z.null()]);
export type RewardValue = z.infer<typeof rewardValueSchema>;

/** A trajectory in a list of thousands. */
export const trajectorySummarySchema = z.object({
  /** As the file calls it, else made from its place; unique in the file. */
  id: z.string(),
  format: importedFormatSchema,
  /** Trajectories of one record of the file share it: branches, side chains, chosen and rejected. */
  record: z.string(),
  task: z.string().nullable(),
  /** Rollouts of one task in one wave. */
  group: z.string().nullable(),
  labels: z.array(z.string()),
  model: z.string().nullable(),
  split: z.string().nullable(),
  step: count.nullable(),
  exitStatus: z.string().nullable(),
  /** The reward as a whole, where the format has one. */
  score: journalNumberSchema.nullable(),
  error: z.string().nullable(),
  truncated: z.boolean().nullable(),
  branch: importedBranchSchema.nullable(),
  /** Turns that can be read now. */
  turnCount: count,
  /** False while the file is being indexed there, and for ever if it ends early. */
  complete: z.boolean(),
  source: sourceRangeSchema,
});
export type TrajectorySummary = z.infer<typeof trajectorySummarySchema>;

export const importedTrajectorySchema = trajectorySummarySchema.extend({
  /** By name: numbers, words such as C or I; null = not scored. */
  reward: z.record(z.string(), rewardValueSchema),
  tools: z.array(z.object({ name: z.string(), description: z.string(), parameters: z.unknown() })),
  /** Token columns of its turns: id, logprob, advantage, mask. */
  columns: z.array(z.enum(["id", "mask", "logprob", "advantage"])),
  started: z.number().nullable(),
  ended: z.number().nullable(),
  /** Everything else that the file says about it. */
  metadata: jsonObjectSchema,
});
export type ImportedTrajectory = z.infer<typeof importedTrajectorySchema>;

/** Something in a file that could not be read. The rest stays readable. */
export const fileProblemSchema = z.object({
  code: z.string(),
  message: z.string(),
  next: z.string(),
  line: z.int().min(1).nullable(),
  /** Byte in the file, or in the member of a zip. */
  byte: count.nullable(),
  member: z.string().nullable(),
});
export type FileProblem = z.infer<typeof fileProblemSchema>;
