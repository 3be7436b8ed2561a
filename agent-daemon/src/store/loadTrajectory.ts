// One whole trajectory out of the stores: conversations rebuilt from what each call added, sampled tokens with what the
// sampler said of them, and what every training step made of each token. It only reads.
import type { ChatMessage } from "../../../protocol/agent.ts";
import type { CallDocument } from "../../../protocol/call.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { RecordDocument, TaskDocument, ToolEventDocument } from "../../../protocol/record.ts";
import type { RecordDataColumnName, RecordDataDocument } from "../../../protocol/recordData.ts";
import type { StepDocument } from "../../../protocol/step.ts";
import { decodeColumn, type TypedArray } from "./columns.ts";
import type { BlobStore, RecordStore } from "./interface.ts";
import { allDocuments } from "./pages.ts";

/** What one step made of output tokens [from, from + length) of a call; every array has that length. */
export interface TrainedSpan {
  readonly step: StepDocument;
  readonly window: number;
  readonly pass: number;
  /** Id of the training row. */
  readonly row: string;
  readonly from: number;
  readonly length: number;
  readonly columns: { readonly [Name in RecordDataColumnName]?: TypedArray };
}

export interface LoadedCall {
  readonly document: CallDocument;
  /** [n] sampled tokens, in order. */
  readonly output: Int32Array;
  /** [n] log-softmax(logits / T) as the sampler recorded it. */
  readonly logprobs: Float32Array;
  /** [n] after penalties and truncation, when those changed the distribution. */
  readonly sampledLogprobs: Float32Array | null;
  /** [n] policy version that sampled each token. */
  readonly versions: Int32Array;
  /** By step, oldest first. A call that several trajectories pass through has spans of each. */
  readonly training: readonly TrainedSpan[];
  /** Everything the model was shown, rebuilt from the calls before. */
  messages(): ChatMessage[];
  /** The exact prompt, rebuilt likewise. */
  promptTokens(): Int32Array;
}

export interface LoadedTrajectory {
  readonly record: RecordDocument;
  readonly task: TaskDocument | null;
  /** In the order they ended; those that never did come last. */
  readonly calls: readonly LoadedCall[];
  readonly toolEvents: readonly ToolEventDocument[];
}

/** Throws STORE_NOT_FOUND for an unknown record, STORE_BLOB_MISSING and STORE_BLOB_CORRUPT for its columns. */
export async function loadTrajectory(
  store: RecordStore,
  blobs: BlobStore,
  recordId: string,
): Promise<LoadedTrajectory> {
  const record = (await store.records.get([recordId])).get(recordId);
  if (record === undefined) {
    throw new RollscopeError("STORE_NOT_FOUND", `There is no record ${recordId}.`, {
      next: "List the records of the run and copy the id from there.",
      at: { record: recordId },
    });
  }
  const [tasks, documents, toolEvents, rows] = await Promise.all([
    store.tasks.get([record.task]),
    allDocuments(store.calls, { record: recordId }),
    allDocuments(store.toolEvents, { record: recordId }),
    allDocuments(store.recordData, { record: recordId }),
  ]);
  const steps = await store.steps.get([...new Set(rows.map((row) => row.step))]);
  const spans = await trainedSpans(blobs, rows, steps);
  const byId = new Map(documents.map((call) => [call.id, call]));
  const inputs: CallInputs = { blobs, byId, prompts: new Map(), outputs: new Map() };
  for (const call of documents) {
    inputs.prompts.set(call.id, await decodeColumn(blobs, call.promptDelta, "i32"));
    inputs.outputs.set(call.id, await decodeColumn(blobs, call.output, "i32"));
  }
  const calls = await Promise.all(
    documents.sort(byCompletion).map((call) => loadCall(inputs, call, spans.get(call.id) ?? [])),
  );
  toolEvents.sort((a, b) => a.index - b.index);
  return { record, task: tasks.get(record.task) ?? null, calls, toolEvents };
}

interface CallInputs {
  readonly blobs: BlobStore;
  readonly byId: ReadonlyMap<string, CallDocument>;
  readonly prompts: Map<string, Int32Array>;
  readonly outputs: Map<string, Int32Array>;
}

async function loadCall(inputs: CallInputs, call: CallDocument, training: readonly TrainedSpan[]): Promise<LoadedCall> {
  const output = tokensOf(inputs.outputs, call);
  const logprobs = await decodeColumn(inputs.blobs, call.logprobs, "f32");
  const sampledLogprobs =
    call.sampledLogprobs === null ? null : await decodeColumn(inputs.blobs, call.sampledLogprobs, "f32");
  return {
    document: call,
    output,
    logprobs,
    sampledLogprobs,
    versions: versionsOf(call, output.length),
    training,
    messages: () => {
      const parts = conversation(inputs.byId, call, call.keptMessages, (parent) => ({
        kept: parent.keptMessages,
        own: [...parent.request.messages, ...(parent.message === null ? [] : [parent.message])],
      }));
      return [...parts.flat(), ...call.request.messages];
    },
    promptTokens: () => {
      const parts = conversation(inputs.byId, call, call.keptTokens, (parent) => ({
        kept: parent.keptTokens,
        own: [...tokensOf(inputs.prompts, parent), ...tokensOf(inputs.outputs, parent)],
      }));
      return Int32Array.from([...parts, [...tokensOf(inputs.prompts, call)]].flat());
    },
  };
}

/** The first `count` items of the conversation that a call continues, part by part from the root. */
function conversation<Item>(
  byId: ReadonlyMap<string, CallDocument>,
  call: CallDocument,
  count: number,
  partOf: (ancestor: CallDocument) => { readonly kept: number; readonly own: readonly Item[] },
): (readonly Item[])[] {
  const parts: (readonly Item[])[] = [];
  let needed = count;
  let child = call;
  while (needed > 0) {
    const parent = child.parent === null ? undefined : byId.get(child.parent);
    if (parent === undefined) throw broken(child, `keeps ${needed} items of a call that is not there`);
    const { kept, own } = partOf(parent);
    if (kept + own.length < needed)
      throw broken(child, `keeps ${needed} items where its parent has ${kept + own.length}`);
    if (needed > kept) parts.push(own.slice(0, needed - kept));
    needed = Math.min(needed, kept);
    child = parent;
  }
  return parts.reverse();
}

async function trainedSpans(
  blobs: BlobStore,
  rows: readonly RecordDataDocument[],
  steps: ReadonlyMap<string, StepDocument>,
): Promise<Map<string, TrainedSpan[]>> {
  const spans = new Map<string, TrainedSpan[]>();
  for (const row of rows) {
    const step = steps.get(row.step);
    if (step === undefined) continue;
    const columns: { [name: string]: TypedArray } = {};
    for (const [name, column] of Object.entries(row.columns)) {
      if (column !== undefined) columns[name] = await decodeColumn(blobs, column);
    }
    for (const { call, from, start, length } of row.spans) {
      const part = Object.fromEntries(
        Object.entries(columns).map(([name, values]) => [name, values.subarray(start, start + length)]),
      );
      const list = spans.get(call) ?? [];
      list.push({ step, window: row.window, pass: row.pass, row: row.id, from, length, columns: part });
      spans.set(call, list);
    }
  }
  for (const list of spans.values()) list.sort((a, b) => a.step.step - b.step.step || a.pass - b.pass);
  return spans;
}

function versionsOf(call: CallDocument, length: number): Int32Array {
  const versions = new Int32Array(length).fill(-1);
  let at = 0;
  for (const run of call.versions) {
    versions.fill(run.version, at, at + run.length);
    at += run.length;
  }
  return versions;
}

function byCompletion(a: CallDocument, b: CallDocument): number {
  return (a.ended ?? Number.POSITIVE_INFINITY) - (b.ended ?? Number.POSITIVE_INFINITY) || a.index - b.index;
}

function tokensOf(tokens: ReadonlyMap<string, Int32Array>, call: CallDocument): Int32Array {
  return tokens.get(call.id) as Int32Array;
}

function broken(call: CallDocument, why: string): RollscopeError {
  return new RollscopeError(
    "STORE_CORRUPT",
    `The conversation of record ${call.record} cannot be rebuilt: call ${call.id} ${why}.`,
    {
      next: "Restore the store from a backup; the tokens of each call are still readable one by one.",
      at: { record: call.record, call: call.id },
    },
  );
}
