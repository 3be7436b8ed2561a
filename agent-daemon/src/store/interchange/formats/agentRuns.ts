// Files of agents on software and customer tasks that keep messages almost as the API has them: SWE-agent, mini-swe-agent, tau-bench.
import { basename } from "node:path";
import type { ImportedTurn } from "../../../../../protocol/importedTrajectory.ts";
import { messageTurn } from "../chatMessages.ts";
import { type JsonObject, parseExact } from "../jsonText.ts";
import { type Element, isObject, type Row } from "../row.ts";
import {
  array,
  header,
  listTurns,
  name,
  number,
  object,
  placeName,
  type RowFormat,
  rewardOf,
  ShapeError,
  shortJson,
  text,
  textPart,
  turn,
  without,
} from "../turns.ts";

function sweTurn(element: Element): ImportedTurn {
  const made = messageTurn(element);
  const message = object(element.value);
  const demonstration = message["is_demo"] === true || message["message_type"] === "demonstration";
  return {
    ...made,
    name: null,
    demonstration,
    trainable: made.trainable && !demonstration,
    kinds: [text(message["message_type"]) ?? String(message["role"])],
  };
}

/** A step of `trajectory`, for files without `history`: what the model said, and what it saw. */
function stepTurn(element: Element): ImportedTurn {
  if (!isObject(element.value)) throw new ShapeError("a step is no object");
  const { response, thought, action, observation } = element.value;
  const said = text(response) ?? [text(thought), text(action)].filter((part) => part).join("\n");
  const seen = text(observation);
  return turn("assistant", {
    parts: [textPart(said), ...(seen === null ? [] : [textPart(`Observation:\n${seen}`)])],
    kinds: ["step"],
  });
}

function isSweHistory(value: JsonObject): boolean {
  const first = array(value["history"])[0];
  if (Array.isArray(value["history"])) return isObject(first) && typeof first["role"] === "string";
  const step = array(value["trajectory"])[0];
  return isObject(step) && "observation" in step && ("action" in step || "response" in step);
}

/** JSON text, or an object already. */
function parsedOrObject(value: JsonObject[string] | undefined): JsonObject {
  if (typeof value !== "string") return object(value);
  try {
    return object(parseExact(value));
  } catch {
    return {};
  }
}

export const sweAgent: RowFormat = {
  format: "swe-agent",
  lists: ["history", "trajectory"],
  recognises: isSweHistory,
  open(row) {
    const { value } = row;
    const info = object(value["info"]);
    const replay = parsedOrObject(value["replay_config"]);
    const agent = object(replay["agent"]);
    const history = row.list("history");
    return [
      {
        header: header(row, {
          id: fileName(row, ".traj"),
          task: name(object(replay["problem_statement"])["id"]) ?? name(value["instance_id"]),
          model: name(object(agent["model"])["name"]),
          exitStatus: text(info["exit_status"]),
          metadata: {
            ...without(value, ["history", "trajectory"]),
            steps: row.list("trajectory")?.count ?? 0,
          },
        }),
        turns: history === null ? listTurns(row.list("trajectory"), stepTurn) : listTurns(history, sweTurn),
      },
    ];
  },
};

function miniTurn(element: Element): ImportedTurn {
  const message = element.value;
  if (isObject(message) && (message["role"] === "exit" || message["role"] === "environment")) {
    const said = message["content"];
    return turn("user", {
      parts: [textPart(typeof said === "string" ? said : shortJson(said ?? null))],
      kinds: [message["role"]],
    });
  }
  return messageTurn(element);
}

/** A plain list of messages, or the wrapped form. */
export const miniSweAgent: RowFormat = {
  format: "mini-swe-agent",
  lists: ["", "messages"],
  recognises: (value) =>
    Array.isArray(value["messages"]) &&
    (typeof value["trajectory_format"] === "string" ||
      (isObject(value["info"]) && "exit_status" in object(value["info"]))),
  open(row) {
    const info = object(row.value["info"]);
    const config = object(info["config"]);
    return [
      {
        header: header(row, {
          id: fileName(row, ".traj.json"),
          task: name(row.value["instance_id"]) ?? name(info["instance_id"]),
          model: name(object(config["model"])["model_name"]),
          exitStatus: text(info["exit_status"]),
          metadata: without(row.value, ["messages"]),
        }),
        turns: listTurns(row.list("messages") ?? row.list(""), miniTurn),
      },
    ];
  },
};

/** A file of one trajectory names it. */
function fileName(row: Row, ending: string): string | null {
  return row.place.line === null && row.place.index === 0 ? basename(row.source.file, ending) : null;
}

export const tauBench: RowFormat = {
  format: "tau-bench",
  lists: ["traj"],
  recognises: (value) => Array.isArray(value["traj"]) && "task_id" in value,
  open(row) {
    const { value } = row;
    const task = name(value["task_id"]);
    const trial = name(value["trial"]);
    return [
      {
        header: header(row, {
          id: task === null ? placeName(row) : trial === null ? task : `${task}/${trial}`,
          task,
          group: task,
          score: number(value["reward"]),
          reward: value["reward"] === undefined ? {} : rewardOf("reward", value["reward"]),
          metadata: without(value, ["traj", "reward"]),
        }),
        turns: listTurns(row.list("traj"), messageTurn),
      },
    ];
  },
};
