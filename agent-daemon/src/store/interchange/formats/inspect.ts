// Inspect AI logs: each sample of a log is a trajectory. Texts that a log keeps apart as attachments are put back in their place.
import type { JsonValue } from "../../../../../protocol/agent.ts";
import type { ImportedPart, ImportedTurn } from "../../../../../protocol/importedTrajectory.ts";
import { messageTurn, toolsOf } from "../chatMessages.ts";
import type { JsonObject } from "../jsonText.ts";
import { type Element, isObject, type Row } from "../row.ts";
import {
  array,
  fixedTurns,
  header,
  listTurns,
  name,
  number,
  object,
  type RowFormat,
  type RowTrajectory,
  rewardOf,
  text,
  textPart,
  time,
  turn,
  without,
} from "../turns.ts";

const reference = /(?:attachment|tc):\/\/([0-9a-f]{8,64})/g;

export const inspectLog: RowFormat = {
  format: "inspect",
  lists: ["samples.*.messages", "samples.*.events", "samples.*.transcript.events"],
  maps: ["samples.*.attachments"],
  recognises: (value) =>
    isObject(value["eval"]) && ("samples" in value || "plan" in value || "status" in value || "version" in value),
  open: (row) =>
    array(row.value["samples"]).flatMap((sample, index) =>
      isObject(sample) ? [openSample(row, `samples.${index}.`, sample, row.value)] : [],
    ),
};

/** A sample of its own, as a member of an .eval file; `log` is its header.json. */
export function inspectSample(log: JsonObject): RowFormat {
  return {
    format: "inspect",
    lists: ["messages", "events", "transcript.events"],
    maps: ["attachments"],
    recognises: (value) => "epoch" in value && ("messages" in value || "input" in value),
    open: (row) => [openSample(row, "", row.value, log)],
  };
}

/** What a log says about itself as a whole. */
export function inspectLogFacts(log: JsonObject): JsonObject {
  const about = object(log["eval"]);
  return {
    status: log["status"] ?? null,
    task: about["task"] ?? null,
    model: about["model"] ?? null,
    created: about["created"] ?? null,
    results: log["results"] ?? null,
    error: log["error"] ?? null,
  };
}

function openSample(row: Row, prefix: string, sample: JsonObject, log: JsonObject): RowTrajectory {
  const about = object(log["eval"]);
  const task = name(about["task"]);
  const id = name(sample["id"]);
  const epoch = name(sample["epoch"]);
  const sampleName = id === null ? null : epoch === null ? id : `${id}_epoch_${epoch}`;
  const scores = object(sample["scores"]);
  const reward = Object.entries(scores).map(([scorer, score]) =>
    rewardOf(scorer, isObject(score) ? score["value"] : score),
  );
  const values = Object.values(scores).map((score) => number(isObject(score) ? score["value"] : score));
  const events = row.list(`${prefix}events`) ?? row.list(`${prefix}transcript.events`);
  const resolve = attachments(row, prefix);
  const messages = row.list(`${prefix}messages`);
  return {
    header: header(row, {
      id: sampleName,
      task: id,
      group: id,
      model: name(about["model"]),
      exitStatus: text(log["status"]),
      score: values.length === 1 ? (values[0] ?? null) : null,
      reward: Object.assign({}, ...reward),
      error: text(object(sample["error"])["message"]),
      truncated: isObject(sample["limit"]) ? true : null,
      tools: toolsOf(sample["tools"]),
      started: time(sample["started_at"]) ?? time(about["created"]),
      ended: time(sample["completed_at"]),
      metadata: {
        ...without(sample, ["id", "messages", "events", "transcript", "attachments", "store", "message_pool"]),
        task: task ?? null,
        events: row.whole ? eventKinds(sample) : { total: events?.count ?? 0 },
      },
    }),
    turns:
      messages === null ? inputTurns(sample["input"]) : listTurns(messages, (element) => sampleTurn(element, resolve)),
  };
}

/** A sample that was never run has its input only. */
function inputTurns(input: JsonValue | undefined) {
  return fixedTurns(typeof input === "string" ? [turn("user", { parts: [textPart(input)], kinds: ["input"] })] : []);
}

function eventKinds(sample: JsonObject): JsonObject {
  const kinds: { [kind: string]: number } = {};
  for (const event of [...array(sample["events"]), ...array(object(sample["transcript"])["events"])]) {
    const kind = text(object(event)["event"]) ?? "unknown";
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
}

type Resolve = (said: string) => Promise<string>;

/** Puts attachments in the place of their references; one that the log lacks stays a reference. */
function attachments(row: Row, prefix: string): Resolve {
  return async (said) => {
    if (!said.includes("://")) return said;
    let whole = said;
    for (const [found, hash] of [...said.matchAll(reference)]) {
      const kept = await row.entry(`${prefix}attachments`, hash as string);
      if (typeof kept === "string") whole = whole.replace(found, () => kept);
    }
    return whole;
  };
}

async function sampleTurn(element: Element, resolve: Resolve): Promise<ImportedTurn> {
  const made = messageTurn(element);
  const message = object(element.value);
  const parts: ImportedPart[] = [];
  for (const part of made.parts) {
    if (part.kind === "image") parts.push({ ...part, reference: await resolve(part.reference) });
    else parts.push({ ...part, text: await resolve(part.text) });
  }
  const toolCalls = [];
  for (const call of made.toolCalls) toolCalls.push({ ...call, arguments: await resolve(call.arguments) });
  const source = text(message["source"]);
  return {
    ...made,
    parts,
    toolCalls,
    trainable: made.role === "assistant" && source !== "input",
    kinds: [made.role, ...(source === null ? [] : [source])],
  };
}
