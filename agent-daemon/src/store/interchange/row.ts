// One JSON record of a file as formats see it: its values, and its long lists element by element. A small record is parsed whole;
// of a large one only the places of its list elements are known, and each is read when asked for.
import type { JsonValue } from "../../../../protocol/agent.ts";
import type { SourceRange } from "../../../../protocol/importedTrajectory.ts";
import type { ByteSource } from "./byteSource.ts";
import { codedImportError, rowError } from "./importError.ts";
import { type CompiledPlan, JsonScanner, type RangeList } from "./jsonScanner.ts";
import { type JsonObject, parseExact } from "./jsonText.ts";

/** Where a record lies: bytes [start, end), and its line in a file of lines. */
export interface RowPlace {
  readonly start: number;
  readonly end: number;
  readonly line: number | null;
  /** Record number in the file, from 0. */
  readonly index: number;
}

export interface Element {
  readonly value: JsonValue;
  readonly text: string;
  readonly source: SourceRange;
}

export interface ElementList {
  /** Grows while a large record is being scanned. */
  readonly count: number;
  /** Elements [from, to) of those that are there; one that is no JSON comes as its text with what is wrong. */
  read(from: number, to: number): Promise<readonly (Element | BrokenElement)[]>;
}

export interface BrokenElement {
  readonly problem: string;
  readonly text: string;
  readonly source: SourceRange;
}

export interface Row {
  readonly source: ByteSource;
  readonly place: RowPlace;
  /** All of it was seen. */
  readonly complete: boolean;
  /** It is parsed whole: lists stand in `value`. */
  readonly whole: boolean;
  /** In a large record, null stands in place of the lists and maps of its format. */
  readonly value: JsonObject;
  /** The list at a path such as "traces.0.nodes"; null where there is none. */
  list(path: string): ElementList | null;
  /** The entry of a map such as "samples.0.attachments". */
  entry(path: string, key: string): Promise<JsonValue | undefined>;
}

/** Records up to this size are parsed whole. */
export const wholeRowBytes = 4 << 20;
/** Of a large record, as much text may stand beside its lists. */
export const largestSkeleton = 48 << 20;
/** Elements that are read with one access, in bytes. */
const readAhead = 4 << 20;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @throws IMPORT_ROW_INVALID */
export function requireObject(value: JsonValue, source: ByteSource, place: RowPlace): JsonObject {
  if (isObject(value)) return value;
  const what = Array.isArray(value) ? "a list" : value === null ? "null" : `a ${typeof value}`;
  throw rowError({ ...placeOf(source, place) }, `this record is ${what}, not an object.`);
}

export function placeOf(source: ByteSource, { line, start }: Pick<RowPlace, "line" | "start">) {
  return { file: source.file, member: source.member, line, byte: line === null ? start : null };
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @throws IMPORT_ROW_INVALID */
export function decodeUtf8(bytes: Uint8Array, source: ByteSource, place: Pick<RowPlace, "line" | "start">): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw rowError(placeOf(source, place), "it is not UTF-8 text.", cause);
  }
}

/** @throws IMPORT_ROW_INVALID */
export function wholeRow(source: ByteSource, place: RowPlace, bytes: Buffer, plan: CompiledPlan): Row {
  const text = decodeUtf8(bytes, source, place);
  let parsed: JsonValue;
  try {
    parsed = parseExact(text);
  } catch (error) {
    if (error instanceof SyntaxError)
      throw rowError(placeOf(source, place), `this is not valid JSON: ${error.message}.`, error);
    throw codedImportError(error, placeOf(source, place));
  }
  // A file may be a bare list of messages.
  const value = Array.isArray(parsed) && plan.kind === "list" ? {} : requireObject(parsed, source, place);
  let scanned: JsonScanner | null = null;
  const scan = () => {
    if (scanned === null) {
      scanned = new JsonScanner(plan, largestSkeleton);
      scanned.feed(bytes, place.start);
    }
    return scanned;
  };
  const list = (path: string): ElementList | null => {
    const elements = valueAt(parsed, path);
    if (!Array.isArray(elements)) return null;
    return {
      count: elements.length,
      read: async (from, to) => {
        const ranges = scan().lists.get(path);
        return elements.slice(from, to).map((element, offset) => {
          const start = ranges?.starts[from + offset] ?? place.start;
          const end = ranges?.ends[from + offset] ?? place.end;
          return {
            value: element,
            get text() {
              return bytes.toString("utf8", start - place.start, end - place.start);
            },
            source: { start, end, line: place.line, member: source.member },
          };
        });
      },
    };
  };
  return {
    source,
    place,
    complete: true,
    whole: true,
    value,
    list,
    entry: async (path, key) => {
      const map = valueAt(parsed, path);
      return isObject(map) && Object.hasOwn(map, key) ? map[key] : undefined;
    },
  };
}

function valueAt(value: JsonValue, path: string): JsonValue | undefined {
  let found: JsonValue | undefined = value;
  for (const step of path === "" ? [] : path.split(".")) {
    if (Array.isArray(found)) found = found[Number(step)];
    else if (isObject(found) && Object.hasOwn(found, step)) found = found[step];
    else return undefined;
  }
  return found;
}

/** A record of which a scanner has seen a part or all; `value` is what stands beside its lists. */
export function scannedRow(
  source: ByteSource,
  place: RowPlace,
  scanner: JsonScanner,
  value: JsonObject,
  complete: boolean,
): Row {
  return {
    source,
    place,
    complete,
    whole: false,
    value,
    list: (path) => {
      const ranges = scanner.lists.get(path);
      return ranges === undefined ? null : rangeElements(source, ranges, place.line);
    },
    entry: async (path, key) => {
      const range = scanner.maps.get(path)?.get(key);
      if (range === undefined) return undefined;
      const bytes = await source.read(range[0], range[1] - range[0]);
      return parseExact(decodeUtf8(bytes, source, { line: place.line, start: range[0] }));
    },
  };
}

/** Elements at known places; neighbours are read together. */
export function rangeElements(source: ByteSource, ranges: RangeList, line: number | null): ElementList {
  return {
    get count() {
      return ranges.count;
    },
    read: async (from, to) => {
      const last = Math.min(to, ranges.count);
      const elements: (Element | BrokenElement)[] = [];
      for (let first = from; first < last; ) {
        const start = ranges.starts[first] as number;
        let end = first + 1;
        while (end < last && (ranges.ends[end] as number) - start <= readAhead) end++;
        const bytes = await source.read(start, (ranges.ends[end - 1] as number) - start);
        for (let index = first; index < end; index++) {
          const place = { start: ranges.starts[index] as number, end: ranges.ends[index] as number, line };
          elements.push(elementOf(bytes.subarray(place.start - start, place.end - start), source, place));
        }
        first = end;
      }
      return elements;
    },
  };
}

export function elementOf(
  bytes: Buffer,
  source: ByteSource,
  place: { readonly start: number; readonly end: number; readonly line: number | null },
): Element | BrokenElement {
  const range = { ...place, member: source.member };
  const text = bytes.toString("utf8");
  try {
    const checked = decodeUtf8(bytes, source, place);
    return { value: parseExact(checked), text: checked, source: range };
  } catch (error) {
    return { problem: codedImportError(error, placeOf(source, place)).message, text, source: range };
  }
}
