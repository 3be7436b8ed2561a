// The tables of the SQLite store and how an older file becomes a newer one. A released migration is never edited: a change
// is a new one at the end. Every table keeps whole documents as JSON text, and beside it the values that queries ask for.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { SqliteConnection } from "./sqliteConnection.ts";

/** "Rlsc": marks the file as a record store. */
const applicationId = 0x526c7363;

/** Document n brings a file from version n to n + 1. */
export const migrations: readonly string[] = [
  `
  CREATE TABLE tasks (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, created REAL NOT NULL, split TEXT NOT NULL, epoch INTEGER NOT NULL,
    name TEXT NOT NULL, rowIndex INTEGER NOT NULL, status TEXT NOT NULL, doc TEXT NOT NULL
  );
  CREATE INDEX tasks_created ON tasks (run, created, id);
  CREATE INDEX tasks_status ON tasks (run, status, created, id);
  CREATE INDEX tasks_index ON tasks (run, split, epoch, rowIndex, id);
  CREATE INDEX tasks_name ON tasks (run, name);

  CREATE TABLE records (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, created REAL NOT NULL, task TEXT NOT NULL, sample INTEGER NOT NULL,
    resample INTEGER NOT NULL, attempt INTEGER NOT NULL, split TEXT NOT NULL, status TEXT NOT NULL, score REAL,
    ungraded INTEGER NOT NULL, errorCode TEXT, policyVersionMin INTEGER, policyVersionMax INTEGER,
    trainedCount INTEGER NOT NULL, lastTrainedStep INTEGER, turns INTEGER NOT NULL, calls INTEGER NOT NULL,
    promptTokens INTEGER NOT NULL, outputTokens INTEGER NOT NULL, truncated INTEGER NOT NULL, toolErrors INTEGER NOT NULL,
    driftedCalls INTEGER NOT NULL, staleness INTEGER, mismatch REAL, doc TEXT NOT NULL
  );
  CREATE INDEX records_created ON records (run, created, id);
  CREATE INDEX records_status ON records (run, status, created, id);
  CREATE INDEX records_split ON records (run, split, created, id);
  CREATE INDEX records_task ON records (task, created, id);
  CREATE INDEX records_score ON records (run, score, id);
  CREATE INDEX records_outputTokens ON records (run, outputTokens, id);
  CREATE INDEX records_turns ON records (run, turns, id);
  CREATE INDEX records_lastTrainedStep ON records (run, lastTrainedStep, id) WHERE lastTrainedStep IS NOT NULL;
  CREATE INDEX records_staleness ON records (run, staleness, id) WHERE staleness IS NOT NULL;
  CREATE INDEX records_mismatch ON records (run, mismatch, id) WHERE mismatch IS NOT NULL;
  CREATE INDEX records_toolErrors ON records (run, toolErrors, id);
  CREATE INDEX records_driftedCalls ON records (run, driftedCalls, id);
  CREATE INDEX records_errorCode ON records (run, errorCode, id) WHERE errorCode IS NOT NULL;

  CREATE TABLE dispatched_sampling_tasks (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, created REAL NOT NULL, record TEXT NOT NULL, status TEXT NOT NULL,
    doc TEXT NOT NULL
  );
  CREATE INDEX calls_created ON dispatched_sampling_tasks (run, created, id);
  CREATE INDEX calls_record ON dispatched_sampling_tasks (record, created, id);
  CREATE INDEX calls_status ON dispatched_sampling_tasks (run, status, created, id);

  CREATE TABLE tool_events (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, created REAL NOT NULL, record TEXT NOT NULL, name TEXT NOT NULL,
    failed INTEGER NOT NULL, doc TEXT NOT NULL
  );
  CREATE INDEX tool_events_created ON tool_events (run, created, id);
  CREATE INDEX tool_events_record ON tool_events (record, created, id);
  CREATE INDEX tool_events_failed ON tool_events (run, failed, name, created, id);

  CREATE TABLE record_data (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, created REAL NOT NULL, record TEXT NOT NULL, step TEXT NOT NULL,
    doc TEXT NOT NULL
  );
  CREATE INDEX record_data_created ON record_data (run, created, id);
  CREATE INDEX record_data_record ON record_data (record, created, id);
  CREATE INDEX record_data_step ON record_data (step, record);

  CREATE TABLE plans (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, created REAL NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL,
    voided INTEGER NOT NULL, doc TEXT NOT NULL
  );
  CREATE UNIQUE INDEX plans_live ON plans (run, step) WHERE voided = 0;
  CREATE INDEX plans_step ON plans (run, step, id);
  CREATE INDEX plans_created ON plans (run, created, id);

  CREATE TABLE steps (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, created REAL NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL,
    voided INTEGER NOT NULL, doc TEXT NOT NULL
  );
  CREATE UNIQUE INDEX steps_live ON steps (run, step) WHERE voided = 0;
  CREATE INDEX steps_step ON steps (run, step, id);
  CREATE INDEX steps_created ON steps (run, created, id);

  CREATE TABLE leases (
    id TEXT PRIMARY KEY, run TEXT NOT NULL, record TEXT NOT NULL, n INTEGER NOT NULL, owner TEXT NOT NULL,
    purpose TEXT NOT NULL, acquired REAL NOT NULL, expires REAL NOT NULL, released REAL
  );
  CREATE INDEX leases_record ON leases (record, n);
  CREATE INDEX leases_owner ON leases (owner, expires);

  CREATE TABLE recipe_fields (run TEXT PRIMARY KEY, doc TEXT NOT NULL);
  `,
];

/**
 * Makes the file's tables those of this program. Throws STORE_VERSION_TOO_NEW for a file of a later program,
 * STORE_VERSION_TOO_OLD for an older file opened for reading only, STORE_CORRUPT for a database of something else.
 */
export function migrate(connection: SqliteConnection, steps: readonly string[] = migrations): void {
  if (versionOf(connection, steps.length) === steps.length) return;
  if (connection.readOnly) {
    throw new RollscopeError(
      "STORE_VERSION_TOO_OLD",
      `The record store ${connection.path} was written by an older version.`,
      {
        next: "Resume its run once with this version, which brings the file up to date, or read it with the older one.",
        at: { path: connection.path },
      },
    );
  }
  connection.transaction(
    () => {
      // Another process may have done it while this one waited for the lock.
      for (let version = versionOf(connection, steps.length); version < steps.length; version++) {
        connection.exec(steps[version] as string);
        connection.exec(`PRAGMA user_version = ${version + 1}`);
      }
      connection.exec(`PRAGMA application_id = ${applicationId}`);
    },
    { durable: true },
  );
}

function versionOf(connection: SqliteConnection, known: number): number {
  const id = pragma(connection, "application_id");
  const version = pragma(connection, "user_version");
  if (id !== applicationId && (version !== 0 || connection.all("SELECT 1 FROM sqlite_master LIMIT 1", []).length > 0)) {
    throw new RollscopeError("STORE_CORRUPT", `${connection.path} is a database, but not a record store.`, {
      next: "Choose another folder for the run; this file is left as it is.",
      at: { path: connection.path },
    });
  }
  if (version > known) {
    throw new RollscopeError(
      "STORE_VERSION_TOO_NEW",
      `The record store ${connection.path} has version ${version}; this program knows ${known}.`,
      { next: "Use the version of Rollscope that wrote it, or a later one.", at: { path: connection.path, version } },
    );
  }
  return version;
}

function pragma(connection: SqliteConnection, name: string): number {
  const row = connection.all<{ readonly [name: string]: number }>(`PRAGMA ${name}`, [])[0];
  return row?.[name] ?? 0;
}
