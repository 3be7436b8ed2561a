// Indexes what is not plain JSON records: session logs whose lines form a tree, zips of samples, and Parquet tables.
import { type AsyncBuffer, parquetMetadataAsync, parquetReadObjects, parquetSchema } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import type { JsonValue } from "../../../../protocol/agent.ts";
import type { ByteSource } from "./byteSource.ts";
import { ClaudeCodeSession } from "./formats/claudeCode.ts";
import { inspectLogFacts, inspectSample } from "./formats/inspect.ts";
import { trlTrajectory } from "./formats/rolloutText.ts";
import { codedImportError, importError, rowError } from "./importError.ts";
import { eachLine, type IndexWork, isBlank } from "./jsonIndexer.ts";
import { compilePlan, RangeList } from "./jsonScanner.ts";
import { type JsonObject, parseExact } from "./jsonText.ts";
import { LiveRecord } from "./liveRecord.ts";
import {
  decodeUtf8,
  elementOf,
  placeOf,
  type Row,
  type RowPlace,
  requireObject,
  wholeRow,
  wholeRowBytes,
} from "./row.ts";
import { object } from "./turns.ts";
import type { ZipMembers } from "./zipMembers.ts";

/** A line of a session log that is larger is reported and left out. */
const largestLine = 64 << 20;

export async function indexClaudeCode(work: IndexWork, start: number): Promise<void> {
  const { source, index } = work;
  const ranges = new RangeList();
  const numbers: number[] = [];
  const session = new ClaudeCodeSession(async (lines) => {
    const elements = [];
    for (const line of lines) {
      const place = {
        start: ranges.starts[line] as number,
        end: ranges.ends[line] as number,
        line: numbers[line] as number,
      };
      elements.push(elementOf(await source.read(place.start, place.end - place.start), source, place));
    }
    return elements;
  });
  let shown = 0;
  const rowOf = (complete: boolean): Row => ({
    source,
    place: { start, end: source.size, line: null, index: 0 },
    complete,
    whole: false,
    value: {},
    list: () => null,
    entry: async () => undefined,
  });
  const show = (complete: boolean) => {
    if (session.count === 0) return;
    const row = rowOf(complete);
    const trajectories = complete ? session.trajectories(row) : session.soFar(row);
    const range = { start, end: source.size, line: null, member: source.member };
    index.replace(
      0,
      shown,
      { format: "claude-code", source: range, complete, open: async () => trajectories },
      trajectories,
    );
    shown = trajectories.length;
  };
  const add = (bytes: Buffer, lineStart: number, line: number) => {
    if (isBlank(bytes)) return;
    const place = { start: lineStart, end: lineStart + bytes.length, line, index: numbers.length };
    try {
      const event = requireObject(parseLine(bytes, source, place), source, place);
      ranges.starts.push(place.start);
      ranges.ends.push(place.end);
      numbers.push(line);
      session.add(event, numbers.length - 1);
    } catch (error) {
      index.problem(codedImportError(error, placeOf(source, place)));
    }
  };
  let seen = 0;
  let tooLong = 0;
  const lines: IndexWork = {
    ...work,
    progress: (done) => {
      // Showing costs as much as there is to show.
      if (session.count > seen * 1.25) {
        seen = session.count;
        show(false);
      }
      work.progress(done);
    },
  };
  await eachLine(
    lines,
    start,
    {
      whole: async (bytes, lineStart, line) => add(bytes, lineStart, line),
      growing: async (_lineStart, line) => {
        tooLong = line;
      },
      grown: async () =>
        index.problem(rowError({ file: source.file, line: tooLong }, `the line is longer than ${largestLine} bytes.`)),
    },
    largestLine,
  );
  show(true);
}

function parseLine(bytes: Buffer, source: ByteSource, place: RowPlace): JsonValue {
  const text = decodeUtf8(bytes, source, place);
  try {
    return parseExact(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw rowError(placeOf(source, place), `this is not valid JSON: ${error.message}.`, error);
  }
}

/** Samples of an .eval file. Returns what the log says about itself. */
export async function indexEvalZip(
  work: Omit<IndexWork, "source">,
  file: string,
  zip: ZipMembers,
): Promise<JsonObject> {
  const log = await logHeader(work, file, zip);
  const facts = { ...inspectLogFacts(log), members: [...zip.names], interrupted: !zip.names.includes("header.json") };
  const format = inspectSample(log);
  const plan = compilePlan(format);
  const samples = zip.names.filter((name) => /^samples\/.+\.json$/.test(name)).sort(naturally);
  if (samples.length === 0 && Object.keys(log).length === 0) {
    throw importError(
      "IMPORT_FORMAT_UNKNOWN",
      { file },
      "the zip is no Inspect log: it has neither header.json nor samples/….json.",
      "Unpack it and open the files in it.",
    );
  }
  for (const [index, member] of samples.entries()) {
    work.signal.throwIfAborted();
    try {
      const source = await zip.open(member);
      const place = { start: 0, end: source.size, line: null, index };
      if (source.size > wholeRowBytes) {
        const live = new LiveRecord(source, place, format, work.index);
        await live.readTo(source.size);
        await live.finish(source.size);
        continue;
      }
      const opened = async (bytes: ByteSource) =>
        await format.open(wholeRow(bytes, place, await bytes.read(0, bytes.size), plan));
      const range = { start: 0, end: source.size, line: null, member };
      const open = async () => await opened(await zip.open(member));
      work.index.add({ format: "inspect", source: range, complete: true, open }, await opened(source));
    } catch (error) {
      work.index.problem(codedImportError(error, { file, member }));
    }
    work.progress((index + 1) / samples.length);
  }
  return facts;
}

/** header.json; of a run that was interrupted, what its journal began with. */
async function logHeader(work: Omit<IndexWork, "source">, file: string, zip: ZipMembers): Promise<JsonObject> {
  for (const member of ["header.json", "_journal/start.json"]) {
    if (!zip.names.includes(member)) continue;
    try {
      const source = await zip.open(member);
      return object(parseLine(await source.read(0, source.size), source, { start: 0, end: 0, line: null, index: 0 }));
    } catch (error) {
      work.index.problem(codedImportError(error, { file, member }));
    }
  }
  return {};
}

const numeric = new Intl.Collator("en", { numeric: true });
function naturally(a: string, b: string): number {
  return numeric.compare(a, b);
}

/** Rows that are read at a time. */
const rowsAtOnce = 256;

/** Rows of TRL's table of completions. Returns what the table says about itself. */
export async function indexCompletions(work: IndexWork): Promise<JsonObject> {
  const { source, index } = work;
  const place = { file: source.file };
  const sliceOf = async (start: number, end: number) => {
    // Places come from the file itself, which may be damaged.
    if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end))
      throw new Error("it names a place that is no number");
    const from = Math.max(0, start < 0 ? source.size + start : start);
    const bytes = await source.read(from, Math.max(0, Math.min(end, source.size) - from));
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
  };
  const file: AsyncBuffer = {
    byteLength: source.size,
    slice: (start, end = source.size) => {
      const part = sliceOf(start, end);
      // The library asks ahead and may fail before it looks at the answer; who does wait still gets the error.
      part.catch(() => {});
      return part;
    },
  };
  const damaged = (error: unknown) =>
    error instanceof Error && error.name === "RollscopeError"
      ? error
      : importError(
          "IMPORT_FILE_INVALID",
          place,
          `the Parquet file is damaged or incomplete (${error instanceof Error ? error.message : String(error)}).`,
          "Fetch or copy the file again.",
          error,
        );
  try {
    const metadata = await parquetMetadataAsync(file);
    const children = parquetSchema(metadata).children;
    const columns = children.map((child) => child.element.name);
    if (!columns.includes("prompt") || !columns.includes("completion")) {
      throw importError(
        "IMPORT_FORMAT_UNKNOWN",
        place,
        `the table has the columns ${columns.slice(0, 12).join(", ")}; looked for prompt and completion.`,
        "Rename the columns that hold the prompt and the completion as text.",
      );
    }
    const total = Number(metadata.num_rows);
    if (!Number.isSafeInteger(total) || total < 0) throw new Error(`it claims ${total} rows`);
    const groups = groupEnds(
      metadata.row_groups.map(({ num_rows }) => Number(num_rows)),
      total,
    );
    // One column of one row group at a time: of several that the library reads together, only the first that fails is awaited.
    const read = async (from: number, to: number) => {
      const rows: Record<string, unknown>[] = [];
      for (let first = from; first < Math.min(total, to); ) {
        const end = Math.min(to, groups.find((group) => group > first) ?? total);
        const part = Array.from({ length: end - first }, (): Record<string, unknown> => ({}));
        for (const column of columns) {
          const options = { file, metadata, compressors, columns: [column], rowStart: first, rowEnd: end };
          const values = await parquetReadObjects(options);
          part.length = Math.min(part.length, values.length);
          for (const [index, row] of part.entries()) row[column] = values[index]![column];
        }
        rows.push(...part);
        if (part.length < end - first) break;
        first = end;
      }
      return rows;
    };
    const nulls: { [column: string]: number } = {};
    for (let first = 0; first < total; first += rowsAtOnce) {
      work.signal.throwIfAborted();
      const rows = await read(first, first + rowsAtOnce);
      if (rows.length === 0) throw new Error(`it ends at row ${first} of ${total}`);
      for (const [offset, values] of rows.entries()) {
        const number = first + offset;
        const row = tableRow(source, number, values);
        for (const [column, value] of Object.entries(row.value))
          if (value === null) nulls[column] = (nulls[column] ?? 0) + 1;
        const open = async () => {
          const again = (await read(number, number + 1))[0];
          return [trlTrajectory(tableRow(source, number, again ?? {}))];
        };
        const range = { start: 0, end: source.size, line: number + 1, member: null };
        index.add({ format: "trl-completions", source: range, complete: true, open }, [trlTrajectory(row)]);
      }
      work.progress(Math.min(source.size, (source.size * (first + rows.length)) / total));
    }
    const types = Object.fromEntries(children.map(({ element }) => [element.name, element.type ?? "group"]));
    return { rows: total, columns, types, nulls };
  } catch (error) {
    if (work.signal.aborted) throw error;
    throw damaged(error);
  }
}

/** Rows at which row groups end, as far as their sizes make sense. */
function groupEnds(sizes: readonly number[], total: number): number[] {
  const ends: number[] = [];
  let end = 0;
  for (const size of sizes) {
    if (!Number.isSafeInteger(size) || size <= 0 || end + size > total) break;
    end += size;
    ends.push(end);
  }
  return ends;
}

function tableRow(source: ByteSource, index: number, values: Record<string, unknown>): Row {
  return {
    source,
    place: { start: 0, end: source.size, line: null, index },
    complete: true,
    whole: true,
    value: Object.fromEntries(Object.entries(values).map(([column, value]) => [column, cell(value)])),
    list: () => null,
    entry: async () => undefined,
  };
}

function cell(value: unknown): JsonValue {
  if (value === null || value === undefined) return null;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (ArrayBuffer.isView(value)) return Array.from(value as Uint8Array, cell);
  if (Array.isArray(value)) return value.map(cell);
  return Object.fromEntries(Object.entries(value as object).map(([key, inner]) => [key, cell(inner)]));
}
