// Chat messages as they come in, as they are compared, and as a template sees them. Two messages are the same when a model
// would be shown the same, whatever optional keys a client adds on its way.
import { z } from "zod";
import type { AssistantMessage, ChatMessage, TextPart, ToolDefinition } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { parseJson, writeJson } from "./template/pythonJson.ts";
import { isDict } from "./template/values.ts";

const textPart = z.object({ type: z.literal("text"), text: z.string() });
const content = z.union([z.string(), z.array(textPart)]);
const toolCall = z.object({
  id: z.string().default(""),
  type: z.literal("function").default("function"),
  function: z.object({ name: z.string(), arguments: z.string().default("") }),
});

const messageSchema = z.discriminatedUnion("role", [
  z.object({ role: z.enum(["system", "developer", "user"]), content, name: z.string().optional() }),
  z.object({
    role: z.literal("assistant"),
    content: content.nullish(),
    reasoning_content: z.string().nullish(),
    tool_calls: z.array(toolCall).nullish(),
  }),
  z.object({ role: z.literal("tool"), content, tool_call_id: z.string().default("") }),
]);

const toolSchema = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({ name: z.string(), description: z.string().optional() }),
});

/** Errors: CAPTURE_REQUEST_INVALID naming the message; ENGINE_MEDIA_UNSUPPORTED for image parts. */
export function readMessages(value: unknown): ChatMessage[] {
  if (!Array.isArray(value) || value.length === 0) throw invalid("messages", "is not a list of at least one message");
  return value.map((item: unknown, index) => {
    const parsed = messageSchema.safeParse(item);
    if (parsed.success) return normalized(parsed.data);
    if (hasMedia(item)) {
      throw new RollscopeError("ENGINE_MEDIA_UNSUPPORTED", `messages[${index}] has a part that is not text.`, {
        next: "Send text parts only, or use an engine with media.",
        at: { message: index },
      });
    }
    const issue = parsed.error.issues[0];
    throw invalid(["messages", index, ...(issue?.path ?? [])].join("."), issue?.message ?? "is not a chat message");
  });
}

/** Errors: CAPTURE_REQUEST_INVALID. */
export function readTools(value: unknown): ToolDefinition[] {
  const parsed = z.array(toolSchema).safeParse(value);
  if (parsed.success) return parsed.data as ToolDefinition[];
  const issue = parsed.error.issues[0];
  throw invalid(["tools", ...(issue?.path ?? [])].join("."), issue?.message ?? "is not a list of tools");
}

export function invalid(key: string, what: string): RollscopeError {
  return new RollscopeError("CAPTURE_REQUEST_INVALID", `The request's ${key} is not usable: ${what}.`, {
    next: "Send what OpenAI's chat completions API describes.",
    at: { key },
  });
}

function normalized(message: z.infer<typeof messageSchema>): ChatMessage {
  if (message.role !== "assistant") {
    return (message.role === "developer" ? { ...message, role: "system" } : message) as ChatMessage;
  }
  return {
    role: "assistant",
    content: message.content ?? null,
    ...(message.reasoning_content == null ? {} : { reasoning_content: message.reasoning_content }),
    ...(message.tool_calls?.length ? { tool_calls: message.tool_calls } : {}),
  };
}

function hasMedia(item: unknown): boolean {
  const parts = (item as { content?: unknown } | null)?.content;
  return Array.isArray(parts) && parts.some((part: { type?: unknown } | null) => part?.type !== "text");
}

/** Text parts become one text, a line each. */
export function contentText(parts: string | readonly TextPart[] | null | undefined): string {
  if (parts === null || parts === undefined) return "";
  return typeof parts === "string" ? parts : parts.map((part) => part.text).join("\n");
}

/** Equal for messages that say the same. An assistant's absent content is empty content. */
export function messageKey(message: ChatMessage): string {
  const fields: unknown[] = [message.role, contentText(message.content)];
  if (message.role === "assistant") {
    fields.push(message.reasoning_content ?? "");
    for (const call of message.tool_calls ?? []) {
      fields.push([call.id, call.function.name, argumentKey(call.function.arguments)]);
    }
  } else if (message.role === "tool") {
    fields.push(message.tool_call_id);
  } else {
    fields.push(message.name ?? "");
  }
  return JSON.stringify(fields);
}

/** Arguments are compared as values: clients re-write their JSON. */
function argumentKey(text: string): string {
  try {
    return writeJson(parseJson(text), { sortKeys: true });
  } catch {
    return text;
  }
}

/** The message as templates expect it: content is text, arguments are an object where they are the JSON of one. */
export function templateMessage(message: ChatMessage): unknown {
  if (message.role !== "assistant") return { ...message, content: contentText(message.content) };
  const assistant: AssistantMessage = message;
  return {
    ...assistant,
    content: contentText(assistant.content),
    ...(assistant.tool_calls === undefined
      ? {}
      : {
          tool_calls: assistant.tool_calls.map((call) => ({
            ...call,
            function: { ...call.function, arguments: templateArguments(call.function.arguments) },
          })),
        }),
  };
}

function templateArguments(text: string): unknown {
  try {
    const value = parseJson(text);
    return isDict(value) ? value : text;
  } catch {
    return text;
  }
}
