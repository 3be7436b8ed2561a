// Reads JSONL task files: one JSON object a line, streamed. Tolerates what editors and other systems leave behind (byte order
// mark, CRLF, blank lines, no newline at the end); everything else that is wrong is an error with file and line. Integers
// beyond ±(2^53 − 1) come out as bigint, so that ids stay what they are.
import { createReadStream } from "node:fs";
import { isInteger, parse } from "lossless-json";
import type { TaskRow } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { FieldType } from "../../../protocol/recipePlace.ts";
import { fitsFieldType } from "../store/recipeFieldTypes.ts";

export interface TaskFileRow {
  /** Row number from 0, blank lines not counted. */
  readonly index: number;
  /** Line in the file, from 1. */
  readonly line: number;
  readonly payload: TaskRow;
}

interface Line {
  readonly number: number;
  readonly bytes: Uint8Array;
}

const newline = 0x0a;

/** Splits at newlines only: U+2028 and U+2029 may stand inside a JSON string. */
async function* linesOf(file: string): AsyncGenerator<Line> {
  let number = 0;
  let open: Buffer[] = [];
  const take = (rest: Buffer): Line => {
    const bytes = open.length === 0 ? rest : Buffer.concat([...open, rest]);
    open = [];
    number++;
    return { number, bytes };
  };
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      yield take(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) open.push(chunk.subarray(start));
  }
  if (open.length > 0) yield take(Buffer.alloc(0));
}

function parseNumber(text: string): number | bigint {
  const value = Number(text);
  if (isInteger(text) && !Number.isSafeInteger(value)) return BigInt(text);
  if (!Number.isFinite(value)) throw new SyntaxError(`Number ${text} is too large`);
  return value;
}

function rowError(file: string, line: number, sentence: string, cause?: unknown): RollscopeError {
  return new RollscopeError("DATA_ROW_INVALID", `${file}:${line}: ${sentence}`, {
    next: "Correct the row: every line of a task file is one JSON object.",
    at: { file, line },
    cause,
  });
}

/** @throws DATA_ROW_INVALID */
function parseRow(text: string, file: string, line: number): TaskRow {
  let value: unknown;
  try {
    value = parse(text, undefined, parseNumber);
  } catch (error) {
    const said = error instanceof SyntaxError ? error.message : "it is nested too deeply";
    throw rowError(file, line, `This row is not valid JSON: ${said}.`, error);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as TaskRow;
  throw rowError(file, line, `This row is ${Array.isArray(value) ? "a list" : String(value)}, not an object.`);
}

/**
 * The rows of a task file, in order.
 *
 * @param file path; named as given in errors
 * @param fields fields that every row must have, by type; null counts as missing
 * @throws DATA_FILE_NOT_FOUND, DATA_ROW_INVALID
 */
export async function* readTaskFile(
  file: string,
  fields: Readonly<Record<string, FieldType>> = {},
): AsyncGenerator<TaskFileRow> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let index = 0;
  try {
    for await (const { number, bytes } of linesOf(file)) {
      let text: string;
      try {
        text = decoder.decode(bytes);
      } catch (error) {
        throw rowError(file, number, "This row is not UTF-8 text.", error);
      }
      if (number === 1 && text.startsWith("\uFEFF")) text = text.slice(1);
      if (text.trim() === "") continue;
      const payload = parseRow(text, file, number);
      for (const [name, type] of Object.entries(fields)) {
        const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
        if (value === undefined || value === null)
          throw rowError(file, number, `This row has no field ${name}, which taskSchema declares.`);
        if (!fitsFieldType(value, type)) throw rowError(file, number, `Field ${name} of this row is no ${type}.`);
      }
      yield { index, line: number, payload };
      index++;
    }
  } catch (error) {
    if (error instanceof RollscopeError) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    throw new RollscopeError(
      "DATA_FILE_NOT_FOUND",
      `The task file ${file} cannot be read (${code ?? String(error)}).`,
      {
        next: "Check data.train and data.heldOut: paths are relative to the recipe's folder.",
        cause: error,
        at: { file },
      },
    );
  }
}
