// The RecordStore in one SQLite file: opening it on a local disk and putting its collections together. Any number of
// processes may have it open; writers take turns.
import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";
import { type FileSystemProbe, requireLocalFileSystem } from "./fileSystemOf.ts";
import type { RecordStore } from "./interface.ts";
import { type ConnectionOptions, SqliteConnection } from "./sqliteConnection.ts";
import { openSqliteFields } from "./sqliteFields.ts";
import { type ClaimCandidates, openLeases } from "./sqliteLeases.ts";
import {
  openCalls,
  openRecordData,
  openRecords,
  openTasks,
  openToolEvents,
  recordClauses,
  recordTable,
  taskTable,
} from "./sqliteRecords.ts";
import { migrate } from "./sqliteSchema.ts";
import { openPlans, openSteps } from "./sqliteSteps.ts";

export interface SqliteStoreOptions extends ConnectionOptions {
  /** Milliseconds since 1970; default Date.now. */
  readonly now?: () => number;
  /** Largest error of that clock between processes; leases last at least ten times as long. Default 100. */
  readonly clockBoundMilliseconds?: number;
  readonly fileSystem?: FileSystemProbe;
}

/**
 * Opens the file, making it and its folder if need be (not with `readOnly`). Throws STORE_NETWORK_FILE_SYSTEM,
 * STORE_UNREACHABLE, STORE_CORRUPT, STORE_VERSION_TOO_NEW, STORE_VERSION_TOO_OLD, STORE_DISK_FULL.
 */
export async function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Promise<RecordStore> {
  requireLocalFileSystem(path, options.fileSystem);
  if (options.readOnly !== true) makeFolder(dirname(path), path);
  else requireFile(path);
  const connection = new SqliteConnection(path, options);
  try {
    migrate(connection);
  } catch (error) {
    connection.dispose();
    throw error;
  }
  const now = options.now ?? Date.now;
  const tasks = taskTable(connection);
  const records = recordTable(connection);
  const fields = openSqliteFields(connection, tasks, records);
  const unclaimed: ClaimCandidates = (filter, limit) =>
    records.query(recordClauses({ ...filter, unclaimed: true }, now()), { limit }).items.map((record) => record.id);
  return {
    tasks: openTasks(connection, tasks, fields),
    records: openRecords(connection, records, fields, now),
    calls: openCalls(connection),
    toolEvents: openToolEvents(connection),
    recordData: openRecordData(connection),
    plans: openPlans(connection),
    steps: openSteps(connection),
    leases: openLeases(connection, { now, boundMilliseconds: options.clockBoundMilliseconds ?? 100 }, unclaimed),
    applyRecipe: async (run, recipe) => fields.apply(run, recipe),
    dispose: async () => connection.dispose(),
  };
}

function makeFolder(folder: string, path: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    throw unreachable(path, cause);
  }
}

function requireFile(path: string): void {
  try {
    if (!statSync(path).isFile()) throw new Error("not a file");
  } catch (cause) {
    throw unreachable(path, cause);
  }
}

function unreachable(path: string, cause: unknown): RollscopeError {
  const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined;
  const full = code === "ENOSPC" || code === "EDQUOT";
  return new RollscopeError(
    full ? "STORE_DISK_FULL" : "STORE_UNREACHABLE",
    `The record store ${path} cannot be opened (${cause instanceof Error ? cause.message : String(cause)}).`,
    {
      next: full
        ? "Free space on that disk and start again."
        : "Check the path, and that its folder can be read and written by this user.",
      cause,
      at: { path },
    },
  );
}
