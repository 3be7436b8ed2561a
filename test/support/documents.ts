// Small whole documents for tests of the store, each with everything but what the test is about filled in.
import { inlineColumn, type TypedArray } from "../../agent-daemon/src/store/columns.ts";
import type { CallDocument } from "../../protocol/call.ts";
import type { Column } from "../../protocol/column.ts";
import { newRecord, type RecordDocument, type TaskDocument, type ToolEventDocument } from "../../protocol/record.ts";
import type { RecordDataDocument } from "../../protocol/recordData.ts";
import { type StepDocument, stepDocumentId } from "../../protocol/step.ts";

export const run = "run-1";

export function column(values: TypedArray): Column {
  return inlineColumn(values, 1 << 20) as Column;
}

export function task(id: string, change: Partial<TaskDocument> = {}): TaskDocument {
  return {
    id,
    run,
    name: id,
    split: "train",
    epoch: 0,
    index: 0,
    payload: {},
    groupSize: 2,
    status: "created",
    scores: [],
    created: 1000,
    ...change,
  };
}

export function record(id: string, change: Partial<RecordDocument> = {}): RecordDocument {
  return { ...newRecord({ id, run, task: "task-1", sample: 0, split: "train", created: 1000 }), ...change };
}

export function call(id: string, recordId: string, change: Partial<CallDocument> = {}): CallDocument {
  return {
    id,
    run,
    record: recordId,
    parent: null,
    index: 0,
    status: "completed",
    tries: [{ started: 1000, ended: 1010, error: null }],
    client: null,
    dialect: "whiteBox",
    keptMessages: 0,
    keptTokens: 0,
    request: { messages: [{ role: "user", content: "What is 2 + 2?" }], tools: null, asked: {} },
    promptDelta: column(Int32Array.of(1, 2, 3)),
    output: column(Int32Array.of(4, 5)),
    logprobs: column(Float32Array.of(-0.5, -0.25)),
    sampledLogprobs: null,
    temperature: 1,
    versions: [{ version: 0, length: 2 }],
    routing: null,
    message: { role: "assistant", content: "4" },
    finishReason: "stop",
    usage: { promptTokens: 3, completionTokens: 2, cachedTokens: 0 },
    error: null,
    drift: { kind: "none", at: null, text: "", trainedTokens: 0 },
    started: 1000,
    firstToken: 1005,
    ended: 1010,
    ...change,
  };
}

export function toolEvent(id: string, recordId: string, change: Partial<ToolEventDocument> = {}): ToolEventDocument {
  return {
    id,
    run,
    record: recordId,
    index: 0,
    call: null,
    name: "add",
    arguments: { a: 2, b: 2 },
    result: 4,
    error: null,
    started: 1006,
    durationMs: 1,
    ...change,
  };
}

export function row(
  id: string,
  recordId: string,
  step: string,
  change: Partial<RecordDataDocument> = {},
): RecordDataDocument {
  return {
    id,
    run,
    step,
    record: recordId,
    window: 0,
    pass: 0,
    created: 1000,
    leaf: `${recordId}/c0`,
    occurrences: 2,
    spans: [{ call: `${recordId}/c0`, from: 0, start: 0, length: 2 }],
    columns: { advantage: column(Float32Array.of(1, -1)) },
    ...change,
  };
}

export function step(number: number, change: Partial<StepDocument> = {}): StepDocument {
  return {
    id: stepDocumentId(run, 1, number),
    run,
    attempt: 1,
    step: number,
    window: number,
    outcome: { kind: "applied" },
    metrics: {},
    ledger: { kind: "inline", entries: [] },
    weightVersion: number,
    checkpoint: null,
    wallMs: 1,
    committed: 2000 + number,
    voidedBy: null,
    ...change,
  };
}
