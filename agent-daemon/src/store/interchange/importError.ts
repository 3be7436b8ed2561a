// The coded errors of reading other tools' files: each names the file and the place, and what to do.
import { type ErrorCode, RollscopeError } from "../../../../protocol/errors.ts";
import type { FileProblem } from "../../../../protocol/importedTrajectory.ts";

export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line?: number | null;
  readonly byte?: number | null;
  readonly member?: string | null;
}

type ImportCode = Extract<ErrorCode, `IMPORT_${string}`>;

/** `file:line`, `file (byte n)`, `file » member`. */
export function describePlace({ file, line, byte, member }: Place): string {
  const inside = member == null ? file : `${file} » ${member}`;
  if (line != null) return `${inside}:${line}`;
  return byte == null ? inside : `${inside} (byte ${byte})`;
}

export function importError(
  code: ImportCode,
  place: Place,
  sentence: string,
  next: string,
  cause?: unknown,
): RollscopeError {
  const at: Record<string, string | number> = { file: place.file };
  if (place.line != null) at["line"] = place.line;
  if (place.byte != null) at["byte"] = place.byte;
  if (place.member != null) at["member"] = place.member;
  return new RollscopeError(code, `${describePlace(place)}: ${sentence}`, { next, cause, at });
}

export function rowError(place: Place, sentence: string, cause?: unknown): RollscopeError {
  const next = "Correct or remove this row; the other rows of the file are read all the same.";
  return importError("IMPORT_ROW_INVALID", place, sentence, next, cause);
}

/** Any error as a coded one: what the parsers of JSON, zip and Parquet throw carries no code. */
export function codedImportError(error: unknown, place: Place): RollscopeError {
  if (error instanceof RollscopeError) return error;
  if (error instanceof RangeError && /call stack/i.test(error.message))
    return rowError(place, "it is nested too deeply.", error);
  const { code, message } = error as NodeJS.ErrnoException;
  if (typeof code === "string" && /^E[A-Z]+$/.test(code)) return unreadable(place, code, error);
  return rowError(place, `it cannot be read (${message ?? String(error)}).`, error);
}

export function unreadable(place: Place, why: string, cause?: unknown): RollscopeError {
  const next = "Check that the path names a file and that this user may read it.";
  return importError("IMPORT_FILE_UNREADABLE", place, `the file cannot be read (${why}).`, next, cause);
}

export function problemOf(error: RollscopeError): FileProblem {
  const { line, byte, member } = error.at;
  return {
    code: error.code,
    message: error.message,
    next: error.next,
    line: typeof line === "number" ? line : null,
    byte: typeof byte === "number" ? byte : null,
    member: typeof member === "string" ? member : null,
  };
}
