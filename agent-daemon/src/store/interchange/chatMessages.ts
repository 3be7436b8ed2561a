// Messages in the form of OpenAI's chat API, as most tools write them, and the tool definitions beside them.
import type { JsonValue } from "../../../../protocol/agent.ts";
import type {
  ImportedPart,
  ImportedRole,
  ImportedToolCall,
  ImportedTrajectory,
  ImportedTurn,
} from "../../../../protocol/importedTrajectory.ts";
import { type JsonObject, parseExact, sliceAt } from "./jsonText.ts";
import { type Element, isObject } from "./row.ts";
import { array, name, number, object, ShapeError, shortJson, text, textPart, turn } from "./turns.ts";

const roles: { readonly [role: string]: ImportedRole } = {
  system: "system",
  developer: "developer",
  user: "user",
  human: "user",
  assistant: "assistant",
  gpt: "assistant",
  model: "assistant",
  ai: "assistant",
  tool: "tool",
  function: "tool",
  observation: "tool",
};

/** @throws ShapeError when nobody speaks so */
export function roleOf(value: JsonValue | undefined): ImportedRole {
  const role = typeof value === "string" && Object.hasOwn(roles, value) ? roles[value] : undefined;
  if (role === undefined) throw new ShapeError(`its role is ${shortJson(value ?? null).slice(0, 60)}`);
  return role;
}

/** Text, or a list of parts of OpenAI's, Anthropic's or Inspect's kind. */
export function partsOf(content: JsonValue | undefined): ImportedPart[] {
  if (content === undefined || content === null) return [];
  if (typeof content === "string") return [textPart(content)];
  if (!Array.isArray(content)) return [textPart(shortJson(content))];
  return content.map(partOf);
}

function partOf(part: JsonValue): ImportedPart {
  if (typeof part === "string") return textPart(part);
  if (!isObject(part)) return textPart(shortJson(part));
  switch (part["type"]) {
    case "text":
    case "input_text":
    case "output_text":
      return textPart(text(part["text"]) ?? "");
    case "refusal":
      return textPart(text(part["refusal"]) ?? "");
    case "reasoning":
      return { kind: "reasoning", text: text(part["reasoning"]) ?? text(part["text"]) ?? "" };
    case "thinking":
      return { kind: "reasoning", text: text(part["thinking"]) ?? "" };
    case "redacted_thinking":
      return { kind: "reasoning", text: "[redacted]" };
    case "image":
    case "image_url":
    case "input_image":
      return imageOf(part) ?? textPart(shortJson(part));
    default: {
      // A part without a type that has text is text; whatever else there is stays visible as its JSON.
      const plain = part["type"] === undefined ? text(part["text"]) : null;
      return textPart(plain ?? shortJson(part));
    }
  }
}

function imageOf(part: JsonObject): ImportedPart | null {
  const source = object(part["source"]);
  const encoded = text(source["data"]);
  if (encoded !== null) {
    const mediaType = text(source["media_type"]) ?? "application/octet-stream";
    return { kind: "image", reference: `data:${mediaType};base64,${encoded}`, mediaType };
  }
  const url = part["image_url"];
  const reference =
    text(url) ?? text(object(url)["url"]) ?? text(part["image"]) ?? text(part["url"]) ?? text(source["url"]);
  if (reference === null) return null;
  return { kind: "image", reference, mediaType: /^data:([^;,]+)/.exec(reference)?.[1] ?? null };
}

/**
 * Tool calls of a message: OpenAI's {id, function: {name, arguments}}, the flat {id, name | function, arguments}, or JSON text
 * of either. Arguments that are objects are the file's own text.
 */
export function toolCallsOf(
  message: JsonObject,
  source: () => string,
  path: readonly (string | number)[],
): ImportedToolCall[] {
  const calls = message["tool_calls"];
  if (!Array.isArray(calls)) {
    const call = message["function_call"];
    return isObject(call) ? [toolCallOf(call, source, [...path, "function_call"])] : [];
  }
  return calls.map((call, index) => {
    if (typeof call !== "string") return toolCallOf(call, source, [...path, "tool_calls", index]);
    try {
      return toolCallOf(parseExact(call), () => call, []);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return { id: null, name: "", arguments: call };
    }
  });
}

export function toolCallOf(
  call: JsonValue,
  source: () => string,
  path: readonly (string | number)[],
): ImportedToolCall {
  if (!isObject(call)) throw new ShapeError("a tool call is no object");
  const inner = isObject(call["function"]) ? (call["function"] as JsonObject) : null;
  const given = inner === null ? call["arguments"] : inner["arguments"];
  const where = inner === null ? [...path, "arguments"] : [...path, "function", "arguments"];
  return {
    id: name(call["id"]) ?? name(call["call_id"]),
    name: name(inner?.["name"]) ?? name(call["name"]) ?? name(call["function"]) ?? "",
    arguments: argumentsText(given, source, where),
  };
}

/** Text as it is; of anything else the text that the file has there. */
export function argumentsText(
  value: JsonValue | undefined,
  source: () => string,
  path: readonly (string | number)[],
): string {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return "";
  return sliceAt(source(), path) ?? shortJson(value);
}

/** Of a tool's answer: what went wrong, as text. */
export function errorOf(value: JsonValue | undefined): string | null {
  if (value === undefined || value === null || value === false) return null;
  if (typeof value === "string") return value;
  if (!isObject(value)) return shortJson(value);
  const kind = text(value["type"]);
  const message = text(value["message"]);
  if (message === null) return kind ?? shortJson(value);
  return kind === null ? message : `${kind}: ${message}`;
}

/** One message of a list. @throws ShapeError */
export function messageTurn(element: Element): ImportedTurn {
  if (!isObject(element.value)) throw new ShapeError("a message is no object");
  return turnOfMessage(element.value, () => element.text, []);
}

/** @param path of the message inside `source` */
export function turnOfMessage(
  message: JsonObject,
  source: () => string,
  path: readonly (string | number)[],
): ImportedTurn {
  const role = roleOf(message["role"]);
  const parts = partsOf(message["content"]);
  if (role === "assistant" && parts.length === 0 && typeof message["refusal"] === "string")
    parts.push(textPart(message["refusal"]));
  const reasoning = text(message["reasoning_content"]) ?? text(message["reasoning"]);
  if (reasoning !== null && reasoning !== "") parts.unshift({ kind: "reasoning", text: reasoning });
  return turn(role, {
    parts,
    name: role === "tool" ? null : name(message["name"]),
    toolCalls: role === "assistant" ? toolCallsOf(message, source, path) : [],
    result:
      role === "tool"
        ? {
            callId: name(message["tool_call_id"]) ?? name(array(message["tool_call_ids"])[0]),
            name: name(message["name"]) ?? name(message["function"]),
            error: errorOf(message["error"]),
          }
        : null,
    demonstration: message["demonstration"] === true,
    trainable: role === "assistant" && number(message["weight"]) !== 0,
    kinds: [String(message["role"])],
  });
}

/** OpenAI's tools in either form, Anthropic's, or JSON text of a list of them. */
export function toolsOf(value: JsonValue | undefined): ImportedTrajectory["tools"] {
  let list = value;
  if (typeof value === "string") {
    try {
      list = parseExact(value);
    } catch {
      return [];
    }
  }
  return array(list).flatMap((tool) => {
    if (!isObject(tool)) return [];
    const definition = isObject(tool["function"]) ? tool["function"] : tool;
    const named = name(definition["name"]);
    if (named === null) return [];
    const parameters = definition["parameters"] ?? definition["input_schema"];
    return [{ name: named, description: text(definition["description"]) ?? "", parameters: parameters ?? {} }];
  });
}
