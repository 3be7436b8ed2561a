// ShareGPT (`conversations` of {from, value}, tools as JSON text) and Alpaca (`instruction`, `input`, `output`).
import type { ImportedToolCall, ImportedTurn } from "../../../../../protocol/importedTrajectory.ts";
import { argumentsText, messageTurn, roleOf, toolsOf } from "../chatMessages.ts";
import { parseExact } from "../jsonText.ts";
import { type Element, isObject } from "../row.ts";
import {
  array,
  fixedTurns,
  header,
  listTurns,
  name,
  object,
  placeName,
  type RowFormat,
  ShapeError,
  sequence,
  text,
  textPart,
  turn,
  without,
} from "../turns.ts";
import { pair } from "./openAiChat.ts";

/** A {from, value} of any writer; one in OpenAI's form is read as such. */
export function sharegptTurn(element: Element): ImportedTurn {
  const { value } = element;
  if (!isObject(value)) throw new ShapeError("a message is no object");
  if (value["from"] === undefined && value["role"] !== undefined) return messageTurn(element);
  const from = text(value["from"]);
  const said = text(value["value"]) ?? text(value["content"]) ?? text(value["text"]);
  if (from === null || said === null) throw new ShapeError("a message lacks `from` or `value`");
  const kinds = [from];
  if (from === "function_call" || from === "tool_call") return turn("assistant", { kinds, ...calls(said) });
  const role = roleOf(from === "chatgpt" || from === "bing" || from === "bard" ? "gpt" : from);
  const left = value["weight"] === 0 || value["loss"] === false;
  return turn(role, {
    kinds,
    parts: [textPart(said)],
    result: role === "tool" ? { callId: null, name: null, error: null } : null,
    trainable: role === "assistant" && !left,
  });
}

/** JSON text of one call or several; what is no JSON stays visible as text. */
function calls(said: string): Partial<ImportedTurn> {
  try {
    const parsed = parseExact(said);
    const list = Array.isArray(parsed) ? parsed : [parsed];
    const toolCalls = list.map((call, index): ImportedToolCall => {
      if (!isObject(call)) throw new ShapeError("a call is no object");
      const path = Array.isArray(parsed) ? [index, "arguments"] : ["arguments"];
      return {
        id: name(call["id"]),
        name: name(call["name"]) ?? "",
        arguments: argumentsText(call["arguments"], () => said, path),
      };
    });
    return { toolCalls };
  } catch {
    return { parts: [textPart(said)] };
  }
}

export const sharegpt: RowFormat = {
  format: "sharegpt",
  lists: ["conversations", "conversation"],
  recognises: (value) => Array.isArray(value["conversations"]) || Array.isArray(value["conversation"]),
  open(row) {
    const list = row.list("conversations") ?? row.list("conversation");
    const system = text(row.value["system"]);
    const before = fixedTurns(
      system === null || system === "" ? [] : [turn("system", { parts: [textPart(system)], kinds: ["key:system"] })],
    );
    const conversation = sequence(before, listTurns(list, sharegptTurn));
    const about = {
      id: name(row.value["id"]) ?? placeName(row),
      tools: toolsOf(row.value["tools"]),
      metadata: without(row.value, ["conversations", "conversation", "tools", "system", "chosen", "rejected"]),
    };
    const { chosen, rejected } = row.value;
    if (!isObject(chosen) || !isObject(rejected)) return [{ header: header(row, about), turns: conversation }];
    const source = { start: row.place.start, end: row.place.end, line: row.place.line, member: row.source.member };
    return pair(row, about, conversation.count, (good) =>
      sequence(conversation, fixedTurns([sharegptTurn({ value: good ? chosen : rejected, text: "", source })])),
    );
  },
};

export const alpaca: RowFormat = {
  format: "alpaca",
  lists: [],
  recognises: (value) =>
    typeof value["instruction"] === "string" &&
    (typeof value["output"] === "string" ||
      (typeof value["chosen"] === "string" && typeof value["rejected"] === "string")),
  open(row) {
    const { value } = row;
    const system = text(value["system"]);
    const asked = [text(value["instruction"]) ?? "", text(value["input"]) ?? ""]
      .filter((part) => part !== "")
      .join("\n");
    const source = { start: row.place.start, end: row.place.end, line: row.place.line, member: row.source.member };
    const said = (role: "system" | "user" | "assistant", content: string, kind: string, trainable: boolean) =>
      turn(role, { parts: [textPart(content)], kinds: [kind], trainable, source });
    const before = [
      ...(system === null || system === "" ? [] : [said("system", system, "system", false)]),
      ...array(value["history"]).flatMap((round) => {
        const [question, answer] = array(round);
        return [
          said("user", text(question) ?? "", "history", false),
          said("assistant", text(answer) ?? "", "history", true),
        ];
      }),
      said("user", asked, "instruction", false),
    ];
    const about = {
      id: name(value["id"]) ?? placeName(row),
      tools: toolsOf(value["tools"]),
      metadata: without(object(value), [
        "instruction",
        "input",
        "output",
        "system",
        "history",
        "tools",
        "chosen",
        "rejected",
      ]),
    };
    const answered = (key: string) => fixedTurns([...before, said("assistant", text(value[key]) ?? "", key, true)]);
    if (typeof value["chosen"] !== "string") return [{ header: header(row, about), turns: answered("output") }];
    return pair(row, about, before.length, (good) => answered(good ? "chosen" : "rejected"));
  },
};
