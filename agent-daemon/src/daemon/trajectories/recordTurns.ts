// The turns that one model call adds to a record: the messages that were put in, then the answer. Pure.
import type { ChatMessage } from "../../../../protocol/agent.ts";
import type { CallDocument } from "../../../../protocol/call.ts";
import type { ToolEventDocument } from "../../../../protocol/record.ts";
import type { TurnPart, TurnView } from "../../../../protocol/trajectoryView.ts";
import type { TurnTexts } from "../../store/findText.ts";
import { type ImagePart, isImage } from "../../store/interchange/storedMessages.ts";
import { shownCharacters } from "./openTrajectory.ts";
import type { CallEntry } from "./recordIndex.ts";

interface WholeText {
  readonly kind: "text" | "reasoning";
  readonly text: string;
}
interface StoredImage {
  readonly kind: "image";
  readonly image: ImagePart["image"];
}
export type MessagePart = WholeText | StoredImage;

/** A message's parts with their whole texts, in the order of TurnView.parts. */
export function messageParts(message: ChatMessage): MessagePart[] {
  const parts: MessagePart[] = [];
  if (message.role === "assistant" && message.reasoning_content)
    parts.push({ kind: "reasoning", text: message.reasoning_content });
  if (typeof message.content === "string") parts.push({ kind: "text", text: message.content });
  else
    for (const part of message.content ?? [])
      parts.push(isImage(part) ? { kind: "image", image: part.image } : { kind: "text", text: part.text });
  return parts;
}

/** What of a message is searched. */
export function searchedTexts(message: ChatMessage): TurnTexts {
  return {
    parts: messageParts(message).map((part) => (part.kind === "image" ? "" : part.text)),
    toolCalls: toolCalls(message),
  };
}

/** A part as it is shown: what is longer than shownCharacters is cut, and the cut announced. */
export function shownText({ kind, text }: WholeText, part: number): TurnPart[] {
  if (text.length <= shownCharacters) return [{ kind, text }];
  // Never between the halves of one character.
  const end = /[\uD800-\uDBFF]/.test(text[shownCharacters - 1]!) ? shownCharacters - 1 : shownCharacters;
  return [
    { kind, text: text.slice(0, end) },
    { kind: "cut", characters: text.length - end, part },
  ];
}

function shownParts(turn: number, message: ChatMessage): TurnPart[] {
  return messageParts(message).flatMap((part, number): TurnPart[] => {
    if (part.kind !== "image") return shownText(part, number);
    const mediaType = part.image.mediaType ?? "image/*";
    return [{ kind: "image", handle: `${turn}/${number}`, mediaType, width: null, height: null }];
  });
}

/** `toolEvents` of the record: those that the parent's answer asked for belong to this call's tool messages, in order. */
export function turnViews(entry: CallEntry, call: CallDocument, toolEvents: readonly ToolEventDocument[]): TurnView[] {
  const events = toolEvents.filter((event) => event.call !== null && event.call === call.parent);
  let results = 0;
  const imported = call.dialect === "imported";
  const views = call.request.messages.map((message, index) =>
    givenTurn(entry.firstTurn + index, message, message.role === "tool" ? events[results++] : undefined, imported),
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

function givenTurn(
  turn: number,
  message: ChatMessage,
  event: ToolEventDocument | undefined,
  imported: boolean,
): TurnView {
  return {
    ...nothing,
    turn,
    role: message.role,
    parts: shownParts(turn, message),
    toolCalls: toolCalls(message),
    result: message.role === "tool" ? toolResult(message, event, imported) : null,
    demonstration: isDemonstration(message),
  };
}

/** Imported messages say so beside what chat messages have. */
function isDemonstration(message: ChatMessage): boolean {
  return (message as { readonly demonstration?: unknown }).demonstration === true;
}

function toolCalls(message: ChatMessage): TurnView["toolCalls"] {
  return (message.role === "assistant" ? (message.tool_calls ?? []) : []).map(
    ({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      arguments: text,
    }),
  );
}

/** `event`: what the recipe reported of the same call. */
function toolResult(
  message: Extract<ChatMessage, { role: "tool" }>,
  event: ToolEventDocument | undefined,
  imported: boolean,
): TurnView["result"] {
  return {
    callId: message.tool_call_id,
    name: event?.name ?? null,
    error: event?.error?.message ?? null,
    milliseconds: imported ? null : (event?.durationMs ?? null),
  };
}

function sampledTurn(
  entry: CallEntry,
  call: CallDocument,
  message: Extract<ChatMessage, { role: "assistant" }>,
): TurnView {
  const versions = call.versions.map(({ version }) => version);
  const turn = entry.firstTurn + entry.messages;
  const demonstration = isDemonstration(message);
  // Its column has a number, as every call's; the file that it came from said nothing.
  const imported = call.dialect === "imported";
  const timed = !imported || (call.ended !== null && call.ended - call.started >= 1);
  return {
    ...nothing,
    turn,
    role: "assistant",
    parts: shownParts(turn, message),
    toolCalls: toolCalls(message),
    call: call.id,
    policyVersions: versions.length === 0 ? null : { min: Math.min(...versions), max: Math.max(...versions) },
    tokens: imported && entry.tokens === 0 ? null : { first: entry.firstToken, length: entry.tokens },
    finishReason: call.finishReason,
    temperature: imported ? null : call.temperature,
    promptTokens: imported ? null : call.usage.promptTokens,
    cachedTokens: imported ? null : call.usage.cachedTokens,
    started: timed ? call.started : null,
    ended: timed ? call.ended : null,
    drift: call.drift.kind === "none" ? null : call.drift,
    error: call.error,
    demonstration,
    trainable: call.temperature > 0 && !demonstration,
  };
}
