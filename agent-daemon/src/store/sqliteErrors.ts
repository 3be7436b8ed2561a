// What SQLite and the file system under it say, as coded errors. It decides by code, never by wording.
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { type ErrorCode, RollscopeError } from "../../../protocol/errors.ts";

/** Below this many free bytes a failed write is put down to a full disk. */
const fullDiskBytes = 131_072;

export function sqliteError(cause: unknown, path: string): RollscopeError {
  if (cause instanceof RollscopeError) return cause;
  const { code, sentence, next } = explain(codeOf(cause), path);
  return new RollscopeError(code, `${sentence} (${cause instanceof Error ? cause.message : String(cause)}).`, {
    next,
    cause,
    at: { path },
  });
}

/** SQLite's own name of the error; the binding reports a failed open as text that ends with the number. */
function codeOf(cause: unknown): string {
  if (!(cause instanceof Error)) return "";
  const code = (cause as { readonly code?: unknown }).code;
  if (typeof code === "string") return code;
  const number = /: (\d+)"?\)?$/.exec(cause.message)?.[1];
  return number === undefined ? "" : (codesOfOpen[Number(number) & 0xff] ?? "");
}

const codesOfOpen: { readonly [number: number]: string } = {
  5: "SQLITE_BUSY",
  8: "SQLITE_READONLY",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  13: "SQLITE_FULL",
  14: "SQLITE_CANTOPEN",
  23: "SQLITE_AUTH",
  26: "SQLITE_NOTADB",
};

function explain(
  sqlite: string,
  path: string,
): { readonly code: ErrorCode; readonly sentence: string; readonly next: string } {
  const full = {
    code: "STORE_DISK_FULL",
    sentence: `No space is left for the record store ${path}`,
    next: "Free space on that disk and resume; nothing that was committed is lost.",
  } as const;
  if (sqlite === "SQLITE_FULL") return full;
  // Growing the shared index or the log on a full disk is reported as an input/output error.
  if (/^SQLITE_(IOERR|CANTOPEN|PROTOCOL)/.test(sqlite) && freeBytes(path) < fullDiskBytes) return full;
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(sqlite)) {
    return {
      code: "STORE_CORRUPT",
      sentence: `The record store ${path} is damaged or not a record store`,
      next: "Keep the file for inspection, restore it from a backup, and start the run from its last checkpoint.",
    };
  }
  if (/^SQLITE_(BUSY|LOCKED)/.test(sqlite)) {
    return {
      code: "STORE_BUSY",
      sentence: `Another process holds the record store ${path}`,
      next: "Try again; if it lasts, find the process that has the file open and end it.",
    };
  }
  if (/^SQLITE_(IOERR|CANTOPEN|PERM|AUTH|READONLY_DBMOVED|READONLY_DIRECTORY)/.test(sqlite)) {
    return {
      code: "STORE_UNREACHABLE",
      sentence: `The record store ${path} cannot be read or written`,
      next: "Make the file and its folder readable and writable for this user, check the disk, then resume.",
    };
  }
  if (sqlite.startsWith("SQLITE_READONLY")) {
    return {
      code: "STORE_READ_ONLY",
      sentence: `The record store ${path} was opened for reading only`,
      next: "Write through the process that runs the run, or make the file writable.",
    };
  }
  return {
    code: "STORE_FAILED",
    sentence: `The record store ${path} failed${sqlite === "" ? "" : ` with ${sqlite}`}`,
    next: "Report this with the message; the store is as it was before the failed write.",
  };
}

function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
