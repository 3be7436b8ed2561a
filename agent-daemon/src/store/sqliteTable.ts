// One table of documents: insert, get, query by page, count, and rewriting of single documents. Documents are checked by
// their schema when they are written and when they are read; what does not pass never gets further.
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";
import { decodeDocument, encodeDocument } from "./documentText.ts";
import type { Count, Page, PageRequest } from "./interface.ts";
import type { SqliteConnection, SqlValue } from "./sqliteConnection.ts";
import type { Clause } from "./sqliteFilter.ts";

/** A document server takes 16 MB; what is near it belongs in a blob. */
const largestDocument = 8 * 1024 * 1024;
const largestPage = 10_000;

export interface TableSpec<D extends { readonly id: string }> {
  readonly table: string;
  readonly schema: z.ZodType<D>;
  /** The columns beside `id` and `doc`, in the table's order. */
  readonly columns: { readonly [column: string]: (document: D) => SqlValue };
  /** What pages may be ordered by besides "created": name → column. */
  readonly orders?: { readonly [order: string]: string };
  /** Columns that few documents share, with an index of their own: a query that names one starts there, not at the run. */
  readonly selective?: readonly string[];
  /** Commits of inserts reach the disk before they return. */
  readonly durable?: boolean;
}

export interface Table<D extends { readonly id: string }> {
  readonly name: string;
  insert(documents: readonly D[], check?: (document: D) => void): void;
  get(ids: readonly string[]): Map<string, D>;
  query(clauses: readonly Clause[], page?: PageRequest<string>): Page<D>;
  count(clauses: readonly Clause[]): Count;
  /** Every document that passes, ordered by `orderBy`. */
  all(clauses: readonly Clause[], orderBy: string): D[];
  /** Replaces a stored document; call it inside a transaction that read it. */
  rewrite(document: D): void;
}

interface DocRow {
  readonly id: string;
  readonly doc: string;
  readonly sort: number;
}

const cursorSchema = z.tuple([z.number(), z.string()]);

export function openTable<D extends { readonly id: string }>(
  connection: SqliteConnection,
  spec: TableSpec<D>,
): Table<D> {
  const columns = Object.entries(spec.columns);
  const names = columns.map(([name]) => name);
  const insertSql = `INSERT OR IGNORE INTO ${spec.table} (id, ${names.join(", ")}, doc) VALUES (?${", ?".repeat(names.length + 1)})`;
  const rewriteSql = `UPDATE ${spec.table} SET ${names.map((name) => `${name} = ?`).join(", ")}, doc = ? WHERE id = ?`;

  const read = (row: DocRow): D => {
    try {
      return spec.schema.parse(decodeDocument(row.doc));
    } catch (cause) {
      throw new RollscopeError(
        "STORE_CORRUPT",
        `Document ${row.id} of ${spec.table} in ${connection.path} cannot be read${cause instanceof z.ZodError ? `: ${issues(cause)}` : ""}.`,
        {
          next: "Restore the file from a backup, or start the run from its last checkpoint in a new folder.",
          cause,
          at: { path: connection.path, collection: spec.table, id: row.id },
        },
      );
    }
  };

  const textOf = (document: D): string => {
    const parsed = spec.schema.safeParse(document);
    if (!parsed.success) {
      throw new RollscopeError(
        "STORE_DOCUMENT_INVALID",
        `A document for ${spec.table} is refused: ${issues(parsed.error)}.`,
        {
          next: "This is a fault of the program that wrote it; report it with the message.",
          cause: parsed.error,
          at: { collection: spec.table, id: String(document.id) },
        },
      );
    }
    const text = encodeDocument(document);
    if (text.length > largestDocument) {
      throw new RollscopeError(
        "STORE_DOCUMENT_TOO_LARGE",
        `Document ${document.id} of ${spec.table} has ${text.length} characters; at most ${largestDocument} can be stored.`,
        {
          next: "Shorten what the recipe or its tools put into one message, or keep it outside and store a reference.",
          at: { id: document.id },
        },
      );
    }
    return text;
  };

  const valuesOf = (document: D): SqlValue[] => columns.map(([, value]) => value(document));

  /** Left alone, SQLite prefers the index that spares it the sorting, and reads the whole run for a few documents. */
  const started = (clauses: readonly Clause[]): readonly Clause[] => {
    const isSelective = clauses.some(({ sql }) =>
      spec.selective?.some((column) => /^ (=|IN) /.test(sql.slice(column.length)) && sql.startsWith(column)),
    );
    return isSelective
      ? clauses.map((clause) => (clause.sql === "run = ?" ? { ...clause, sql: "+run = ?" } : clause))
      : clauses;
  };

  const where = (clauses: readonly Clause[]): { readonly sql: string; readonly values: SqlValue[] } => ({
    sql: clauses.length === 0 ? "" : ` WHERE ${clauses.map((clause) => clause.sql).join(" AND ")}`,
    values: clauses.flatMap((clause) => clause.values),
  });

  return {
    name: spec.table,
    insert(documents, check) {
      const rows = documents.map((document) => {
        check?.(document);
        return { document, text: textOf(document) };
      });
      const taken: string[] = [];
      const write = () => {
        for (const { document, text } of rows) {
          if (connection.run(insertSql, [document.id, ...valuesOf(document), text]) === 0) taken.push(document.id);
        }
      };
      if (rows.length > 0) connection.transaction(write, { durable: spec.durable ?? false });
      if (taken.length > 0) throw duplicate(spec.table, taken);
    },
    get(ids) {
      const rows = connection.all<DocRow>(
        `SELECT id, doc FROM ${spec.table} WHERE id IN (SELECT value FROM json_each(?))`,
        [JSON.stringify(ids)],
      );
      return new Map(rows.map((row) => [row.id, read(row)]));
    },
    query(clauses, page = {}) {
      const limit = page.limit ?? 100;
      if (!(Number.isInteger(limit) && limit >= 1 && limit <= largestPage)) {
        throw queryError(`a page has 1 to ${largestPage} documents, not ${limit}`);
      }
      const order = page.order ?? "created";
      const column = order === "created" ? "created" : spec.orders?.[order];
      if (column === undefined) throw queryError(`${spec.table} cannot be ordered by ${order}`);
      const after = page.after === undefined ? null : readCursor(page.after);
      const sign = page.descending === true ? "<" : ">";
      const direction = page.descending === true ? "DESC" : "ASC";
      const { sql, values } = where([
        ...started(clauses),
        ...(order === "created" ? [] : [{ sql: `${column} IS NOT NULL`, values: [] }]),
        ...(after === null ? [] : [{ sql: `(${column}, id) ${sign} (?, ?)`, values: after }]),
      ]);
      const select = `SELECT id, doc, ${column} AS sort FROM ${spec.table}${sql} ORDER BY ${column} ${direction}, id ${direction} LIMIT ?`;
      const bound = [...values, limit + 1];
      const rows = connection.all<DocRow>(select, bound);
      const shown = rows.slice(0, limit);
      const last = rows.length > limit ? shown.at(-1) : undefined;
      return {
        items: shown.map(read),
        next: last === undefined ? null : Buffer.from(JSON.stringify([last.sort, last.id])).toString("base64url"),
        index: connection.indexOf(select, bound),
      };
    },
    count(clauses) {
      const { sql, values } = where(clauses);
      const select = `SELECT count(*) AS n FROM ${spec.table}${sql}`;
      const n = connection.all<{ readonly n: number }>(select, values)[0]?.n ?? 0;
      return { count: n, index: connection.indexOf(select, values) };
    },
    all(clauses, orderBy) {
      const { sql, values } = where(clauses);
      return connection.all<DocRow>(`SELECT id, doc FROM ${spec.table}${sql} ORDER BY ${orderBy}`, values).map(read);
    },
    rewrite(document) {
      connection.run(rewriteSql, [...valuesOf(document), textOf(document), document.id]);
    },
  };
}

export function duplicate(collection: string, ids: readonly string[]): RollscopeError {
  const first = ids[0] as string;
  const others = ids.length === 1 ? "" : ` and ${ids.length - 1} more`;
  return new RollscopeError("STORE_DUPLICATE", `${collection} already has ${first}${others}.`, {
    next: "If this repeats a write whose answer was lost, nothing is left to do; otherwise two writers use the same names.",
    at: { collection, id: first, count: ids.length },
  });
}

export function notFound(collection: string, id: string): RollscopeError {
  return new RollscopeError("STORE_NOT_FOUND", `${collection} has no document ${id}.`, {
    next: "Check the id; a document must be inserted before it is changed.",
    at: { collection, id },
  });
}

export function queryError(sentence: string): RollscopeError {
  return new RollscopeError("STORE_QUERY_INVALID", `The query is refused: ${sentence}.`, {
    next: "Correct the query and ask again.",
  });
}

function readCursor(text: string): [number, string] {
  try {
    return cursorSchema.parse(JSON.parse(Buffer.from(text, "base64url").toString()));
  } catch {
    throw queryError("`after` is not the `next` of a page");
  }
}

function issues(error: z.ZodError): string {
  return error.issues
    .slice(0, 3)
    .map((issue) => `${issue.path.length === 0 ? "document" : issue.path.join(".")}: ${issue.message}`)
    .join("; ");
}
