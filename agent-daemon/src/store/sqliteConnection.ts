// One connection to a SQLite file: opening, prepared statements, transactions, coded errors. It is the only importer of
// the binding, and guards it: some values that it cannot bind would end the process.
import { statSync } from "node:fs";
import Database from "libsql";
import { RollscopeError } from "../../../protocol/errors.ts";
import { sqliteError } from "./sqliteErrors.ts";

export type SqlValue = string | number | bigint | boolean | null | undefined | Uint8Array;

export interface ConnectionOptions {
  readonly readOnly?: boolean;
  /** How long a statement waits for another process; default 10 seconds. */
  readonly busyMilliseconds?: number;
  /** How old what a reader sees may be, while a writer goes on; default 200 milliseconds. */
  readonly staleMilliseconds?: number;
}

interface NativeStatement {
  run(values: readonly unknown[]): { readonly changes: number };
  all(values: readonly unknown[]): unknown[];
}

const cachedStatements = 256;

export class SqliteConnection {
  readonly path: string;
  readonly readOnly: boolean;
  readonly #busyMilliseconds: number;
  #database: InstanceType<typeof Database>;
  #isDurable = false;
  /** State of the log when the handle was opened; null before the first read. Readers only. */
  #seenLog: string | null = null;
  readonly #staleMilliseconds: number;
  #caughtUp = Number.NEGATIVE_INFINITY;
  readonly #statements = new Map<string, NativeStatement>();
  readonly #plans = new Map<string, string>();
  #open = true;

  constructor(path: string, options: ConnectionOptions = {}) {
    this.path = path;
    this.readOnly = options.readOnly ?? false;
    this.#busyMilliseconds = options.busyMilliseconds ?? 10_000;
    this.#staleMilliseconds = options.staleMilliseconds ?? 200;
    try {
      this.#database = new Database(path, { timeout: this.#busyMilliseconds });
    } catch (cause) {
      throw sqliteError(cause, path);
    }
    try {
      if (this.readOnly) this.exec("PRAGMA query_only = 1");
      else this.all("PRAGMA journal_mode = WAL", []);
      this.#setDurable(false);
    } catch (cause) {
      this.dispose();
      throw cause;
    }
  }

  /** Statements without values. */
  exec(sql: string): void {
    this.#guard(() => this.#database.exec(sql));
  }

  /** Runs a write; returns how many rows it changed. */
  run(sql: string, values: readonly SqlValue[]): number {
    return this.#guard(() => this.#prepare(sql).run(values.map(bindable)).changes);
  }

  all<Row>(sql: string, values: readonly SqlValue[]): Row[] {
    if (this.readOnly) this.#catchUp();
    return this.#guard(() => this.#prepare(sql).all(values.map(bindable)) as Row[]);
  }

  /**
   * All of `body` or nothing. Takes the write lock at once, so that a reader never has to become a writer. `durable`: on the
   * disk when it returns, with everything committed before; otherwise only a loss of power can take the last commits back.
   */
  transaction<T>(body: () => T, options: { readonly durable?: boolean } = {}): T {
    if (options.durable === true) this.#setDurable(true);
    try {
      this.#begin();
      try {
        const result = body();
        this.exec("COMMIT");
        return result;
      } catch (cause) {
        // A full disk may have rolled it back already.
        if (this.#open && this.#database.inTransaction) this.#database.exec("ROLLBACK");
        throw cause;
      }
    } finally {
      if (options.durable === true && this.#open) this.#setDurable(false);
    }
  }

  /**
   * Takes the write lock, waiting for it up to the busy time. SQLite refuses without waiting while a read of this connection is
   * still open, and the binding does leave one open now and then; a new handle has none.
   */
  #begin(): void {
    this.#requireOpen();
    const deadline = Date.now() + this.#busyMilliseconds;
    for (;;) {
      try {
        this.#database.exec("BEGIN IMMEDIATE");
        return;
      } catch (cause) {
        const code = String((cause as { readonly code?: unknown }).code);
        if (!code.startsWith("SQLITE_BUSY") || Date.now() >= deadline) throw sqliteError(cause, this.path);
        this.#statements.clear();
        this.#database.close();
        this.#database = new Database(this.path, { timeout: this.#busyMilliseconds });
        this.#setDurable(this.#isDurable);
      }
    }
  }

  /**
   * A read that the binding leaves open keeps a reader at what it saw then, for ever, and keeps the log from being folded. Whoever only
   * reads takes a new handle when the log has changed; nothing is lost, because no read of ours is ever half done here. Not at every
   * statement: a new handle parses the schema and prepares anew.
   */
  #catchUp(): void {
    this.#requireOpen();
    const now = performance.now();
    if (now - this.#caughtUp < this.#staleMilliseconds) return;
    const log = statSync(`${this.path}-wal`, { throwIfNoEntry: false });
    const state = log === undefined ? "" : `${log.ino} ${log.size} ${log.mtimeMs}`;
    if (state === this.#seenLog) return;
    const isFirst = this.#seenLog === null;
    this.#seenLog = state;
    this.#caughtUp = now;
    if (isFirst) return;
    this.#guard(() => {
      this.#statements.clear();
      this.#database.close();
      this.#database = new Database(this.path, { timeout: this.#busyMilliseconds });
      this.#database.exec("PRAGMA query_only = 1");
    });
  }

  /** Names of the indexes that SQLite uses for a query, outermost first; "none" for a scan. */
  indexOf(sql: string, values: readonly SqlValue[]): string {
    let plan = this.#plans.get(sql);
    if (plan === undefined) {
      const lines = this.all<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, values);
      const names = lines.flatMap(({ detail }) => indexNames(detail));
      plan = names.length === 0 ? "none" : [...new Set(names)].join(" + ");
      if (this.#plans.size >= cachedStatements) this.#plans.clear();
      this.#plans.set(sql, plan);
    }
    return plan;
  }

  /** After the schema changed: plans may differ now. */
  forgetPlans(): void {
    this.#plans.clear();
  }

  dispose(): void {
    if (!this.#open) return;
    if (!this.readOnly) this.#foldLog();
    this.#open = false;
    this.#statements.clear();
    this.#database.close();
  }

  /** Moves the log into the file, so that a closed store is one file; left for the next opening if somebody reads. */
  #foldLog(): void {
    try {
      this.all("PRAGMA busy_timeout = 0", []);
      this.all("PRAGMA wal_checkpoint(TRUNCATE)", []);
    } catch {
      // The log is as good a place for what it holds.
    }
  }

  #setDurable(durable: boolean): void {
    this.#isDurable = durable;
    if (!this.readOnly) this.exec(`PRAGMA synchronous = ${durable ? "FULL" : "NORMAL"}`);
  }

  #prepare(sql: string): NativeStatement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql) as unknown as NativeStatement;
      if (this.#statements.size >= cachedStatements) this.#statements.clear();
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #requireOpen(): void {
    if (!this.#open) {
      throw new RollscopeError("STORE_CLOSED", `The record store ${this.path} was closed.`, {
        next: "Open it again; whatever closed it should have waited for this use.",
        at: { path: this.path },
      });
    }
  }

  #guard<T>(use: () => T): T {
    this.#requireOpen();
    try {
      return use();
    } catch (cause) {
      throw sqliteError(cause, this.path);
    }
  }
}

function bindable(value: SqlValue): string | number | bigint | null | Buffer {
  switch (typeof value) {
    case "string":
    case "number":
    case "bigint":
      return value;
    case "boolean":
      return value ? 1 : 0;
    case "undefined":
      return null;
    default:
      return value === null ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
}

function indexNames(detail: string): string[] {
  const match = /^(?:SEARCH|SCAN) (\S+)(?: USING (?:COVERING )?INDEX (\S+)| USING .*PRIMARY KEY)?/.exec(detail);
  if (match === null || !detail.includes("USING")) return [];
  const index = match[2];
  return [index === undefined || index.startsWith("sqlite_autoindex") ? `${match[1]}_id` : index];
}
