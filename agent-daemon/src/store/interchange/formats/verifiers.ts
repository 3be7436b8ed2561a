// Verifiers: traces (a tree of nodes with token columns; every leaf is a trajectory) and its older results, and the flat rollout
// dumps of other trainers.
import type { JsonValue } from "../../../../../protocol/agent.ts";
import type { ImportedTokens, ImportedTurn, RewardValue } from "../../../../../protocol/importedTrajectory.ts";
import { errorOf, messageTurn, toolsOf, turnOfMessage } from "../chatMessages.ts";
import type { JsonObject } from "../jsonText.ts";
import { type Element, type ElementList, isObject, type Row } from "../row.ts";
import {
  array,
  count,
  fixedTurns,
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

export const verifiersTraces: RowFormat = {
  format: "verifiers-v1",
  lists: ["traces.*.nodes", "nodes"],
  recognises: (value) => {
    if (Array.isArray(value["nodes"])) return "rewards" in value || "stop_condition" in value || "agent" in value;
    const first = array(value["traces"])[0];
    return (
      Array.isArray(value["traces"]) &&
      (first === undefined || (isObject(first) && ("nodes" in first || "id" in first)))
    );
  },
  async open(row) {
    if (row.list("nodes") !== null) return traceTrajectories(row, row.value, row.list("nodes"), {});
    const trajectories: RowTrajectory[] = [];
    for (const [index, trace] of array(row.value["traces"]).entries()) {
      if (isObject(trace))
        trajectories.push(...(await traceTrajectories(row, trace, row.list(`traces.${index}.nodes`), row.value)));
    }
    return trajectories;
  },
};

async function traceTrajectories(
  row: Row,
  trace: JsonObject,
  nodes: ElementList | null,
  episode: JsonObject,
): Promise<RowTrajectory[]> {
  const paths = nodes === null ? [[]] : await leafPaths(nodes, row.complete);
  const task = object(trace["task"] ?? episode["task"]);
  const run = object(episode["run"] ?? trace["run"]);
  const work = object(run["work"]);
  const agent = object(trace["agent"]);
  const id = name(trace["id"]) ?? placeName(row);
  const reward: Record<string, RewardValue> = {};
  let total: number | null = null;
  for (const [named, given] of Object.entries(object(trace["rewards"]))) {
    const score = number(isObject(given) ? given["score"] : given);
    const weight = (isObject(given) ? number(given["weight"]) : null) ?? 1;
    reward[named] = score;
    if (score !== null) total = (total ?? 0) + score * weight;
  }
  const errors = [...array(trace["errors"]), ...array(episode["errors"])];
  const trainable = flag(agent["trainable"]) ?? true;
  return paths.map((path, index) => ({
    header: header(row, {
      id: index === 0 ? id : `${id}/${index}`,
      task: name(task["key"]) ?? name(object(task["data"])["idx"]),
      group: name(object(episode["group"])["id"]),
      labels: trainable ? [] : ["not trainable"],
      model: name(object(agent["config"])["model"]),
      split: text(run["type"]),
      step: count(work["step"]),
      exitStatus: text(trace["stop_condition"]),
      score: total,
      error: errors.length === 0 ? null : errorOf(errors[0]),
      truncated: flag(trace["is_truncated"]),
      branch:
        paths.length === 1
          ? null
          : {
              kind: "branch",
              index,
              of: paths.length,
              parts: index === 0 ? null : partsAt(paths[0] ?? [], path),
              drifted: index > 0,
            },
      reward,
      tools: toolsOf(trace["tools"]),
      columns: ["id", "mask", "logprob", "advantage"],
      started: time(object(trace["timing"])["start"]),
      metadata: {
        ...without(trace, ["nodes", "tools", "rewards", "task"]),
        episode: without(episode, ["traces"]),
        path: [...path],
      },
    }),
    turns: pathTurns(nodes, path, row.complete, trainable),
  }));
}

/** Node numbers from the root to each leaf. While the record is being read, its nodes in order. */
async function leafPaths(nodes: ElementList, complete: boolean): Promise<number[][]> {
  if (!complete) return [[]];
  const parents: (number | null)[] = [];
  for (let first = 0; first < nodes.count; first += 256) {
    for (const element of await nodes.read(first, first + 256)) {
      const parent = "problem" in element ? null : object(element.value)["parent"];
      const known = typeof parent === "number" && Number.isInteger(parent) && parent >= 0 && parent < parents.length;
      parents.push(known ? parent : null);
    }
  }
  if (parents.length === 0) return [[]];
  const inner = new Set(parents);
  return parents.flatMap((_parent, leaf) => {
    if (inner.has(leaf)) return [];
    const path: number[] = [];
    for (let node: number | null = leaf; node !== null; node = parents[node] ?? null) path.push(node);
    return [path.reverse()];
  });
}

function partsAt(first: readonly number[], path: readonly number[]): number {
  const at = path.findIndex((node, index) => node !== first[index]);
  return at < 0 ? path.length : at;
}

function pathTurns(
  nodes: ElementList | null,
  path: readonly number[],
  complete: boolean,
  trainable: boolean,
): TurnSequence {
  if (nodes === null) return fixedTurns([]);
  const make = (element: Element) => nodeTurn(element, trainable);
  if (!complete) return listTurns(nodes, make);
  const along: ElementList = {
    count: path.length,
    read: async (from, to) => {
      const wanted = path.slice(from, to);
      const first = Math.min(...wanted);
      // Neighbouring nodes lie together; a path that jumps far is read node by node.
      if (wanted.length > 0 && Math.max(...wanted) - first < wanted.length * 4) {
        const elements = await nodes.read(first, Math.max(...wanted) + 1);
        return wanted.map((node) => elements[node - first] as Element);
      }
      return (await Promise.all(wanted.map((node) => nodes.read(node, node + 1)))).flat();
    },
  };
  return listTurns(along, make);
}

function nodeTurn(element: Element, trainable: boolean): ImportedTurn {
  const node = element.value;
  if (!isObject(node) || !isObject(node["message"])) throw new ShapeError("a node has no message");
  const made = turnOfMessage(node["message"], () => element.text, ["message"]);
  const tokens = tokensOf(node);
  return {
    ...made,
    trainable: made.role === "assistant" && trainable && node["sampled"] === true,
    started: time(node["timestamp"]),
    kinds: [made.role, ...(node["sampled"] === true ? ["sampled"] : [])],
    tokens,
  };
}

/** Columns of a node. @throws ShapeError when their lengths contradict each other */
function tokensOf(node: JsonObject): ImportedTokens | null {
  const ids = numbers(node["token_ids"]);
  if (ids === null) return null;
  const mask =
    node["mask"] === undefined
      ? ids.map(() => 0)
      : array(node["mask"]).map((each) => (each === true || each === 1 ? 1 : 0));
  const sampled = mask.reduce<number>((sum, each) => sum + each, 0);
  if (mask.length !== ids.length) throw new ShapeError(`it has ${ids.length} token ids and a mask of ${mask.length}`);
  const column = (key: string): number[] | null => {
    const values = numbers(node[key]);
    if (values === null || (values.length === 0 && sampled > 0)) return null;
    if (values.length !== sampled) throw new ShapeError(`it has ${sampled} sampled tokens and ${values.length} ${key}`);
    return values;
  };
  return { ids, sampled: mask, logprobs: column("logprobs"), advantages: column("advantages") };
}

function numbers(value: JsonValue | undefined): number[] | null {
  if (!Array.isArray(value)) return null;
  return value.map((each) => {
    if (typeof each !== "number") throw new ShapeError("a token column has something else than numbers");
    return each;
  });
}

export const verifiersResults: RowFormat = {
  format: "verifiers-legacy",
  lists: ["prompt", "completion"],
  recognises: (value) =>
    "prompt" in value &&
    "completion" in value &&
    ("example_id" in value ||
      ("reward" in value && ("metrics" in value || "answer" in value || "is_completed" in value))),
  open(row) {
    const { value } = row;
    const example = name(value["example_id"]) ?? name(value["id"]);
    const metrics = object(value["metrics"]);
    const timing = object(value["timing"]);
    const said = (key: "prompt" | "completion"): TurnSequence => {
      const list = row.list(key);
      const sampled = key === "completion";
      if (list !== null)
        return listTurns(list, (element) => {
          const made = messageTurn(element);
          return { ...made, trainable: made.trainable && sampled, kinds: [key] };
        });
      const plain = value[key];
      if (plain === null || plain === undefined) return fixedTurns([]);
      const content = typeof plain === "string" ? plain : shortJson(plain);
      return fixedTurns([turn(sampled ? "assistant" : "user", { parts: [textPart(content)], kinds: [key] })]);
    };
    const parts = Object.entries(metrics).map(([named, score]) => rewardOf(named, score));
    return [
      {
        header: header(row, {
          id: example === null ? null : `${example}/${placeName(row)}`,
          task: example,
          group: example,
          exitStatus: text(value["stop_condition"]),
          score: number(value["reward"]),
          reward: Object.assign({}, ...parts),
          error: errorOf(value["error"]),
          truncated: flag(value["is_truncated"]),
          tools: toolsOf(value["tool_defs"]),
          started: time(timing["start_time"]),
          ended: time(object(timing["scoring"])["end"]),
          metadata: without(value, ["prompt", "completion", "tool_defs", "metrics", ...Object.keys(metrics)]),
        }),
        turns: sequence(said("prompt"), said("completion")),
      },
    ];
  },
};
