// Training rows of a run as one safetensors file that any framework reads: whole sequences one after the other, each token with
// what the sampler and the step that trained it said of it.
import { closeSync, createReadStream, createWriteStream, openSync, rmSync, writeSync } from "node:fs";
import { mkdtemp, rename, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { RecordDataDocument } from "../../../protocol/recordData.ts";
import type { BlobStore, RecordStore } from "../store/interface.ts";
import { type LoadedCall, loadTrajectory } from "../store/loadTrajectory.ts";
import { allDocuments, everyDocument } from "../store/pages.ts";

/**
 * Columns of all tokens [T], besides `input_ids` (I32) and `trained` (U8, 1 = the row trained this token). NaN where a token has no
 * such number: at prompt tokens, and in rows whose objective does not use it. Numbers of token i are about predicting it.
 */
const floatColumns = [
  "logprob",
  "old",
  "new",
  "reference",
  "entropy",
  "oldValue",
  "newValue",
  "tokenReward",
  "return",
  "advantage",
  "weight",
] as const;
/** Columns of rows [R]; `row_start` and `row_length` say which tokens are a row's. */
const rowColumns = ["row_start", "row_length", "step", "window", "pass"] as const;

class Column {
  private readonly file: number;
  bytes = 0;
  constructor(
    readonly name: string,
    readonly dtype: "I32" | "F32" | "U8" | "I64",
    readonly path: string,
  ) {
    this.file = openSync(path, "w");
  }
  add(values: Int32Array | Float32Array | Uint8Array | BigInt64Array): void {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    for (let at = 0; at < bytes.length; ) at += writeSync(this.file, bytes, at);
    this.bytes += bytes.length;
  }
  close(): void {
    closeSync(this.file);
  }
}

const elementBytes = { I32: 4, F32: 4, U8: 1, I64: 8 } as const;

/** @throws EXPORT_NOTHING when the run trained no row, EXPORT_FAILED, and what the stores throw */
export async function writeTrainingRows(
  store: RecordStore,
  blobs: BlobStore,
  run: string,
  out: string,
): Promise<{ rows: number; tokens: number }> {
  const work = await mkdtemp(`${resolve(out)}.part-`);
  const open = (name: string, dtype: Column["dtype"]) => new Column(name, dtype, join(work, name));
  const ids = open("input_ids", "I32");
  const trained = open("trained", "U8");
  const floats = floatColumns.map((name) => open(name, "F32"));
  const perRow = rowColumns.map((name) => open(name, "I64"));
  const columns = [ids, trained, ...floats, ...perRow];
  const rows: [row: string, record: string][] = [];
  try {
    let tokens = 0;
    let unplaced = 0;
    for await (const record of everyDocument(store.records, { run })) {
      const documents = await allDocuments(store.recordData, { run, record: record.id });
      if (documents.length === 0) continue;
      const { calls } = await loadTrajectory(store, blobs, record.id);
      for (const document of documents) {
        const row = rowOf(document, calls);
        if (row === null) continue;
        unplaced += row.unplaced;
        ids.add(row.ids);
        trained.add(row.trained);
        for (const [index, column] of floats.entries()) column.add(row.floats[index] as Float32Array);
        const facts = [tokens, row.ids.length, row.step, document.window, document.pass];
        for (const [index, column] of perRow.entries()) column.add(BigInt64Array.of(BigInt(facts[index] as number)));
        rows.push([document.id, record.id]);
        tokens += row.ids.length;
      }
    }
    for (const column of columns) column.close();
    if (rows.length === 0) {
      throw new RollscopeError("EXPORT_NOTHING", `The run ${run} trained no rows yet.`, {
        next: "Export its conversations with --format chat, or wait for its first optimizer step.",
        at: { run },
      });
    }
    const metadata = {
      format: "rollscope-training-rows",
      version: "1",
      run,
      rows: JSON.stringify(rows),
      unplaced: String(unplaced),
    };
    await assemble(columns, metadata, join(work, "whole"));
    await rename(join(work, "whole"), out);
    return { rows: rows.length, tokens };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

interface TrainingRow {
  readonly ids: Int32Array;
  readonly trained: Uint8Array;
  readonly floats: readonly Float32Array[];
  readonly step: number;
  /** Occurrences whose token is not on the row's sequence, and so is left out. */
  readonly unplaced: number;
}

/** The sequence that ends in the row's leaf, and what the step made of its tokens. */
function rowOf(document: RecordDataDocument, calls: readonly LoadedCall[]): TrainingRow | null {
  const leaf = calls.find((call) => call.document.id === document.leaf);
  if (leaf === undefined) return null;
  const prompt = leaf.promptTokens();
  const ids = new Int32Array(prompt.length + leaf.output.length);
  ids.set(prompt);
  ids.set(leaf.output, prompt.length);
  const trained = new Uint8Array(ids.length);
  const floats = floatColumns.map(() => new Float32Array(ids.length).fill(Number.NaN));
  let step = 0;
  let unplaced = 0;
  for (const call of calls) {
    const first = call.document.keptTokens + call.document.promptDelta.length;
    for (const span of call.training) {
      if (span.row !== document.id) continue;
      step = span.step.step;
      for (let i = 0; i < span.length; i++) {
        const output = span.from + i;
        const at = first + output;
        if (ids[at] !== call.output[output]) {
          unplaced++;
          continue;
        }
        trained[at] = span.columns.mask === undefined ? 1 : (span.columns.mask[i] as number);
        floatColumns.forEach((name, index) => {
          const value = name === "logprob" ? call.logprobs[output] : span.columns[name]?.[i];
          if (value !== undefined) (floats[index] as Float32Array)[at] = value;
        });
      }
    }
  }
  return { ids, trained, floats, step, unplaced };
}

/** Eight bytes of header length, the header, the columns one after the other; 8-byte columns first keep all aligned. */
async function assemble(
  columns: readonly Column[],
  metadata: Readonly<Record<string, string>>,
  out: string,
): Promise<void> {
  const ordered = [...columns].sort((a, b) => elementBytes[b.dtype] - elementBytes[a.dtype]);
  const header: Record<string, unknown> = { __metadata__: metadata };
  let at = 0;
  for (const { name, dtype, bytes } of ordered) {
    header[name] = { dtype, shape: [bytes / elementBytes[dtype]], data_offsets: [at, at + bytes] };
    at += bytes;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Math.ceil(json.length / 8) * 8;
  const head = Buffer.alloc(8 + padded, " ");
  head.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(head, 8);
  await pipeline(async function* () {
    yield head;
    for (const { path } of ordered) {
      yield* createReadStream(path);
      rmSync(path);
    }
  }, createWriteStream(out));
  const { size } = await stat(out);
  if (size !== head.length + at) throw new Error(`${size} of ${head.length + at} bytes were written`);
}
