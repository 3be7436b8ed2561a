// The turns that one model call adds to a record: the messages that were put in, then the answer. Pure.
import type { ChatMessage } from "../../../../protocol/agent.ts";
import type { CallDocument } from "../../../../protocol/call.ts";
import type { ToolEventDocument } from "../../../../protocol/record.ts";
import type { TurnPart, TurnView } from "../../../../protocol/trajectoryView.ts";
import { shownCharacters } from "./openTrajectory.ts";
import type { CallEntry } from "./recordIndex.ts";

/** Whole texts of a message's parts, in the order of TurnView.parts; images and the like have none. */
export function partTexts(message: ChatMessage): { readonly kind: "text" | "reasoning"; readonly text: string }[] {
  const texts: { kind: "text" | "reasoning"; text: string }[] = [];
  if (message.role === "assistant" && message.reasoning_content)
    texts.push({ kind: "reasoning", text: message.reasoning_content });
  if (typeof message.content === "string") texts.push({ kind: "text", text: message.content });
  else for (const part of message.content ?? []) texts.push({ kind: "text", text: part.text });
  return texts;
}

/** Parts as they are shown: what is longer than shownCharacters is cut, and the cut announced. */
export function cutParts(texts: readonly { readonly kind: "text" | "reasoning"; readonly text: string }[]): TurnPart[] {
  return texts.flatMap(({ kind, text }, part): TurnPart[] => {
    if (text.length <= shownCharacters) return [{ kind, text }];
    // Never between the halves of one character.
    const end = /[\uD800-\uDBFF]/.test(text[shownCharacters - 1]!) ? shownCharacters - 1 : shownCharacters;
    return [
      { kind, text: text.slice(0, end) },
      { kind: "cut", characters: text.length - end, part },
    ];
  });
}

/** `toolEvents` of the record: those that the parent's answer asked for belong to this call's tool messages, in order. */
export function turnViews(entry: CallEntry, call: CallDocument, toolEvents: readonly ToolEventDocument[]): TurnView[] {
  const events = toolEvents.filter((event) => event.call !== null && event.call === call.parent);
  let results = 0;
  const views = call.request.messages.map((message, index) =>
    givenTurn(entry.firstTurn + index, message, message.role === "tool" ? events[results++] : undefined),
  );
  if (call.message !== null) views.push(sampledTurn(entry, call, call.message));
  return views;
}

const nothing = {
  toolCalls: [],
  result: null,
  call: null,
  policyVersions: null,
  tokens: null,
  finishReason: null,
  temperature: null,
  promptTokens: null,
  cachedTokens: null,
  started: null,
  ended: null,
  drift: null,
  error: null,
  demonstration: false,
  trainable: false,
} as const;

function givenTurn(turn: number, message: ChatMessage, event: ToolEventDocument | undefined): TurnView {
  return {
    ...nothing,
    turn,
    role: message.role,
    parts: cutParts(partTexts(message)),
    toolCalls: message.role === "assistant" ? toolCalls(message) : [],
    result: message.role === "tool" ? toolResult(message, event) : null,
  };
}

function toolCalls(message: Extract<ChatMessage, { role: "assistant" }>): TurnView["toolCalls"] {
  return (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
    id,
    name,
    arguments: text,
  }));
}

/** `event`: what the recipe reported of the same call. */
function toolResult(
  message: Extract<ChatMessage, { role: "tool" }>,
  event: ToolEventDocument | undefined,
): TurnView["result"] {
  return {
    callId: message.tool_call_id,
    name: event?.name ?? null,
    error: event?.error?.message ?? null,
    milliseconds: event?.durationMs ?? null,
  };
}

function sampledTurn(
  entry: CallEntry,
  call: CallDocument,
  message: Extract<ChatMessage, { role: "assistant" }>,
): TurnView {
  const versions = call.versions.map(({ version }) => version);
  return {
    ...nothing,
    turn: entry.firstTurn + entry.messages,
    role: "assistant",
    parts: cutParts(partTexts(message)),
    toolCalls: toolCalls(message),
    call: call.id,
    policyVersions: versions.length === 0 ? null : { min: Math.min(...versions), max: Math.max(...versions) },
    tokens: { first: entry.firstToken, length: entry.tokens },
    finishReason: call.finishReason,
    temperature: call.temperature,
    promptTokens: call.usage.promptTokens,
    cachedTokens: call.usage.cachedTokens,
    started: call.started,
    ended: call.ended,
    drift: call.drift.kind === "none" ? null : call.drift,
    error: call.error,
    trainable: call.temperature > 0,
  };
}
