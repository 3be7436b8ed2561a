// Records as lines of a list, and the lists themselves: by any filter of the contract, and of one step. Reads the store only.
import type { DaemonRequest, DaemonResult } from "../../../../protocol/daemonMethods.ts";
import type { RecordDocument, TaskDocument } from "../../../../protocol/record.ts";
import type { StepDocument } from "../../../../protocol/step.ts";
import type { TrajectoryRow } from "../../../../protocol/trajectoryView.ts";
import type { BlobStore, Range, RecordFilter, RecordStore } from "../../store/interface.ts";
import { readLedger } from "../../store/ledger.ts";

export interface RunStores {
  readonly folder: string;
  readonly run: string;
  readonly store: RecordStore;
  readonly blobs: BlobStore;
}

export function recordRow(
  folder: string,
  record: RecordDocument,
  task: TaskDocument | null,
  step: number | null,
): TrajectoryRow {
  const { stats } = record;
  const steps = step ?? record.lastTrainedStep;
  return {
    source: { kind: "record", folder, record: record.id },
    id: record.id,
    task: record.task,
    taskName: task?.name ?? null,
    group: record.task,
    sample: record.sample,
    attempt: record.attempt,
    split: record.split,
    status: record.status,
    score: typeof record.score === "number" ? record.score : null,
    turns: stats.turns,
    promptTokens: stats.promptTokens,
    outputTokens: stats.outputTokens,
    truncated: stats.truncated,
    toolErrors: stats.toolErrors,
    driftedCalls: stats.driftedCalls,
    staleness: stats.staleness,
    mismatch: stats.mismatch,
    steps: steps === null ? [] : [steps],
    error: record.error,
    labels: record.score === "ungraded" ? ["ungraded", ...record.labels] : record.labels,
  };
}

async function rowsOf(
  { folder, store }: RunStores,
  records: readonly RecordDocument[],
  step: number | null,
): Promise<TrajectoryRow[]> {
  const tasks = await store.tasks.get([...new Set(records.map(({ task }) => task))]);
  return records.map((record) => recordRow(folder, record, tasks.get(record.task) ?? null, step));
}

/** The step that counts; null when none was committed. */
export async function committedStep(
  { store, run }: Pick<RunStores, "store" | "run">,
  step: number,
): Promise<StepDocument | null> {
  return (await store.steps.query({ run, step }, { limit: 1 })).items[0] ?? null;
}

type ListRequest = DaemonRequest<"trajectories/list">;

const ranged = ["score", "turns", "outputTokens", "staleness", "mismatch"] as const;

function ranges(filter: ListRequest["filter"]): NonNullable<RecordFilter["numbers"]> {
  const numbers: { [Name in (typeof ranged)[number]]?: Range } = {};
  for (const name of ranged) {
    const range = filter[name];
    if (range === undefined) continue;
    numbers[name] = {
      ...(range.min === undefined ? {} : { min: range.min }),
      ...(range.max === undefined ? {} : { max: range.max }),
    };
  }
  return numbers;
}

async function recordFilter(stores: RunStores, { filter }: ListRequest): Promise<RecordFilter | null> {
  const step = filter.step === undefined ? undefined : await committedStep(stores, filter.step);
  if (step === null) return null;
  return {
    run: stores.run,
    ...(step === undefined ? {} : { step: step.id }),
    ...(filter.task === undefined ? {} : { task: filter.task }),
    ...(filter.split === undefined ? {} : { split: filter.split }),
    ...(filter.status === undefined ? {} : { status: filter.status as RecordDocument["status"][] }),
    ...(filter.truncated === undefined ? {} : { truncated: filter.truncated }),
    ...(filter.text === undefined ? {} : { text: filter.text }),
    numbers: {
      ...ranges(filter),
      ...(filter.drifted === undefined ? {} : { driftedCalls: filter.drifted ? { min: 1 } : { max: 0 } }),
      ...(filter.toolErrors === undefined ? {} : { toolErrors: filter.toolErrors ? { min: 1 } : { max: 0 } }),
    },
  };
}

/** Records that pass a filter, in pages; one with no such number comes in no list that is ordered by it. */
export async function listRecords(stores: RunStores, request: ListRequest): Promise<DaemonResult<"trajectories/list">> {
  const filter = await recordFilter(stores, request);
  if (filter === null) return { rows: [], next: null, total: 0, index: "none" };
  const { order, descending, limit, after } = request;
  const page = await stores.store.records.query(filter, {
    order,
    descending,
    limit,
    ...(after === null ? {} : { after }),
  });
  const { count } = await stores.store.records.count(filter);
  const rows = await rowsOf(stores, page.items, request.filter.step ?? null);
  return { rows, next: page.next, total: count, index: page.index };
}

/** The records that a step consumed, in the order of its ledger. */
export async function recordsOfStep(stores: RunStores, step: number): Promise<TrajectoryRow[]> {
  const document = await committedStep(stores, step);
  if (document === null) return [];
  const ids = [...new Set((await readLedger(stores.blobs, document)).map(({ record }) => record))];
  const records = await stores.store.records.get(ids);
  return rowsOf(
    stores,
    ids.flatMap((id) => records.get(id) ?? []),
    step,
  );
}
