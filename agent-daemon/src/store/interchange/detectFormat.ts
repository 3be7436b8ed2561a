// What a file is, by its first bytes and never by its name: the container, and the format of the records in it.
import type { JsonValue } from "../../../../protocol/agent.ts";
import type { RollscopeError } from "../../../../protocol/errors.ts";
import type { ImportedFormat } from "../../../../protocol/importedTrajectory.ts";
import type { ByteSource } from "./byteSource.ts";
import { miniSweAgent, sweAgent, tauBench } from "./formats/agentRuns.ts";
import { isClaudeCodeEvent, isClaudeCodeNote } from "./formats/claudeCode.ts";
import { inspectLog } from "./formats/inspect.ts";
import { openAiChat, openAiPreference, rollscopeChat } from "./formats/openAiChat.ts";
import { nemoGym, openAiResponses } from "./formats/openAiResponses.ts";
import { openHands } from "./formats/openHands.ts";
import { preference } from "./formats/preference.ts";
import { trl, verl } from "./formats/rolloutText.ts";
import { alpaca, sharegpt } from "./formats/sharegpt.ts";
import { verifiersResults, verifiersTraces } from "./formats/verifiers.ts";
import { importError } from "./importError.ts";
import { completeBeginning, type JsonObject, parseExact } from "./jsonText.ts";
import { isObject } from "./row.ts";
import type { RowFormat } from "./turns.ts";

/** In the order they are asked: the ones with the most particular keys first. */
export const rowFormats: readonly RowFormat[] = [
  rollscopeChat,
  nemoGym,
  verifiersTraces,
  inspectLog,
  openHands,
  tauBench,
  sweAgent,
  miniSweAgent,
  verifiersResults,
  verl,
  trl,
  openAiPreference,
  openAiResponses,
  sharegpt,
  alpaca,
  preference,
  openAiChat,
];

/** How records lie in a file. `array` and `object` are one JSON document, `messages` one list of messages. */
export type JsonContainer = "lines" | "object" | "array" | "messages";

export type DetectedFile =
  | { readonly container: JsonContainer; readonly format: ImportedFormat }
  | { readonly container: "zip"; readonly format: "inspect" }
  | { readonly container: "parquet"; readonly format: "trl-completions" };

/** Bytes of the beginning that are looked at. */
const headBytes = 1 << 20;
const sampledLines = 40;

/**
 * @throws IMPORT_FORMAT_UNKNOWN naming the file, the place and what was looked for; IMPORT_FILE_UNREADABLE
 */
export async function detectFormat(source: ByteSource): Promise<DetectedFile> {
  const head = await source.read(0, Math.min(headBytes, source.size));
  const place = { file: source.file, member: source.member };
  if (head.length === 0)
    throw importError("IMPORT_FORMAT_UNKNOWN", place, "the file is empty.", "Choose another file.");
  const container = binaryContainer(head, source);
  if (container !== null) return container;
  if (head.indexOf(0) >= 0 && head.indexOf(0) < 4096) throw unknown(place, 0, "bytes that are no text begin it");
  const text = new TextDecoder("utf-8").decode(head).replace(/^\uFEFF/, "");
  const whole = head.length === source.size;
  const first = text.trimStart()[0];
  const offset = head.length - Buffer.byteLength(text.trimStart());
  if (first === "[") return detectArray(text, place);
  if (first !== "{")
    throw unknown(place, Math.max(0, offset), `it begins with ${JSON.stringify(text.trimStart().slice(0, 20))}`);
  return isPretty(text) ? detectObject(text, place) : detectLines(text, whole, place);
}

interface File {
  readonly file: string;
  readonly member: string | null;
}

function binaryContainer(head: Buffer, source: ByteSource): DetectedFile | null {
  const place = { file: source.file, member: source.member };
  const magic = head.toString("latin1", 0, 4);
  if (magic === "PK\x03\x04" || magic === "PK\x05\x06") return { container: "zip", format: "inspect" };
  if (magic === "PAR1") return { container: "parquet", format: "trl-completions" };
  if (magic.startsWith("\x1f\x8b"))
    throw importError(
      "IMPORT_FORMAT_UNKNOWN",
      { ...place, byte: 0 },
      "the file is packed with gzip.",
      "Unpack it with gunzip, then open what comes out.",
    );
  if (head.toString("latin1", 257, 262) === "ustar")
    throw importError(
      "IMPORT_FORMAT_UNKNOWN",
      { ...place, byte: 257 },
      "the file is a tar archive.",
      "`rollscope import` unpacks the archive of a run; unpack any other one first.",
    );
  if (magic.startsWith("\xff\xfe") || magic.startsWith("\xfe\xff"))
    throw importError("IMPORT_FORMAT_UNKNOWN", { ...place, byte: 0 }, "the text is UTF-16.", "Save it as UTF-8.");
  return null;
}

/** Whether the first value spans lines: then the file is one document, else one record a line. */
function isPretty(text: string): boolean {
  const [first = "", second = ""] = text.trimStart().split("\n", 2);
  if (first.length === text.trimStart().length || isWhole(first)) return false;
  // A broken first line of many ends anywhere; a document's first line ends where a value goes on.
  return /[{[,:]\s*$/.test(first) && !isWhole(second);
}

/** Whether a line is a record by itself. */
function isWhole(line: string): boolean {
  try {
    const value = parseExact(line);
    return isObject(value) && (formatOf(value) !== null || line.trimStart().length === line.length);
  } catch {
    return false;
  }
}

function detectObject(text: string, place: File): DetectedFile {
  const value = completeBeginning(text);
  if (!isObject(value)) throw unknown(place, 0, "its first object cannot be read");
  const format = formatOf(value);
  if (format === null) throw unknown(place, 0, keysOf(value));
  return { container: "object", format: format.format };
}

function detectArray(text: string, place: File): DetectedFile {
  const value = completeBeginning(text);
  const elements = Array.isArray(value) ? value : [];
  if (elements.length === 0) throw unknown(place, 0, "its list is empty or cannot be read");
  const objects = elements.filter(isObject);
  const first = objects[0];
  if (first !== undefined && typeof first["role"] === "string" && ("content" in first || objects.length === 1))
    return { container: "messages", format: "mini-swe-agent" };
  for (const each of objects.slice(0, sampledLines)) {
    const format = formatOf(each);
    if (format !== null) return { container: "array", format: format.format };
  }
  throw unknown(place, 0, first === undefined ? "its list has no objects" : keysOf(first));
}

function detectLines(text: string, whole: boolean, place: File): DetectedFile {
  const lines = text.split("\n");
  let seen: string | null = null;
  let firstLine = 1;
  for (const [index, line] of lines.entries()) {
    if (index >= sampledLines) break;
    if (line.trim() === "") continue;
    const value = lineValue(line, whole || index < lines.length - 1);
    if (!isObject(value)) {
      seen ??= "which is no JSON object";
      continue;
    }
    if (isClaudeCodeEvent(value) || isClaudeCodeNote(value)) return { container: "lines", format: "claude-code" };
    const format = formatOf(value);
    if (format !== null) return { container: "lines", format: format.format };
    if (seen === null) firstLine = index + 1;
    seen ??= keysOf(value);
  }
  throw unknown({ ...place, line: firstLine }, null, seen ?? "there is no record");
}

/** A line that ended is taken as it is, or as far as it is JSON; so is one that goes on. */
function lineValue(line: string, ended: boolean): JsonValue | null {
  if (ended) {
    try {
      return parseExact(line);
    } catch {
      // Its beginning may still tell what the file is.
    }
  }
  return completeBeginning(line);
}

/** The format of a record; null when none knows it. */
export function formatOf(value: JsonObject): RowFormat | null {
  return rowFormats.find((format) => format.recognises(value)) ?? null;
}

function keysOf(value: JsonObject): string {
  const keys = Object.keys(value).slice(0, 12).join(", ");
  return keys === "" ? "its first object is empty" : `its first object has the keys ${keys}`;
}

function unknown(place: File & { readonly line?: number }, byte: number | null, seen: string): RollscopeError {
  return importError(
    "IMPORT_FORMAT_UNKNOWN",
    { ...place, byte },
    `no known format of trajectories: ${seen}. Looked for messages, conversations, instruction, chosen and rejected, history, traj, traces, responses_create_params, eval and samples, prompt and completion, input with output and score, uuid with parentUuid.`,
    'Convert it to OpenAI chat lines, one {"messages": [{"role", "content"}, …]} a line, and open that.',
  );
}
