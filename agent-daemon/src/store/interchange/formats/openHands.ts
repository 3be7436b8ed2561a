// OpenHands: a task a line, its history a stream of events. Each event is a turn; actions of the agent with their thought and tool
// call, observations as the answers. The old form has neither ids nor sources: what it says is told apart by order.
import type { JsonValue } from "../../../../../protocol/agent.ts";
import type { ImportedToolCall, ImportedTurn } from "../../../../../protocol/importedTrajectory.ts";
import { argumentsText, toolsOf } from "../chatMessages.ts";
import type { JsonObject } from "../jsonText.ts";
import { type Element, isObject, type Row } from "../row.ts";
import {
  array,
  header,
  listTurns,
  name,
  object,
  type RowFormat,
  ShapeError,
  shortJson,
  text,
  textPart,
  time,
  turn,
  without,
} from "../turns.ts";

function isEvent(value: JsonValue | undefined): boolean {
  return isObject(value) && (typeof value["action"] === "string" || typeof value["observation"] === "string");
}

/** Keys of an old event that say nothing about what was done. */
const plumbing = [
  "action",
  "thought",
  "is_confirmed",
  "action_risk",
  "confirmation_state",
  "security_risk",
  "keep_prompt",
];
const environmentEvents = new Set(["recall", "agent_state_changed", "change_agent_state", "null", "user_rejected"]);

function eventTurn(element: Element, index: number): ImportedTurn {
  const event = element.value;
  if (!isObject(event) || !isEvent(event)) throw new ShapeError("an event has neither action nor observation");
  const started = time(event["timestamp"]);
  return {
    ...(typeof event["action"] === "string" ? actionTurn(event, element, index) : observationTurn(event)),
    started,
  };
}

function actionTurn(event: JsonObject, element: Element, index: number): ImportedTurn {
  const action = String(event["action"]);
  const args = isObject(event["args"]) ? event["args"] : without(event, ["id", "source", "timestamp", "message"]);
  const kinds = [action];
  if (action === "system") return turn("system", { parts: [textPart(text(args["content"]) ?? "")], kinds });
  // Without a source, the first message is the task.
  const source = text(event["source"]) ?? (action === "message" && index === 0 ? "user" : "agent");
  if (source !== "agent") {
    const said = text(args["content"]) ?? text(event["message"]) ?? shortJson(without(args, plumbing));
    return turn("user", { parts: [textPart(said)], kinds, name: source === "user" ? null : source });
  }
  const call = toolCall(event, element);
  const thought = text(args["thought"]);
  if (call !== null) {
    const said = call.first ? call.said : null;
    return turn("assistant", {
      parts: said === null || said === "" ? [] : [textPart(said)],
      toolCalls: [call.call],
      kinds,
    });
  }
  const done = doneText(action, args);
  const parts = [thought, done].filter((part) => part !== null && part !== "").map((part) => textPart(part as string));
  return turn("assistant", { parts, kinds });
}

function doneText(action: string, args: JsonObject): string | null {
  if (action === "message") return text(args["content"]);
  if (action === "finish") return text(args["final_thought"]) ?? text(args["message"]);
  const only = text(args["command"]) ?? text(args["code"]) ?? text(args["url"]);
  if (only !== null) return only;
  const rest = without(args, plumbing);
  return Object.keys(rest).length === 0 ? null : shortJson(rest);
}

/** The call behind an action, as the model wrote it, and what the model said beside it. */
function toolCall(
  event: JsonObject,
  element: Element,
): { readonly call: ImportedToolCall; readonly first: boolean; readonly said: string | null } | null {
  const about = event["tool_call_metadata"];
  if (!isObject(about)) return null;
  const id = name(about["tool_call_id"]);
  const message = object(object(array(object(about["model_response"])["choices"])[0])["message"]);
  const calls = array(message["tool_calls"]);
  const at = calls.findIndex((call) => isObject(call) && name(call["id"]) === id);
  const wrote = object(object(calls[at])["function"]);
  const path = [
    "tool_call_metadata",
    "model_response",
    "choices",
    0,
    "message",
    "tool_calls",
    at,
    "function",
    "arguments",
  ];
  const written =
    at < 0
      ? argumentsText(event["args"], () => element.text, ["args"])
      : argumentsText(wrote["arguments"], () => element.text, path);
  return {
    call: { id, name: name(about["function_name"]) ?? name(wrote["name"]) ?? "", arguments: written },
    first: at <= 0,
    said: text(message["content"]),
  };
}

function observationTurn(event: JsonObject): ImportedTurn {
  const observation = String(event["observation"]);
  const kinds = [`observation:${observation}`];
  const said = text(event["content"]) ?? text(event["message"]) ?? "";
  const about = object(event["tool_call_metadata"]);
  const parts = [textPart(said)];
  if (environmentEvents.has(observation) && event["tool_call_metadata"] === undefined)
    return turn("user", { parts, kinds, name: "environment" });
  return turn("tool", {
    parts,
    kinds,
    result: {
      callId: name(about["tool_call_id"]),
      name: name(about["function_name"]) ?? observation,
      error: observation === "error" ? said : null,
    },
  });
}

export const openHands: RowFormat = {
  format: "openhands",
  lists: ["history"],
  recognises: (value) => isEvent(array(value["history"])[0]),
  async open(row) {
    const { value } = row;
    const metadata = object(value["metadata"]);
    const issue = value["issue"];
    const task = name(value["instance_id"]) ?? name(isObject(issue) ? issue["number"] : issue);
    return [
      {
        header: header(row, {
          id: task,
          task,
          model: name(object(metadata["llm_config"])["model"]),
          error: text(value["error"]),
          tools: await toolsOfHistory(row),
          score: typeof value["success"] === "boolean" ? Number(value["success"]) : null,
          metadata: without(value, ["history", "error"]),
        }),
        turns: listTurns(row.list("history"), eventTurn),
      },
    ];
  },
};

/** The system event, which has the tools, comes first. */
async function toolsOfHistory(row: Row) {
  for (const element of (await row.list("history")?.read(0, 3)) ?? []) {
    if ("problem" in element || !isObject(element.value) || element.value["action"] !== "system") continue;
    return toolsOf(object(element.value["args"])["tools"]);
  }
  return [];
}
