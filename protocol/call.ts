// One model call of a trajectory (collection dispatched_sampling_tasks): what was asked, the exact tokens, what came back.
// Only what the call adds to its parent is stored, so that a conversation of any number of turns takes linear space.
import { z } from "zod";
import type { AssistantMessage, ChatMessage, ToolDefinition } from "./agent.ts";
import { columnSchema } from "./column.ts";
import { isJsonValue, jsonObjectSchema } from "./json.ts";
import { documentErrorSchema } from "./record.ts";

const id = z.string().min(1);
const count = z.int().min(0);
const time = z.number();

export const callStatusSchema = z.enum(["running", "completed", "failed", "cancelled"]);
export type CallStatus = z.infer<typeof callStatusSchema>;

/** Messages are parsed where they come in; here it is only made sure that they are JSON and have a role. */
function message<M extends { readonly role: string }>(description: string) {
  return z.custom<M>(
    (value) => isJsonValue(value) && typeof (value as { role?: unknown } | null)?.role === "string",
    description,
  );
}

export const chatMessageSchema = message<ChatMessage>("not a chat message");
export const assistantMessageSchema = message<AssistantMessage>("not an assistant message");
export const toolDefinitionSchema = z.custom<ToolDefinition>(isJsonValue, "not a tool definition");

/** One try at getting the call answered; the last one is the call's. */
export const callTrySchema = z.strictObject({
  started: time,
  ended: time.nullable(),
  error: documentErrorSchema.nullable(),
});

/** `length` output tokens in a row were sampled under `version`. */
export const versionRunSchema = z.strictObject({ version: count, length: count });
export type VersionRun = z.infer<typeof versionRunSchema>;

export const driftKindSchema = z.enum(["none", "retoken", "template", "edit", "compaction", "tools"]);

export const driftSchema = z.strictObject({
  kind: driftKindSchema,
  /** First prompt token that differs from the re-rendered history, and the text that stands there. */
  at: count.nullable(),
  text: z.string(),
  /** Trained tokens that the difference costs. */
  trainedTokens: count,
});
export type Drift = z.infer<typeof driftSchema>;

/** Milliseconds, more than numbers of the size of a date lose. */
export const leastBetweenStarts = 0.001;

export const callDocumentSchema = z.strictObject({
  id,
  run: id,
  record: id,
  /** The call whose conversation this one continues; null at a root. */
  parent: id.nullable(),
  /** Order of dispatch within the record, from 0; it names the call's random stream. Siblings from `n` differ in it. */
  index: count,
  status: callStatusSchema,
  tries: z.array(callTrySchema),
  /** Name of the client as it presents itself, and the dialect it spoke. */
  client: z.string().nullable(),
  /** `imported`: read from another tool's file; temperature, times and tokens are then unknown unless they are there. */
  dialect: z.enum(["whiteBox", "chat", "responses", "messages", "imported"]),
  /**
   * How much of the parent's conversation (its messages and its answer; its prompt tokens and its output) this one begins
   * with: all of it, but for a branch. 0 at a root.
   */
  keptMessages: count,
  keptTokens: count,
  request: z.strictObject({
    /** Messages after the kept ones. */
    messages: z.array(chatMessageSchema),
    /** null: those of the parent. */
    tools: z.array(toolDefinitionSchema).nullable(),
    /** What the client asked for that the recipe decides otherwise, such as a temperature. */
    asked: jsonObjectSchema,
  }),
  /** i32, prompt tokens after the kept ones. */
  promptDelta: columnSchema,
  /** i32, sampled tokens, with the token that ended the call. */
  output: columnSchema,
  /** f32, log-softmax(logits / T) of each output token. */
  logprobs: columnSchema,
  /** f32, after penalties, bias, grammar and truncation; present when those changed the distribution. */
  sampledLogprobs: columnSchema.nullable(),
  temperature: z.number().min(0),
  versions: z.array(versionRunSchema),
  /** Chosen experts per input token and layer. */
  routing: columnSchema.nullable(),
  /** Absent until something was answered. */
  message: assistantMessageSchema.nullable(),
  finishReason: z.enum(["stop", "length", "tool_calls", "abort", "error"]).nullable(),
  usage: z.strictObject({ promptTokens: count, completionTokens: count, cachedTokens: count }),
  error: documentErrorSchema.nullable(),
  drift: driftSchema,
  /** Later than that of the record's call before, by leastBetweenStarts if by nothing else: calls are read in this order. */
  started: time,
  firstToken: time.nullable(),
  ended: time.nullable(),
});
export type CallDocument = z.infer<typeof callDocumentSchema>;
