// Indexes files of JSON: lines, one document, a list of records, a list of messages. Every record that cannot be read is reported
// with its place, and the others are read all the same.
import type { ImportedFormat } from "../../../../protocol/importedTrajectory.ts";
import type { ByteSource } from "./byteSource.ts";
import { formatOf, type JsonContainer, rowFormats } from "./detectFormat.ts";
import { codedImportError, rowError } from "./importError.ts";
import { compilePlan, JsonScanner } from "./jsonScanner.ts";
import { completeBeginning } from "./jsonText.ts";
import { chunkBytes, LiveRecord } from "./liveRecord.ts";
import { isObject, placeOf, type Row, type RowPlace, wholeRow, wholeRowBytes } from "./row.ts";
import type { TrajectoryIndex } from "./trajectoryIndex.ts";
import type { RowFormat } from "./turns.ts";

export interface IndexWork {
  readonly source: ByteSource;
  readonly index: TrajectoryIndex;
  readonly signal: AbortSignal;
  /** Bytes that were read so far. */
  progress(done: number): void;
}

const plans = new Map<RowFormat, ReturnType<typeof compilePlan>>();

function planOf(format: RowFormat): ReturnType<typeof compilePlan> {
  const plan = plans.get(format) ?? compilePlan(format);
  plans.set(format, plan);
  return plan;
}

function named(format: ImportedFormat): RowFormat {
  return rowFormats.find((each) => each.format === format) as RowFormat;
}

/** Start of the text: after a byte order mark. */
export async function textStart(source: ByteSource): Promise<number> {
  const head = await source.read(0, Math.min(3, source.size));
  return head.toString("latin1") === "\xef\xbb\xbf" ? 3 : 0;
}

export async function indexJson(work: IndexWork, container: JsonContainer, detected: ImportedFormat): Promise<void> {
  const format = named(detected);
  const start = await textStart(work.source);
  if (container === "lines") await indexLines(work, format, start);
  else if (container === "array") await indexArray(work, format, start);
  else await indexDocument(work, format, start);
}

/** Adds a small record, or reports why it cannot be read. */
async function addWhole(work: IndexWork, format: RowFormat, place: RowPlace, bytes: Buffer): Promise<boolean> {
  const { source, index } = work;
  try {
    const first = wholeRow(source, place, bytes, planOf(format));
    const fitting = format.recognises(first.value) || format.lists.includes("") ? format : formatOf(first.value);
    if (fitting === null) {
      const keys = Object.keys(first.value).slice(0, 8).join(", ");
      throw rowError(placeOf(source, place), `this record is of no known format (keys: ${keys || "none"}).`);
    }
    const open = async (row: Row) => {
      try {
        return await fitting.open(row);
      } catch (error) {
        throw codedImportError(error, placeOf(source, place));
      }
    };
    const row = fitting === format ? first : wholeRow(source, place, bytes, planOf(fitting));
    const handle = {
      format: fitting.format,
      source: { start: place.start, end: place.end, line: place.line, member: source.member },
      complete: true,
      open: async () => {
        const again = await source.read(place.start, place.end - place.start);
        return await open(wholeRow(source, place, again, planOf(fitting)));
      },
    };
    index.add(handle, await open(row));
    return true;
  } catch (error) {
    index.problem(codedImportError(error, placeOf(source, place)));
    return false;
  }
}

/** The format of a large record by its beginning, else that of the file. */
async function formatOfLarge(source: ByteSource, start: number, format: RowFormat): Promise<RowFormat> {
  const head = await source.read(start, Math.min(chunkBytes, source.size - start));
  const value = completeBeginning(head.toString("utf8"));
  return isObject(value) ? (format.recognises(value) ? format : (formatOf(value) ?? format)) : format;
}

async function indexDocument(work: IndexWork, format: RowFormat, start: number): Promise<void> {
  const { source, index } = work;
  const place = { start, end: source.size, line: null, index: 0 };
  const small = source.size <= wholeRowBytes;
  if (small && (await addWhole(work, format, place, await source.read(start, source.size - start)))) return;
  const live = new LiveRecord(source, place, format, index);
  for (let at = start; at < source.size && !live.done; ) {
    work.signal.throwIfAborted();
    at = Math.min(source.size, at + chunkBytes);
    await live.readTo(at);
    work.progress(at);
  }
  const whole = await live.finish(live.done ? live.end : source.size, !small);
  if (whole && !small) await reportRest(work, live.end);
}

/** After one JSON document nothing may come. */
async function reportRest({ source, index }: IndexWork, end: number): Promise<void> {
  const rest = await source.read(end, Math.min(4096, source.size - end));
  const at = rest.findIndex((byte) => byte > 0x20);
  if (at >= 0)
    index.problem(
      rowError(
        { file: source.file, member: source.member, byte: end + at },
        "more follows after the end of the document; it was not read.",
      ),
    );
}

async function indexArray(work: IndexWork, format: RowFormat, start: number): Promise<void> {
  const { source, index } = work;
  const scanner = new JsonScanner(compilePlan({ lists: [""] }), chunkBytes);
  let taken = 0;
  let live: LiveRecord | null = null;
  for (let at = start; at < source.size && !scanner.done; ) {
    work.signal.throwIfAborted();
    const chunk = await source.read(at, Math.min(chunkBytes, source.size - at));
    at += scanner.feed(chunk, at);
    const list = scanner.lists.get("");
    if (list === undefined) continue;
    for (; taken < list.count; taken++) {
      const place = { start: list.starts[taken] as number, end: list.ends[taken] as number, line: null, index: taken };
      if (live !== null) {
        await live.readTo(place.end);
        await live.finish(place.end);
        live = null;
      } else if (place.end - place.start <= wholeRowBytes) {
        await addWhole(work, format, place, await source.read(place.start, place.end - place.start));
      } else {
        live = new LiveRecord(source, place, await formatOfLarge(source, place.start, format), index);
        await live.readTo(place.end);
        await live.finish(place.end);
        live = null;
      }
    }
    const begun = list.starts[taken];
    if (begun !== undefined && at - begun > wholeRowBytes) {
      live ??= new LiveRecord(
        source,
        { start: begun, line: null, index: taken },
        await formatOfLarge(source, begun, format),
        index,
      );
      await live.readTo(at);
    }
    work.progress(at);
  }
  if (scanner.done && scanner.error === null) return;
  if (live !== null) await live.finish(source.size);
  else {
    scanner.end(source.size);
    const begun = scanner.lists.get("")?.starts[taken];
    const from = placeOf(source, { line: null, start: begun ?? scanner.error?.at ?? 0 });
    index.problem(
      rowError(
        from,
        `the list is damaged here: ${scanner.error?.why ?? "it ends early"}. What comes after is not read.`,
      ),
    );
  }
}

async function indexLines(work: IndexWork, format: RowFormat, start: number): Promise<void> {
  let rows = 0;
  let live: LiveRecord | null = null;
  await eachLine(work, start, {
    whole: async (bytes, lineStart, line) => {
      const place = { start: lineStart, end: lineStart + bytes.length, line, index: rows };
      if (isBlank(bytes)) return;
      rows++;
      await addWhole(work, format, place, bytes);
    },
    growing: async (lineStart, line, to) => {
      if (live === null) {
        const fitting = await formatOfLarge(work.source, lineStart, format);
        live = new LiveRecord(work.source, { start: lineStart, line, index: rows++ }, fitting, work.index);
      }
      await live.readTo(to);
    },
    grown: async (end) => {
      const record = live as unknown as LiveRecord;
      live = null;
      await record.readTo(end);
      await record.finish(end);
    },
  });
}

export function isBlank(bytes: Buffer): boolean {
  for (const byte of bytes) if (byte > 0x20) return false;
  return true;
}

export interface LineReader {
  whole(bytes: Buffer, start: number, line: number): Promise<void>;
  /** A line longer than `limit` has been seen up to byte `to`. */
  growing(start: number, line: number, to: number): Promise<void>;
  /** That line ended. */
  grown(end: number): Promise<void>;
}

/** Splits at newlines only: U+2028 may stand inside a JSON string. */
export async function eachLine(
  work: IndexWork,
  start: number,
  reader: LineReader,
  limit = wholeRowBytes,
): Promise<void> {
  const { source, signal } = work;
  let open: Buffer[] = [];
  let openBytes = 0;
  let lineStart = start;
  let line = 1;
  let large = false;
  for (let base = start; base < source.size; ) {
    signal.throwIfAborted();
    const chunk = await source.read(base, Math.min(chunkBytes, source.size - base));
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
      if (large) await reader.grown(base + end);
      else {
        const rest = chunk.subarray(from, end);
        await reader.whole(open.length === 0 ? rest : Buffer.concat([...open, rest]), lineStart, line);
      }
      large = false;
      open = [];
      openBytes = 0;
      from = end + 1;
      lineStart = base + from;
      line++;
    }
    if (from < chunk.length) {
      openBytes += chunk.length - from;
      if (large || openBytes > limit) {
        large = true;
        open = [];
        await reader.growing(lineStart, line, base + chunk.length);
      } else open.push(chunk.subarray(from));
    }
    base += chunk.length;
    work.progress(base);
  }
  if (large) await reader.grown(source.size);
  else if (openBytes > 0) await reader.whole(Buffer.concat(open), lineStart, line);
}
