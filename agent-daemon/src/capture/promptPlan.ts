// Decides the exact prompt of a request: whose tokens it keeps, which tokens it adds, and where that differs from what the
// template would print for the whole conversation. Sampled tokens are kept as they are and never made anew from text.
import type { ChatMessage, ToolDefinition } from "../../../protocol/agent.ts";
import type { Drift } from "../../../protocol/call.ts";
import type { Tokenizer } from "../engines/tokenizer/tokenizer.ts";
import { commonLength } from "./appendOnly.ts";
import {
  type CapturedCall,
  conversationTokens,
  messageCount,
  pathTo,
  sampledFrom,
  tokenCount,
} from "./capturedCall.ts";
import type { ConversationText, PromptSettings } from "./conversationText.ts";
import type { TreeMatch } from "./messageTree.ts";

export interface PromptRequest {
  readonly messages: readonly ChatMessage[];
  readonly settings: PromptSettings;
  /** Tools and variables of the call that `match` found; null at a root. */
  readonly parentSettings: PromptSettings | null;
  readonly match: TreeMatch;
  /** The last call that ended, when the agent declared that it has replaced its history. */
  readonly compacted: CapturedCall | null;
  /** Compare this prompt with a whole render. */
  readonly verify: boolean;
}

export interface PromptPlan {
  readonly parent: CapturedCall | null;
  readonly keptMessages: number;
  readonly keptTokens: number;
  readonly delta: Int32Array;
  readonly drift: Drift;
}

export interface PlannerOptions {
  readonly text: ConversationText;
  readonly tokenizer: Tokenizer;
  /**
   * exact: sampled tokens stay in the history whatever the template would make of them. rerender: the prompt is what the
   * template prints; where that differs from the sampled tokens the conversation branches.
   */
  readonly history: "exact" | "rerender";
}

export const noDrift: Drift = { kind: "none", at: null, text: "", trainedTokens: 0 };

const shownText = 160;

/** Errors: TEMPLATE_REFUSED, TEMPLATE_FAILED. */
export function planPrompt(request: PromptRequest, options: PlannerOptions): PromptPlan {
  const parent = request.match.call;
  if (parent === null) return planRoot(request, options);
  if (settingsDiffer(request.settings, request.parentSettings)) return branch(parent, "tools", request, options);
  if (options.history === "rerender") return branch(parent, "template", request, options);
  return planContinuation(parent, request, options) ?? branch(parent, "template", request, options);
}

function planRoot(request: PromptRequest, options: PlannerOptions): PromptPlan {
  const tokens = encode(options.text.whole(request.messages, request.settings), options);
  const replaced = replacedConversation(request);
  const drift = replaced === null ? noDrift : replacing(replaced.call, replaced.kind, tokens, options);
  return { parent: null, keptMessages: 0, keptTokens: 0, delta: tokens, drift };
}

/** A request that begins anew is a conversation of its own, unless it stands in the place of one that there was. */
function replacedConversation(request: PromptRequest): { call: CapturedCall; kind: "edit" | "compaction" } | null {
  const { match, compacted } = request;
  if (compacted !== null) return { call: compacted, kind: "compaction" };
  const before = match.divergedFrom;
  if (before === null) return null;
  const isShorter = request.messages.length < messageCount(before);
  if (match.rewritesAnswer) return { call: before, kind: isShorter ? "compaction" : "edit" };
  const isLongConversation = pathTo(before).length > 1;
  return match.matched > 0 && isLongConversation && isShorter ? { call: before, kind: "compaction" } : null;
}

function planContinuation(parent: CapturedCall, request: PromptRequest, options: PlannerOptions): PromptPlan | null {
  const { tokenizer } = options;
  const covered = messageCount(parent);
  const last = parent.output.at(-1);
  const sampledText = tokenizer.decode(parent.output);
  const added = request.messages.slice(covered);
  const firstAnswer = request.messages.findIndex((message) => message.role === "assistant");
  const continuation = options.text.continuation(
    {
      beginning: request.messages.slice(0, firstAnswer),
      answer: parent.message ?? { role: "assistant", content: parent.text },
      sampledText,
      endText: last !== undefined && tokenizer.isSpecial(last) ? tokenizer.tokenText(last) : "",
      added,
    },
    request.settings,
  );
  if (continuation.kind === "unknown") return null;
  const plan = {
    parent,
    keptMessages: covered,
    keptTokens: tokenCount(parent),
    delta: encode(continuation.text, options),
  };
  const branched = branchDrift(request, parent, plan.delta, options);
  if (branched !== null) return { ...plan, drift: branched };
  if (continuation.kind === "rewritten") {
    const before = tokenizer.encode(sampledText.slice(0, continuation.common), { special: "parse" }).length;
    const at = parent.keptTokens + parent.promptDelta.length + Math.min(before, parent.output.length);
    const drift = { kind: "template", at, text: continuation.rendered.slice(0, shownText), trainedTokens: 0 } as const;
    return { ...plan, drift };
  }
  if (parent.drift.kind === "template" || parent.drift.kind === "retoken") {
    return { ...plan, drift: { ...parent.drift, trainedTokens: 0 } };
  }
  const retokened = retokenDrift(parent, options.tokenizer);
  if (retokened !== null) return { ...plan, drift: retokened };
  return { ...plan, drift: request.verify ? verified(request, plan, options) : noDrift };
}

/** The conversation went on otherwise before: what followed there is not part of this one. */
function branchDrift(
  request: PromptRequest,
  parent: CapturedCall,
  delta: Int32Array,
  options: PlannerOptions,
): Drift | null {
  const { match, compacted } = request;
  const before = compacted ?? match.divergedFrom;
  if (before === null || before === parent) return null;
  const isShorter = request.messages.length < messageCount(before);
  const kind = compacted !== null || (isShorter && match.rewritesAnswer) ? "compaction" : "edit";
  const tokens = new Int32Array(tokenCount(parent) + delta.length);
  tokens.set(conversationTokens(parent));
  tokens.set(delta, tokenCount(parent));
  return replacing(before, kind, tokens, options);
}

/** Whole render; keeps the tokens that it has in common with the parent's conversation. */
function branch(
  parent: CapturedCall,
  kind: "tools" | "template",
  request: PromptRequest,
  options: PlannerOptions,
): PromptPlan {
  const text = options.text.whole(request.messages, request.settings);
  const tokens = encode(text, options);
  const before = conversationTokens(parent);
  const keptTokens = commonTokens(before, tokens);
  const plan = { parent, keptMessages: messageCount(parent), keptTokens, delta: tokens.subarray(keptTokens) };
  if (keptTokens === before.length) return { ...plan, drift: noDrift };
  const sameText = text.startsWith(options.tokenizer.decode(before));
  const found = replacing(parent, kind === "template" && sameText ? "retoken" : kind, tokens, options);
  return { ...plan, drift: found };
}

/** What the conversation of `before` had from the first token on in which the new prompt differs. */
function replacing(before: CapturedCall, kind: Drift["kind"], prompt: Int32Array, options: PlannerOptions): Drift {
  const at = commonTokens(conversationTokens(before), prompt);
  const text = options.tokenizer.decode(prompt.subarray(at, at + shownText)).slice(0, shownText);
  return { kind, at, text, trainedTokens: sampledFrom(before, at) };
}

/** Whether the template's text of the parent's answer would be cut into other tokens than were sampled. */
function retokenDrift(parent: CapturedCall, tokenizer: Tokenizer): Drift | null {
  // A special token cuts text for good, so nothing before the last one can change how the answer is cut.
  let start = parent.promptDelta.length;
  while (start > 0 && !tokenizer.isSpecial(parent.promptDelta[start - 1] as number)) start--;
  const ids = [...parent.promptDelta.subarray(start), ...parent.output];
  const again = tokenizer.encode(tokenizer.decode(ids), { special: "parse" });
  const at = commonTokens(ids, again);
  if (at === ids.length && at === again.length) return null;
  const text = tokenizer.decode(ids.slice(at)).slice(0, shownText);
  return { kind: "retoken", at: parent.keptTokens + start + at, text, trainedTokens: 0 };
}

function verified(request: PromptRequest, plan: Omit<PromptPlan, "drift">, options: PlannerOptions): Drift {
  const whole = options.text.whole(request.messages, request.settings);
  const exact = [...conversationTokens(plan.parent as CapturedCall), ...plan.delta];
  const text = options.tokenizer.decode(exact);
  if (text === whole) return noDrift;
  const common = commonLength(text, whole);
  const at = options.tokenizer.encode(text.slice(0, common), { special: "parse" }).length;
  return { kind: "template", at, text: whole.slice(common, common + shownText), trainedTokens: 0 };
}

function encode(text: string, { tokenizer }: PlannerOptions): Int32Array {
  return Int32Array.from(tokenizer.encode(text, { special: "parse" }));
}

function commonTokens(left: ArrayLike<number>, right: ArrayLike<number>): number {
  const limit = Math.min(left.length, right.length);
  let length = 0;
  while (length < limit && left[length] === right[length]) length++;
  return length;
}

function settingsDiffer(now: PromptSettings, before: PromptSettings | null): boolean {
  return before !== null && now.key !== before.key;
}

/** Names the shape of a continuation: the first of each is compared with a whole render. */
export function shapeOf(messages: readonly ChatMessage[], covered: number, tools: readonly ToolDefinition[]): string {
  const from = Math.max(0, covered - 1);
  const roles = messages.slice(from).map((message) => {
    if (message.role !== "assistant") return message.role;
    return `assistant${message.tool_calls ? "+calls" : ""}${message.reasoning_content ? "+reasoning" : ""}`;
  });
  const opening = messages.slice(0, 2).map((message) => message.role);
  return `${opening.join(",")};${roles.join(",")};${tools.length > 0 ? "tools" : ""}`;
}
