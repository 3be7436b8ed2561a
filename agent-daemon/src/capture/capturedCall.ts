// One model call as the session keeps it: what it adds to its parent, the exact tokens, what the engine said of each. A node
// of the session tree; everything about whole conversations is worked out by walking up, so space stays linear in turns.
import type { AssistantMessage, ChatMessage, JsonValue, ToolDefinition } from "../../../protocol/agent.ts";
import type { CallDocument, CallStatus, Drift, VersionRun } from "../../../protocol/call.ts";
import type { RollscopeError } from "../../../protocol/errors.ts";

export interface CapturedCall {
  readonly id: string;
  readonly record: string;
  /** Order of dispatch within the record, from 0. */
  readonly index: number;
  readonly parent: CapturedCall | null;
  /** How much of the parent's conversation (messages and answer; prompt and output) this one begins with. */
  readonly keptMessages: number;
  readonly keptTokens: number;
  /** Messages after the kept ones. */
  readonly messages: readonly ChatMessage[];
  /** null: those of the parent. */
  readonly tools: readonly ToolDefinition[] | null;
  readonly asked: { readonly [key: string]: JsonValue };
  readonly client: string | null;
  readonly dialect: CallDocument["dialect"];
  /** Prompt tokens after the kept ones. */
  readonly promptDelta: Int32Array;
  /** Everything that was sampled, with the token that ended the call and all of a stop string. */
  readonly output: Int32Array;
  /** [output] log-softmax(logits / T). */
  readonly logprobs: Float32Array;
  /** [output] after truncation by top-p, top-k, min-p; null when nothing was truncated. */
  readonly sampledLogprobs: Float32Array | null;
  readonly alternatives: readonly (readonly { readonly id: number; readonly logprob: number }[])[] | null;
  readonly temperature: number;
  readonly versions: readonly VersionRun[];
  readonly status: Exclude<CallStatus, "running">;
  /** null when nothing was answered. */
  readonly message: AssistantMessage | null;
  /** Visible text, without special tokens and without the stop string that ended it. */
  readonly text: string;
  readonly finishReason: CallDocument["finishReason"];
  readonly usage: CallDocument["usage"];
  readonly error: RollscopeError | null;
  readonly drift: Drift;
  readonly started: number;
  readonly firstToken: number | null;
  readonly ended: number;
}

/** Prompt and output. */
export function tokenCount(call: CapturedCall): number {
  return call.keptTokens + call.promptDelta.length + call.output.length;
}

/** Messages of the request and, when there is one, the answer. */
export function messageCount(call: CapturedCall): number {
  return call.keptMessages + call.messages.length + (call.message === null ? 0 : 1);
}

/** From the root to the call. */
export function pathTo(call: CapturedCall): CapturedCall[] {
  const path: CapturedCall[] = [];
  for (let at: CapturedCall | null = call; at !== null; at = at.parent) path.push(at);
  return path.reverse();
}

/** The first `count` tokens of a call's conversation: prompt, then output. */
export function conversationTokens(call: CapturedCall, count = tokenCount(call)): Int32Array {
  const tokens = new Int32Array(count);
  let end = count;
  for (let at: CapturedCall | null = call; at !== null && end > 0; at = at.parent) {
    const start = Math.min(at.keptTokens, end);
    const promptEnd = Math.min(at.keptTokens + at.promptDelta.length, end);
    tokens.set(at.promptDelta.subarray(0, promptEnd - start), start);
    tokens.set(at.output.subarray(0, end - promptEnd), promptEnd);
    end = start;
  }
  return tokens;
}

/** The messages the call was asked with. */
export function requestMessages(call: CapturedCall): ChatMessage[] {
  const parts: (readonly ChatMessage[])[] = [call.messages];
  let needed = call.keptMessages;
  for (let at = call.parent; at !== null && needed > 0; at = at.parent) {
    const own = at.message === null ? at.messages : [...at.messages, at.message];
    if (needed > at.keptMessages) parts.push(own.slice(0, needed - at.keptMessages));
    needed = Math.min(needed, at.keptMessages);
  }
  return parts.reverse().flat();
}

/** Sampled tokens of a conversation that stand at or after `position`. */
export function sampledFrom(call: CapturedCall, position: number): number {
  let total = 0;
  let end = tokenCount(call);
  for (let at: CapturedCall | null = call; at !== null && end > position; at = at.parent) {
    const start = at.keptTokens + at.promptDelta.length;
    total += Math.max(0, Math.min(start + at.output.length, end) - Math.max(start, position));
    end = Math.min(end, at.keptTokens);
  }
  return total;
}
