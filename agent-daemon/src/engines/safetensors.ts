// The headers of safetensors files: what lies where in a checkpoint, one file or sharded, and the header of a file to be
// written. It must never read or write tensor data.
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";

export interface StoredTensor {
  readonly file: string;
  /** F32, F16, BF16 and so on, as the file spells it. */
  readonly type: string;
  readonly shape: readonly number[];
  /** Position in the file and length, in bytes. */
  readonly offset: number;
  readonly bytes: number;
}

const header = z.record(
  z.string(),
  z.union([
    z.strictObject({
      dtype: z.string(),
      shape: z.array(z.int().min(0)),
      data_offsets: z.tuple([z.int().min(0), z.int().min(0)]),
    }),
    z.record(z.string(), z.string()),
  ]),
);
const shardIndex = z.looseObject({ weight_map: z.record(z.string(), z.string()) });

/** Larger headers are refused: the format's own limit. */
const largestHeader = 100_000_000;
const elementBytes: Readonly<Record<string, number>> = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U8: 1,
  BOOL: 1,
};

/**
 * All tensors of a checkpoint folder by name: model.safetensors, or the shards that model.safetensors.index.json names.
 * Errors: ENGINE_MODEL_NOT_FOUND, ENGINE_FILE_TRUNCATED, ENGINE_FILE_INVALID, ENGINE_TENSOR_MISSING.
 */
export function readCheckpoint(dir: string): ReadonlyMap<string, StoredTensor> {
  const indexFile = join(dir, "model.safetensors.index.json");
  const single = join(dir, "model.safetensors");
  if (!existsSync(indexFile)) {
    if (existsSync(single)) return readSafetensors(single);
    throw new RollscopeError("ENGINE_MODEL_NOT_FOUND", `${dir} holds no model.safetensors.`, {
      next: "Give the folder of a Hugging Face checkpoint in safetensors format, or a GGUF file.",
      at: { file: single },
    });
  }
  const parsed = shardIndex.safeParse(parseJson(readFileSync(indexFile, "utf8"), indexFile));
  if (!parsed.success) throw invalid(indexFile, "has no weight_map");
  const tensors = new Map<string, StoredTensor>();
  const shards = new Map<string, ReadonlyMap<string, StoredTensor>>();
  for (const [name, shard] of Object.entries(parsed.data.weight_map)) {
    if (/[\\/]/.test(shard)) throw invalid(indexFile, `names the shard ${shard} outside its folder`);
    const contents = shards.get(shard) ?? readSafetensors(join(dir, shard));
    shards.set(shard, contents);
    const tensor = contents.get(name);
    if (tensor === undefined) {
      throw new RollscopeError("ENGINE_TENSOR_MISSING", `The shard ${shard} lacks the tensor ${name} of the index.`, {
        next: "Fetch the model again; its files do not belong together.",
        at: { file: join(dir, shard), tensor: name },
      });
    }
    tensors.set(name, tensor);
  }
  return tensors;
}

/** The tensors of one file. Errors: ENGINE_MODEL_NOT_FOUND, ENGINE_FILE_TRUNCATED, ENGINE_FILE_INVALID. */
export function readSafetensors(file: string): ReadonlyMap<string, StoredTensor> {
  const { text, start, size } = readHeaderText(file);
  const parsed = header.safeParse(parseJson(text, file));
  if (!parsed.success) throw invalid(file, `has an unreadable header: ${parsed.error.issues[0]?.path.join(".")}`);
  const tensors = new Map<string, StoredTensor>();
  for (const [name, entry] of Object.entries(parsed.data)) {
    if (name === "__metadata__") continue;
    if (!isTensor(entry)) throw invalid(file, `describes ${name} as something other than a tensor`);
    const [begin, end] = entry.data_offsets;
    const unit = elementBytes[entry.dtype];
    const elements = entry.shape.reduce((product, axis) => product * axis, 1);
    if (end < begin || (unit !== undefined && end - begin !== elements * unit)) {
      throw invalid(file, `gives the tensor ${name} ${end - begin} bytes, which do not fit its shape`);
    }
    if (start + end > size) throw truncated(file, start + end, size);
    tensors.set(name, { file, type: entry.dtype, shape: entry.shape, offset: start + begin, bytes: end - begin });
  }
  refuseOverlaps(tensors, file);
  return tensors;
}

/** The bytes before the data of a safetensors file whose f32 tensors lie in the given order. */
export function safetensorsHeader(
  tensors: readonly { readonly name: string; readonly shape: readonly number[] }[],
  metadata: Readonly<Record<string, string>> = { format: "pt" },
): Uint8Array {
  const entries: Record<string, unknown> = { __metadata__: metadata };
  let at = 0;
  for (const { name, shape } of tensors) {
    const end = at + 4 * shape.reduce((product, axis) => product * axis, 1);
    entries[name] = { dtype: "F32", shape, data_offsets: [at, end] };
    at = end;
  }
  const json = Buffer.from(JSON.stringify(entries));
  const padded = Math.ceil(json.length / 8) * 8;
  const bytes = Buffer.alloc(8 + padded, " ");
  bytes.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(bytes, 8);
  return bytes;
}

function isTensor(
  entry: z.infer<typeof header>[string],
): entry is { dtype: string; shape: number[]; data_offsets: [number, number] } {
  return Array.isArray(entry["shape"]);
}

function readHeaderText(file: string): { text: string; start: number; size: number } {
  let descriptor: number;
  try {
    descriptor = openSync(file, "r");
  } catch (cause) {
    throw new RollscopeError("ENGINE_MODEL_NOT_FOUND", `The model file ${file} cannot be opened.`, {
      next: "Check the path, or fetch the model again.",
      at: { file },
      cause,
    });
  }
  try {
    const size = fstatSync(descriptor).size;
    if (size < 8) throw truncated(file, 8, size);
    const length = readExactly(descriptor, 8, 0).readBigUInt64LE();
    if (length > BigInt(largestHeader)) throw invalid(file, `claims a header of ${length} bytes`);
    if (8 + Number(length) > size) throw truncated(file, 8 + Number(length), size);
    return { text: readExactly(descriptor, Number(length), 8).toString("utf8"), start: 8 + Number(length), size };
  } finally {
    closeSync(descriptor);
  }
}

function readExactly(descriptor: number, length: number, position: number): Buffer {
  const bytes = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const got = readSync(descriptor, bytes, filled, length - filled, position + filled);
    if (got === 0) break;
    filled += got;
  }
  return bytes;
}

function refuseOverlaps(tensors: ReadonlyMap<string, StoredTensor>, file: string): void {
  const ordered = [...tensors].sort(([, a], [, b]) => a.offset - b.offset);
  for (const [index, [name, tensor]] of ordered.entries()) {
    const next = ordered[index + 1];
    if (next !== undefined && tensor.offset + tensor.bytes > next[1].offset) {
      throw invalid(file, `lets the tensors ${name} and ${next[0]} overlap`);
    }
  }
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid(file, "is not valid JSON where its header should be", cause);
  }
}

function truncated(file: string, needed: number, size: number): RollscopeError {
  return new RollscopeError(
    "ENGINE_FILE_TRUNCATED",
    `The model file ${file} has ${size} bytes; its header promises ${needed}.`,
    {
      next: "Fetch the file again; the download did not finish.",
      at: { file, size, needed },
    },
  );
}

function invalid(file: string, what: string, cause?: unknown): RollscopeError {
  return new RollscopeError("ENGINE_FILE_INVALID", `The model file ${file} ${what}.`, {
    next: "Fetch the file again, or check where it came from.",
    at: { file },
    cause,
  });
}
