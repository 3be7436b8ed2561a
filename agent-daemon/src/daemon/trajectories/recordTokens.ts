// Numbers and text of a record's sampled tokens by range: what the sampler stored with each call, what one training row says of
// them, and what follows from both. Positions without a number hold NaN (−1 in columns of integers).
import type { BulkArray } from "../../../../protocol/bulkFrame.ts";
import type { CallDocument } from "../../../../protocol/call.ts";
import type { ObjectiveConfig } from "../../../../protocol/objective.ts";
import type { RecordDataColumnName, RecordDataDocument } from "../../../../protocol/recordData.ts";
import { type TokenColumnName, tokenColumns } from "../../../../protocol/trajectoryView.ts";
import type { ModelText } from "../../engines/tokenizer/load.ts";
import { decodeColumn, type TypedArray } from "../../store/columns.ts";
import type { BlobStore } from "../../store/interface.ts";
import type { CallEntry } from "./recordIndex.ts";

/** A training row with its columns at hand, and the derivative of the step's loss where it was asked for. */
export interface TrainedRow {
  readonly document: RecordDataDocument;
  readonly columns: { readonly [Name in RecordDataColumnName]?: TypedArray };
  readonly gradient: Float64Array | null;
}

export interface TokenSource {
  readonly blobs: BlobStore;
  readonly row: TrainedRow | null;
  readonly objective: ObjectiveConfig | null;
}

/** Stored columns of a training row under the names of the view. */
const stored = {
  old: "old",
  new: "new",
  reference: "reference",
  advantage: "advantage",
  entropy: "entropy",
  weight: "weight",
  value: "oldValue",
  tokenReward: "tokenReward",
  return: "return",
  staleness: "staleness",
} as const satisfies { readonly [Name in TokenColumnName]?: RecordDataColumnName };

function emptyColumn(name: TokenColumnName, length: number): BulkArray {
  const { dtype } = tokenColumns[name];
  if (dtype === "u8") return new Uint8Array(length);
  return dtype === "i32" ? new Int32Array(length).fill(-1) : new Float32Array(length).fill(Number.NaN);
}

/**
 * Columns of sampled tokens [from, to) of the record.
 *
 * @param calls the calls that hold them, each with its place
 */
export async function tokenArrays(
  source: TokenSource,
  calls: readonly (readonly [CallEntry, CallDocument])[],
  range: { readonly from: number; readonly to: number },
  names: readonly TokenColumnName[],
): Promise<Map<string, BulkArray>> {
  const length = Math.max(0, range.to - range.from);
  const arrays = new Map<string, BulkArray>(names.map((name) => [name, emptyColumn(name, length)]));
  for (const [entry, call] of calls) {
    const logprobs = await decodeColumn(source.blobs, call.logprobs, "f32");
    const parts: Partial<Record<TokenColumnName, ArrayLike<number>>> = { logprob: logprobs };
    if (arrays.has("id")) parts.id = await decodeColumn(source.blobs, call.output, "i32");
    if (arrays.has("version")) parts.version = versionsOf(call);
    if (arrays.has("sampledLogprob") && call.sampledLogprobs !== null)
      parts.sampledLogprob = await decodeColumn(source.blobs, call.sampledLogprobs, "f32");
    if (source.row !== null) Object.assign(parts, trainedParts(source.row, source.objective, call, logprobs));
    for (const [name, array] of arrays) {
      const part = parts[name as TokenColumnName];
      if (part === undefined) continue;
      const first = Math.max(entry.firstToken, range.from);
      const end = Math.min(entry.firstToken + part.length, range.to);
      for (let token = first; token < end; token++) array[token - range.from] = part[token - entry.firstToken]!;
    }
  }
  return arrays;
}

export function versionsOf(call: CallDocument): Int32Array {
  const versions = new Int32Array(call.output.length).fill(-1);
  let at = 0;
  for (const { version, length } of call.versions) {
    versions.fill(version, at, at + length);
    at += length;
  }
  return versions;
}

/** What the row says of one call's tokens; arrays as long as the call's output. */
function trainedParts(
  row: TrainedRow,
  objective: ObjectiveConfig | null,
  call: CallDocument,
  logprobs: Float32Array,
): Partial<Record<TokenColumnName, ArrayLike<number>>> {
  const length = call.output.length;
  const blank = () => new Float64Array(length).fill(Number.NaN);
  const parts: { [name: string]: Float64Array | Uint8Array } = { mask: new Uint8Array(length), gradient: blank() };
  for (const [name, column] of Object.entries(stored)) if (row.columns[column] !== undefined) parts[name] = blank();
  for (const { call: id, from, start, length: count } of row.document.spans) {
    if (id !== call.id) continue;
    for (let i = 0; i < count; i++) {
      for (const [name, column] of Object.entries(stored)) {
        const values = row.columns[column];
        if (values !== undefined) parts[name]![from + i] = values[start + i]!;
      }
      parts["mask"]![from + i] = row.columns.mask === undefined ? 1 : row.columns.mask[start + i]!;
      if (row.gradient !== null) parts["gradient"]![from + i] = row.gradient[start + i]!;
    }
  }
  const { old, new: now } = parts;
  const base = objective?.ratioBase === "rollout" ? logprobs : old;
  if (now !== undefined && base !== undefined)
    parts["ratio"] = Float64Array.from(now, (x, i) => Math.exp(x - base[i]!));
  if (old !== undefined) parts["mismatch"] = Float64Array.from(old, (x, i) => x - logprobs[i]!);
  if (parts["staleness"] !== undefined) parts["staleness"] = parts["staleness"].map((x) => (Number.isNaN(x) ? -1 : x));
  return parts;
}

/** Tokens before a range that a character reaching into it can begin in: UTF-8 has at most four bytes. */
const before = 4;

/** Text of tokens [from, to) of one call's output, and where each ends; halves of characters show as U+FFFD where they end a range. */
export function tokenTexts(text: ModelText | null, output: Int32Array, from: number, to: number): string[] {
  if (text === null) return Array.from(output.subarray(from, to), (id) => `⟨${id}⟩`);
  const start = Math.max(0, from - before);
  const stream = text.tokenizer.stream();
  const texts: string[] = [];
  for (let at = start; at < to; at++) {
    const piece = stream.push(output[at]!);
    if (at >= from) texts.push(piece);
  }
  const rest = stream.flush();
  if (rest !== "" && texts.length > 0) texts[texts.length - 1] += rest;
  return texts;
}
