// Lines of OpenAI's fine-tuning files, its preference form, and our own chat export, which is the first with a key `rollscope`.
import type { ImportedTrajectory, RewardValue } from "../../../../../protocol/importedTrajectory.ts";
import { messageTurn, toolsOf } from "../chatMessages.ts";
import type { JsonObject } from "../jsonText.ts";
import { isObject, type Row } from "../row.ts";
import {
  array,
  count,
  flag,
  header,
  listTurns,
  name,
  number,
  object,
  placeName,
  type RowFormat,
  type RowTrajectory,
  rewardOf,
  sequence,
  text,
  time,
  without,
} from "../turns.ts";

function hasMessages(value: JsonObject): boolean {
  const first = array(value["messages"])[0];
  return (
    Array.isArray(value["messages"]) && (first === undefined || (isObject(first) && typeof first["role"] === "string"))
  );
}

export const openAiChat: RowFormat = {
  format: "openai-chat",
  lists: ["messages", "body.messages"],
  recognises: (value) => hasMessages(value) || hasMessages(object(value["body"])),
  open(row) {
    const inBody = row.list("messages") === null && row.list("body.messages") !== null;
    const value = inBody ? object(row.value["body"]) : row.value;
    return [
      {
        header: header(row, {
          id: name(row.value["id"]) ?? name(row.value["custom_id"]),
          task: name(row.value["task_id"]) ?? name(row.value["task"]),
          model: name(value["model"]),
          score: number(row.value["reward"] ?? row.value["score"]),
          reward: rewardsOf(row.value),
          tools: toolsOf(value["tools"] ?? value["functions"]),
          metadata: without(row.value, ["messages", "tools", "functions", "body"]),
        }),
        turns: listTurns(row.list(inBody ? "body.messages" : "messages"), messageTurn),
      },
    ];
  },
};

function rewardsOf(value: JsonObject): Record<string, RewardValue> {
  if (isObject(value["rewards"]))
    return Object.assign({}, ...Object.entries(value["rewards"]).map(([named, score]) => rewardOf(named, score)));
  return value["reward"] === undefined ? {} : rewardOf("reward", value["reward"]);
}

/** Keys of our chat export, beside OpenAI's `messages` and `tools`. */
export const rollscopeChat: RowFormat = {
  format: "rollscope-chat",
  lists: ["messages"],
  recognises: (value) => isObject(value["rollscope"]) && hasMessages(value),
  open(row) {
    const own = object(row.value["rollscope"]);
    const branch = object(own["branch"]);
    const kind = branch["kind"];
    return [
      {
        header: header(row, {
          id: name(own["id"]),
          task: name(own["task"]),
          group: name(own["group"]),
          labels: array(own["labels"]).flatMap((label) => text(label) ?? []),
          model: name(own["model"]),
          split: name(own["split"]),
          step: count(own["step"]),
          exitStatus: name(own["exitStatus"]),
          score: number(row.value["reward"]),
          error: text(own["error"]),
          truncated: flag(own["truncated"]),
          branch:
            kind === "branch" || kind === "sidechain" || kind === "chosen" || kind === "rejected"
              ? {
                  kind,
                  index: count(branch["index"]) ?? 0,
                  of: Math.max(1, count(branch["of"]) ?? 1),
                  parts: count(branch["parts"]),
                  drifted: flag(branch["drifted"]) ?? false,
                }
              : null,
          reward: rewardsOf({ rewards: row.value["rewards"] ?? {} }),
          tools: toolsOf(row.value["tools"]),
          started: time(own["started"]),
          ended: time(own["ended"]),
          metadata: object(row.value["metadata"]),
        }),
        turns: listTurns(row.list("messages"), messageTurn),
      },
    ];
  },
};

/** Two answers to one conversation. */
export const openAiPreference: RowFormat = {
  format: "openai-preference",
  lists: ["input.messages", "preferred_output", "non_preferred_output"],
  recognises: (value) =>
    hasMessages(object(value["input"])) && ("preferred_output" in value || "non_preferred_output" in value),
  open(row) {
    const shared = listTurns(row.list("input.messages"), async (element) => ({
      ...messageTurn(element),
      trainable: false,
    }));
    const tools = toolsOf(object(row.value["input"])["tools"]);
    const metadata = without(row.value, ["preferred_output", "non_preferred_output", "input"]);
    return pair(row, { tools, metadata }, shared.count, (chosen) =>
      sequence(shared, listTurns(row.list(chosen ? "preferred_output" : "non_preferred_output"), messageTurn)),
    );
  },
};

/** The chosen and the rejected trajectory of a record. */
export function pair(
  row: Row,
  about: Partial<ImportedTrajectory>,
  parts: number | null,
  turnsOf: (chosen: boolean) => RowTrajectory["turns"],
): RowTrajectory[] {
  const id = about.id ?? name(row.value["id"]) ?? placeName(row);
  return [true, false].map((chosen) => ({
    header: {
      ...header(row, { ...about, id: `${id}/${chosen ? "chosen" : "rejected"}` }),
      labels: [chosen ? "chosen" : "rejected"],
      group: id,
      branch: {
        kind: chosen ? ("chosen" as const) : ("rejected" as const),
        index: chosen ? 0 : 1,
        of: 2,
        parts: chosen ? null : parts,
        drifted: false,
      },
    },
    turns: turnsOf(chosen),
  }));
}
