// Records as lines of chat: OpenAI's messages and tools, the reward, and under `rollscope` what a later import puts back in its
// place. A record with several leaves is several lines.
import { stringify } from "lossless-json";
import type { ChatMessage, ToolDefinition } from "../../../../protocol/agent.ts";
import type { CallDocument } from "../../../../protocol/call.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { RecordDocument, TaskDocument } from "../../../../protocol/record.ts";
import type { BlobStore, RecordStore } from "../interface.ts";
import { allDocuments, everyDocument } from "../pages.ts";
import { isObject } from "./row.ts";
import { exportedMessage } from "./storedMessages.ts";

/** The lines of a run, each with its newline. Errors: those of the stores, STORE_CORRUPT. */
export async function* chatLines(store: RecordStore, blobs: BlobStore, run: string): AsyncIterable<string> {
  for await (const record of everyDocument(store.records, { run })) {
    const task = (await store.tasks.get([record.task])).get(record.task) ?? null;
    const calls = await allDocuments(store.calls, { record: record.id });
    for (const row of await chatRows(record, task, calls, blobs)) yield `${jsonLine(row)}\n`;
  }
}

/** JSON in one line: integers of any size as digits, NaN and the infinities as words. */
export function jsonLine(value: unknown): string {
  const words = (_key: string, inner: unknown) =>
    typeof inner === "number" && !Number.isFinite(inner) ? String(inner) : inner;
  try {
    return JSON.stringify(value, words);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return stringify(value, words) as string;
  }
}

interface Said {
  readonly message: ChatMessage;
  /** Written by the model in this trajectory. */
  readonly sampled: boolean;
}

async function chatRows(
  record: RecordDocument,
  task: TaskDocument | null,
  calls: readonly CallDocument[],
  blobs: BlobStore,
): Promise<{ [key: string]: unknown }[]> {
  const byId = new Map(calls.map((call) => [call.id, call]));
  const parents = new Set(calls.map((call) => call.parent));
  const leaves = calls.filter((call) => !parents.has(call.id)).sort((a, b) => a.index - b.index);
  const rows: { [key: string]: unknown }[] = [];
  for (const [index, leaf] of leaves.entries()) {
    const messages = [];
    for (const { message, sampled } of conversation(leaf, byId)) {
      const exported = await exportedMessage(message, blobs);
      // A model's message that was put in is not to be trained.
      if (message.role === "assistant" && !sampled) exported["weight"] = 0;
      messages.push(exported);
    }
    const tools = toolsOf(leaf, byId);
    rows.push({
      messages,
      ...(tools === null ? {} : { tools }),
      ...aboutRecord(
        record,
        task,
        leaves.length === 1
          ? null
          : { kind: "branch", index, of: leaves.length, parts: null, drifted: leaf.drift.kind !== "none" },
      ),
    });
  }
  return rows;
}

/** All that the call was shown, and its answer. @throws STORE_CORRUPT */
function conversation(leaf: CallDocument, byId: ReadonlyMap<string, CallDocument>): Said[] {
  const own = (call: CallDocument): Said[] => [
    ...call.request.messages.map((message) => ({ message, sampled: false })),
    ...(call.message === null ? [] : [{ message: call.message, sampled: true }]),
  ];
  const parts: Said[][] = [own(leaf)];
  let needed = leaf.keptMessages;
  for (let child = leaf; needed > 0; ) {
    const parent = child.parent === null ? undefined : byId.get(child.parent);
    if (parent === undefined || parent.keptMessages + own(parent).length < needed) {
      throw new RollscopeError(
        "STORE_CORRUPT",
        `The conversation of record ${leaf.record} cannot be rebuilt at call ${child.id}.`,
        {
          next: "Restore the store from a backup, or leave the record out.",
          at: { record: leaf.record, call: child.id },
        },
      );
    }
    if (needed > parent.keptMessages) parts.push(own(parent).slice(0, needed - parent.keptMessages));
    needed = Math.min(needed, parent.keptMessages);
    child = parent;
  }
  return parts.reverse().flat();
}

function toolsOf(leaf: CallDocument, byId: ReadonlyMap<string, CallDocument>): readonly ToolDefinition[] | null {
  for (let call: CallDocument | undefined = leaf; call !== undefined; ) {
    if (call.request.tools !== null) return call.request.tools;
    call = call.parent === null ? undefined : byId.get(call.parent);
  }
  return null;
}

type Branch = { readonly [key: string]: unknown } | null;

function aboutRecord(record: RecordDocument, task: TaskDocument | null, branch: Branch): { [key: string]: unknown } {
  const { imported } = record.fields;
  if (isObject(imported)) {
    const { score, reward, format: _format, file: _file, line: _line, member: _member, ...about } = imported;
    return {
      reward: score ?? null,
      rewards: reward ?? {},
      metadata: record.fields["metadata"] ?? {},
      rollscope: { version: 1, ...about, labels: record.labels, branch: branch ?? about["branch"] ?? null },
    };
  }
  return {
    reward: typeof record.score === "number" ? record.score : null,
    rewards: record.reward,
    metadata: { payload: task?.payload ?? {}, fields: record.fields },
    rollscope: {
      version: 1,
      id: branch === null || branch["index"] === 0 ? record.id : `${record.id}/${String(branch["index"])}`,
      record: record.id,
      task: task?.name ?? null,
      group: record.task,
      labels: record.labels,
      model: null,
      split: record.split,
      step: record.lastTrainedStep,
      exitStatus: record.status,
      error: record.error?.message ?? null,
      truncated: record.stats.truncated,
      branch,
      started: record.timings.started,
      ended: record.timings.ended,
    },
  };
}
