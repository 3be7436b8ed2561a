// Turns as the messages that records hold, and back to lines of chat. Images become blobs; what chat messages have no key for is
// kept under keys that readers of chat messages pass over.
import type { AssistantMessage, ChatMessage, TextPart, ToolCall } from "../../../../protocol/agent.ts";
import type { ImportedPart, ImportedTurn } from "../../../../protocol/importedTrajectory.ts";
import type { BlobStore } from "../interface.ts";
import { isObject } from "./row.ts";

/** A text part that stands for an image: its text says so wherever images cannot be shown. */
export interface ImagePart extends TextPart {
  readonly image: { readonly mediaType: string | null } & ({ readonly hash: string } | { readonly url: string });
}

/** Ids of tool calls that the source does not name: `call-1`, `call-2` in the order of the trajectory. */
export class CallNames {
  private given = 0;
  /** Calls that have no answer yet, oldest first. */
  private readonly open: {
    readonly id: string;
    readonly name: string;
    readonly arguments: string;
    readonly from: string;
  }[] = [];

  /** @param from the model call that asks */
  ask(calls: ImportedTurn["toolCalls"], from: string): ToolCall[] {
    return calls.map((call) => {
      const id = call.id ?? `call-${++this.given}`;
      this.open.push({ id, name: call.name, arguments: call.arguments, from });
      return { id, type: "function", function: { name: call.name, arguments: call.arguments } };
    });
  }

  /** The call that is answered: the one of that id, else the oldest without an answer. */
  answer(
    id: string | null,
  ): { readonly id: string; readonly name: string; readonly arguments: string; readonly from: string } | null {
    const at = id === null ? 0 : this.open.findIndex((call) => call.id === id);
    return at < 0 ? null : (this.open.splice(at, 1)[0] ?? null);
  }
}

export async function storedParts(parts: readonly ImportedPart[], blobs: BlobStore): Promise<string | TextPart[]> {
  const shown = parts.filter((part) => part.kind !== "reasoning");
  if (shown.length === 1 && shown[0]?.kind === "text") return shown[0].text;
  const stored: TextPart[] = [];
  for (const part of shown) {
    if (part.kind === "text") stored.push({ type: "text", text: part.text });
    else if (part.kind === "image") stored.push(await storedImage(part, blobs));
  }
  return stored.length === 0 ? "" : stored;
}

async function storedImage(part: Extract<ImportedPart, { kind: "image" }>, blobs: BlobStore): Promise<ImagePart> {
  const { mediaType } = part;
  const shown = `[image${mediaType === null ? "" : ` ${mediaType}`}]`;
  const encoded = /^data:[^,]*;base64,(.*)$/s.exec(part.reference)?.[1];
  if (encoded === undefined) return { type: "text", text: shown, image: { mediaType, url: part.reference } };
  const hash = await blobs.put(new Uint8Array(Buffer.from(encoded, "base64")));
  return { type: "text", text: shown, image: { mediaType, hash } };
}

function reasoningOf(parts: readonly ImportedPart[]): string | null {
  const texts = parts.flatMap((part) => (part.kind === "reasoning" ? [part.text] : []));
  return texts.length === 0 ? null : texts.join("\n\n");
}

export async function assistantMessage(
  turn: ImportedTurn,
  toolCalls: readonly ToolCall[],
  blobs: BlobStore,
): Promise<AssistantMessage> {
  const reasoning = reasoningOf(turn.parts);
  const content = turn.parts.some((part) => part.kind !== "reasoning") ? await storedParts(turn.parts, blobs) : null;
  return {
    role: "assistant",
    content,
    ...(turn.name === null ? {} : { name: turn.name }),
    ...(reasoning === null ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    ...(turn.demonstration ? { demonstration: true } : {}),
  };
}

export async function givenMessage(turn: ImportedTurn, callId: string | null, blobs: BlobStore): Promise<ChatMessage> {
  const content = await storedParts(turn.parts, blobs);
  const more = turn.demonstration ? { demonstration: true } : {};
  if (turn.role === "tool") {
    const name = turn.result?.name ?? null;
    const error = turn.result?.error ?? null;
    return {
      role: "tool",
      content,
      tool_call_id: callId ?? "",
      ...(name === null ? {} : { name }),
      ...(error === null ? {} : { error }),
      ...more,
    } as ChatMessage;
  }
  return { role: turn.role, content, ...(turn.name === null ? {} : { name: turn.name }), ...more } as ChatMessage;
}

/** A stored message as a line of chat has it: images are image parts again, as data URLs. */
export async function exportedMessage(message: ChatMessage, blobs: BlobStore): Promise<{ [key: string]: unknown }> {
  const { content } = message;
  const copy: { [key: string]: unknown } = { ...message };
  if (message.role === "tool" && message.tool_call_id === "") delete copy["tool_call_id"];
  if (!Array.isArray(content)) return copy;
  const parts: unknown[] = [];
  for (const part of content as readonly TextPart[])
    parts.push(isImage(part) ? await exportedImage(part, blobs) : part);
  copy["content"] = parts;
  return copy;
}

export function isImage(part: TextPart): part is ImagePart {
  return isObject((part as Partial<ImagePart>).image);
}

async function exportedImage({ image }: ImagePart, blobs: BlobStore): Promise<unknown> {
  if ("url" in image) return { type: "image_url", image_url: { url: image.url } };
  const encoded = Buffer.from(await blobs.get(image.hash)).toString("base64");
  return {
    type: "image_url",
    image_url: { url: `data:${image.mediaType ?? "application/octet-stream"};base64,${encoded}` },
  };
}
