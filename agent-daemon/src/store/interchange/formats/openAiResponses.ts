// OpenAI's Responses API, as NeMo Gym keeps rollouts of it and as bare request and response: one turn an item, in order.
import type { ImportedTurn } from "../../../../../protocol/importedTrajectory.ts";
import { argumentsText, errorOf, partsOf, toolsOf, turnOfMessage } from "../chatMessages.ts";
import { type Element, isObject, type Row } from "../row.ts";
import {
  array,
  fixedTurns,
  flag,
  header,
  listTurns,
  name,
  number,
  object,
  type RowFormat,
  type RowTrajectory,
  rewardOf,
  ShapeError,
  sequence,
  shortJson,
  type TurnSequence,
  text,
  textPart,
  time,
  turn,
  without,
} from "../turns.ts";

function itemTurn(element: Element, sampled: boolean): ImportedTurn {
  const item = element.value;
  if (!isObject(item)) throw new ShapeError("an item is no object");
  const type = text(item["type"]) ?? "message";
  switch (type) {
    case "message": {
      const made = turnOfMessage(item, () => element.text, []);
      return { ...made, trainable: made.trainable && sampled, kinds: [`message:${String(item["role"])}`] };
    }
    case "function_call":
    case "custom_tool_call": {
      const key = type === "function_call" ? "arguments" : "input";
      const call = {
        id: name(item["call_id"]) ?? name(item["id"]),
        name: name(item["name"]) ?? "",
        arguments: argumentsText(item[key], () => element.text, [key]),
      };
      return turn("assistant", { toolCalls: [call], kinds: [type], trainable: sampled });
    }
    case "function_call_output":
    case "custom_tool_call_output":
      return turn("tool", {
        parts: partsOf(item["output"]),
        result: { callId: name(item["call_id"]), name: name(item["name"]), error: errorOf(item["error"]) },
        kinds: [type],
      });
    case "reasoning": {
      const texts = [...array(item["summary"]), ...array(item["content"])].flatMap(
        (part) => text(object(part)["text"]) ?? [],
      );
      const parts = texts.map((each) => ({ kind: "reasoning" as const, text: each }));
      return turn("assistant", { parts, kinds: [type], trainable: sampled });
    }
    default:
      return turn("assistant", { parts: [textPart(shortJson(item))], kinds: [type], trainable: sampled });
  }
}

function inputTurns(row: Row, path: string, asked: ReturnType<typeof object>): TurnSequence {
  const before: ImportedTurn[] = [];
  const instructions = text(asked["instructions"]);
  if (instructions !== null && instructions !== "")
    before.push(turn("system", { parts: [textPart(instructions)], kinds: ["key:instructions"] }));
  const input = text(asked["input"]);
  if (input !== null) before.push(turn("user", { parts: [textPart(input)], kinds: ["message:user"] }));
  const items = listTurns(row.list(path), (element) => itemTurn(element, false));
  return sequence(fixedTurns(before), items);
}

function outputTurns(row: Row, path: string): TurnSequence {
  return listTurns(row.list(path), (element) => itemTurn(element, true));
}

export const nemoGym: RowFormat = {
  format: "nemo-gym",
  lists: ["responses_create_params.input", "response.output"],
  recognises: (value) => isObject(value["responses_create_params"]) && isObject(value["response"]),
  open(row): RowTrajectory[] {
    const { value } = row;
    const asked = object(value["responses_create_params"]);
    const response = object(value["response"]);
    const task = name(value["_ng_task_index"]) ?? name(value["id"]);
    const rollout = name(value["_ng_rollout_index"]);
    return [
      {
        header: header(row, {
          id: task !== null && rollout !== null ? `${task}/${rollout}` : null,
          task,
          group: name(value["_ng_task_index"]),
          model: name(response["model"]),
          exitStatus: text(response["status"]),
          score: number(value["reward"]),
          reward: value["reward"] === undefined ? {} : rewardOf("reward", value["reward"]),
          error: errorOf(response["error"]),
          truncated: flag(value["truncated"]),
          tools: toolsOf(asked["tools"]),
          started: time(response["created_at"]),
          metadata: {
            ...without(value, ["responses_create_params", "response", "reward"]),
            usage: response["usage"] ?? null,
          },
        }),
        turns: sequence(inputTurns(row, "responses_create_params.input", asked), outputTurns(row, "response.output")),
      },
    ];
  },
};

export const openAiResponses: RowFormat = {
  format: "openai-responses",
  lists: ["input", "output", "request.input", "response.output"],
  recognises: (value) =>
    (Array.isArray(value["output"]) && (value["object"] === "response" || "input" in value)) ||
    (isObject(value["request"]) && Array.isArray(object(value["response"])["output"])),
  open(row): RowTrajectory[] {
    const { value } = row;
    const apart = isObject(value["response"]);
    const asked = apart ? object(value["request"]) : value;
    const response = apart ? object(value["response"]) : value;
    return [
      {
        header: header(row, {
          id: name(response["id"]) ?? name(value["custom_id"]),
          model: name(response["model"]),
          exitStatus: text(response["status"]),
          score: number(value["reward"]),
          reward: value["reward"] === undefined ? {} : rewardOf("reward", value["reward"]),
          error: errorOf(response["error"]),
          truncated: response["status"] === "incomplete" ? true : null,
          tools: toolsOf(asked["tools"] ?? response["tools"]),
          started: time(response["created_at"]),
          metadata: without(value, ["input", "output", "request", "response", "tools", "instructions"]),
        }),
        turns: sequence(
          inputTurns(row, apart ? "request.input" : "input", asked),
          outputTurns(row, apart ? "response.output" : "output"),
        ),
      },
    ];
  },
};
