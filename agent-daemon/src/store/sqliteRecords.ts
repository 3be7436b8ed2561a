// Tasks, records, calls, tool events and training rows of the SQLite store: how each becomes a row, what queries of each
// mean, and the conditional updates. A refused update leaves its document untouched and does not stop the others.
import { type CallDocument, callDocumentSchema } from "../../../protocol/call.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import {
  type RecordDocument,
  recordDocumentSchema,
  type TaskDocument,
  type ToolEventDocument,
  taskDocumentSchema,
  toolEventDocumentSchema,
} from "../../../protocol/record.ts";
import { type RecordDataDocument, recordDataDocumentSchema } from "../../../protocol/recordData.ts";
import type {
  CallCollection,
  Collection,
  RecordCollection,
  RecordDataFilter,
  RecordFilter,
  RecordNumber,
  RecordUpdate,
  TaskCollection,
  ToolEventFilter,
} from "./interface.ts";
import { recordTransitions, taskTransitions } from "./recordStatus.ts";
import type { SqliteConnection } from "./sqliteConnection.ts";
import type { SqliteFields } from "./sqliteFields.ts";
import { type Clause, clausesOf, fieldClauses } from "./sqliteFilter.ts";
import { leaseInForce } from "./sqliteLeases.ts";
import { notFound, openTable, queryError, type Table } from "./sqliteTable.ts";

const recordNumbers: { readonly [Name in RecordNumber]: Name } = {
  score: "score",
  turns: "turns",
  calls: "calls",
  promptTokens: "promptTokens",
  outputTokens: "outputTokens",
  toolErrors: "toolErrors",
  driftedCalls: "driftedCalls",
  staleness: "staleness",
  mismatch: "mismatch",
  trainedCount: "trainedCount",
  lastTrainedStep: "lastTrainedStep",
  policyVersionMin: "policyVersionMin",
  policyVersionMax: "policyVersionMax",
  resample: "resample",
  sample: "sample",
};

export function taskTable(connection: SqliteConnection): Table<TaskDocument> {
  return openTable(connection, {
    table: "tasks",
    schema: taskDocumentSchema,
    columns: {
      run: (task) => task.run,
      created: (task) => task.created,
      split: (task) => task.split,
      epoch: (task) => task.epoch,
      name: (task) => task.name,
      rowIndex: (task) => task.index,
      status: (task) => task.status,
    },
    orders: { index: "rowIndex" },
  });
}

export function recordTable(connection: SqliteConnection): Table<RecordDocument> {
  return openTable(connection, {
    table: "records",
    schema: recordDocumentSchema,
    columns: {
      run: (record) => record.run,
      created: (record) => record.created,
      task: (record) => record.task,
      sample: (record) => record.sample,
      resample: (record) => record.resample,
      attempt: (record) => record.attempt,
      split: (record) => record.split,
      status: (record) => record.status,
      score: (record) => (record.score === "ungraded" ? null : record.score),
      ungraded: (record) => record.score === "ungraded",
      errorCode: (record) => record.error?.code,
      policyVersionMin: (record) => record.policyVersions?.min,
      policyVersionMax: (record) => record.policyVersions?.max,
      trainedCount: (record) => record.trainedCount,
      lastTrainedStep: (record) => record.lastTrainedStep,
      turns: (record) => record.stats.turns,
      calls: (record) => record.stats.calls,
      promptTokens: (record) => record.stats.promptTokens,
      outputTokens: (record) => record.stats.outputTokens,
      truncated: (record) => record.stats.truncated,
      toolErrors: (record) => record.stats.toolErrors,
      driftedCalls: (record) => record.stats.driftedCalls,
      staleness: (record) => record.stats.staleness,
      mismatch: (record) => record.stats.mismatch,
    },
    orders: recordNumbers,
  });
}

export function openTasks(
  connection: SqliteConnection,
  table: Table<TaskDocument>,
  fields: SqliteFields,
): TaskCollection {
  return {
    ...collection(table, ({ index, ...filter }) => clausesOf({ ...filter, rowIndex: index }), fields.checkTask),
    update: async (updates) =>
      updateAll(connection, table, updates, (task, { set }) => {
        if (set.status !== undefined) checkTransition("Task", task.id, task.status, set.status, taskTransitions);
        return { ...task, ...set };
      }),
  };
}

export function openRecords(
  connection: SqliteConnection,
  table: Table<RecordDocument>,
  fields: SqliteFields,
  now: () => number,
): RecordCollection {
  return {
    ...collection(table, (filter) => recordClauses(filter, now()), fields.checkRecord),
    update: async (updates) =>
      updateAll(connection, table, updates, (record, update) => {
        checkRecordUpdate(connection, record, update, now());
        const { set, add } = update;
        const changed = {
          ...record,
          ...set,
          trainedCount: (set.trainedCount ?? record.trainedCount) + (add?.trainedCount ?? 0),
        };
        if (set.fields !== undefined) fields.checkRecord(changed);
        return changed;
      }),
  };
}

export function openCalls(connection: SqliteConnection): CallCollection {
  const table = openTable<CallDocument>(connection, {
    table: "dispatched_sampling_tasks",
    selective: ["record"],
    schema: callDocumentSchema,
    columns: {
      run: (call) => call.run,
      created: (call) => call.started,
      record: (call) => call.record,
      status: (call) => call.status,
    },
  });
  return {
    ...collection(table, (filter) => clausesOf({ ...filter })),
    update: async (updates) => updateAll(connection, table, updates, (call, { set }) => ({ ...call, ...set })),
  };
}

export function openToolEvents(connection: SqliteConnection): Collection<ToolEventDocument, ToolEventFilter> {
  const table = openTable<ToolEventDocument>(connection, {
    table: "tool_events",
    selective: ["record"],
    schema: toolEventDocumentSchema,
    columns: {
      run: (event) => event.run,
      created: (event) => event.started,
      record: (event) => event.record,
      name: (event) => event.name,
      failed: (event) => event.error !== null,
    },
  });
  return collection(table, (filter) => clausesOf({ ...filter }));
}

export function openRecordData(connection: SqliteConnection): Collection<RecordDataDocument, RecordDataFilter> {
  const table = openTable<RecordDataDocument>(connection, {
    table: "record_data",
    selective: ["record", "step"],
    schema: recordDataDocumentSchema,
    columns: {
      run: (row) => row.run,
      created: (row) => row.created,
      record: (row) => row.record,
      step: (row) => row.step,
    },
  });
  const live = {
    sql: "EXISTS (SELECT 1 FROM steps WHERE steps.id = record_data.step AND steps.voided = 0)",
    values: [],
  };
  return collection(table, ({ void: all, ...filter }) => [
    ...clausesOf({ ...filter }),
    ...(all === true ? [] : [live]),
  ]);
}

function collection<D extends { readonly id: string }, Filter>(
  table: Table<D>,
  clauses: (filter: Filter) => readonly Clause[],
  check?: (document: D) => void,
): Collection<D, Filter, string> {
  return {
    insert: async (documents) => table.insert(documents, check),
    get: async (ids) => table.get(ids),
    query: async (filter, page) => table.query(clauses(filter), page),
    count: async (filter) => table.count(clauses(filter)),
  };
}

/** What a filter on records means in SQL at time `now`. */
export function recordClauses(filter: RecordFilter, now: number): Clause[] {
  const { numbers, step, text, fields, unclaimed, ...columns } = filter;
  const clauses = clausesOf({ ...columns });
  for (const [name, condition] of Object.entries(numbers ?? {})) {
    if (!Object.hasOwn(recordNumbers, name)) throw queryError(`records have no number ${name}`);
    clauses.push(...clausesOf({ [name]: condition }));
  }
  for (const [name, condition] of Object.entries(fields ?? {})) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw queryError(`${JSON.stringify(name)} is no field name`);
    clauses.push(...fieldClauses(name, condition));
  }
  if (step !== undefined)
    clauses.push({ sql: "id IN (SELECT record FROM record_data WHERE step = ?)", values: [step] });
  if (text !== undefined) {
    // Documents hold text as JSON writes it.
    const written = JSON.stringify(text).slice(1, -1);
    const inRun = filter.run === undefined ? "" : "run = ? AND ";
    clauses.push({
      sql: `id IN (SELECT record FROM dispatched_sampling_tasks WHERE ${inRun}instr(doc, ?) > 0)`,
      values: filter.run === undefined ? [written] : [filter.run, written],
    });
  }
  if (unclaimed === true) {
    clauses.push({
      sql: "NOT EXISTS (SELECT 1 FROM leases WHERE leases.record = records.id AND leases.released IS NULL AND leases.expires > ?)",
      values: [now],
    });
  }
  return clauses;
}

function checkRecordUpdate(
  connection: SqliteConnection,
  record: RecordDocument,
  update: RecordUpdate,
  now: number,
): void {
  const { set, whenStatus, lease } = update;
  if (lease !== undefined && !leaseInForce(connection, lease, now)) {
    throw new RollscopeError(
      "STORE_LEASE_LOST",
      `${lease.owner} no longer holds claim ${lease.n} on record ${lease.record}; its result came too late.`,
      {
        next: "Drop the result; whoever claimed the record since will bring another.",
        at: { record: lease.record, n: lease.n },
      },
    );
  }
  if (
    whenStatus !== undefined &&
    !(typeof whenStatus === "string" ? [whenStatus] : whenStatus).includes(record.status)
  ) {
    throw new RollscopeError("STORE_CONFLICT", `Record ${record.id} is ${record.status} by now.`, {
      next: "Read the record again and decide anew.",
      at: { record: record.id, status: record.status },
    });
  }
  if (set.status !== undefined) checkTransition("Record", record.id, record.status, set.status, recordTransitions);
}

function checkTransition<Status extends string>(
  what: "Task" | "Record",
  id: string,
  from: Status,
  to: Status,
  allowed: { readonly [From in Status]: readonly Status[] },
): void {
  if (allowed[from].includes(to)) return;
  throw new RollscopeError("STORE_TRANSITION_INVALID", `${what} ${id} is ${from} and cannot become ${to}.`, {
    next: "Read it again; another writer went on with it, or this step was done before.",
    at: { id, from, to },
  });
}

function updateAll<D extends { readonly id: string }, U extends { readonly id: string }>(
  connection: SqliteConnection,
  table: Table<D>,
  updates: readonly U[],
  change: (document: D, update: U) => D,
): (RollscopeError | null)[] {
  if (updates.length === 0) return [];
  return connection.transaction(() => {
    const documents = table.get(updates.map((update) => update.id));
    return updates.map((update) => {
      const document = documents.get(update.id);
      if (document === undefined) return notFound(table.name, update.id);
      try {
        const changed = change(document, update);
        table.rewrite(changed);
        documents.set(update.id, changed);
        return null;
      } catch (error) {
        if (error instanceof RollscopeError && refusals.has(error.code)) return error;
        throw error;
      }
    });
  });
}

/** Reasons that lie in one update; anything else undoes them all. */
const refusals: ReadonlySet<string> = new Set([
  "STORE_CONFLICT",
  "STORE_TRANSITION_INVALID",
  "STORE_LEASE_LOST",
  "STORE_FIELD_INVALID",
  "STORE_DOCUMENT_INVALID",
  "STORE_DOCUMENT_TOO_LARGE",
]);
