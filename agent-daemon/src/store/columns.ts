// Typed arrays to token columns and back. Small ones travel inside their document; all large ones of one call are packed
// into one blob, uncompressed, so that any slice of them can be read by its byte range. Every bit survives, NaN payloads too.
import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { BlobHash, Column, ColumnCodec, ColumnHandle, Dtype, InlineColumn } from "../../../protocol/column.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { BlobStore } from "./interface.ts";

export type TypedArray = Int32Array | Float32Array | Float64Array | Uint8Array;

export interface TypedArrays {
  i32: Int32Array;
  f32: Float32Array;
  f64: Float64Array;
  u8: Uint8Array;
}

/** Packed bytes up to which a column stays inside its document. */
export const inlineColumnBytes = 8192;
/** Below this, packing costs more time than it saves space. */
const smallestPacked = 256;
/** Columns start at multiples of it in a blob, so that `start` is a whole number of elements of any type. */
const alignment = 8;

const elementBytes: { readonly [D in Dtype]: number } = { i32: 4, f32: 4, f64: 8, u8: 1 };

export function dtypeOf(values: TypedArray): Dtype {
  if (values instanceof Int32Array) return "i32";
  if (values instanceof Float32Array) return "f32";
  return values instanceof Float64Array ? "f64" : "u8";
}

/** Columns for `arrays`, in order. Writes at most one blob. */
export async function encodeColumns(
  blobs: BlobStore,
  arrays: readonly TypedArray[],
  limit = inlineColumnBytes,
): Promise<Column[]> {
  const columns = arrays.map((values) => inlineColumn(values, limit));
  let size = 0;
  const starts = arrays.map((values, i) => {
    if (columns[i] !== null) return 0;
    const start = size;
    size = Math.ceil((start + values.byteLength) / alignment) * alignment;
    return start;
  });
  if (size === 0) return columns as Column[];
  const bytes = new Uint8Array(size);
  arrays.forEach((values, i) => {
    if (columns[i] === null) bytes.set(bytesOf(values), starts[i] as number);
  });
  const hash = await blobs.put(bytes);
  return arrays.map((values, i) => columns[i] ?? handle(hash, values, starts[i] as number));
}

/** The column if it packs into `limit` bytes, else null. */
export function inlineColumn(values: TypedArray, limit = inlineColumnBytes): InlineColumn | null {
  const bytes = bytesOf(values);
  const shape = { kind: "inline", dtype: dtypeOf(values), start: 0, length: values.length } as const;
  const raw = (): InlineColumn | null =>
    bytes.length <= limit ? { ...shape, codec: "raw", data: bytes.slice() } : null;
  // Token columns shrink to a third at best; ones far beyond the limit need not be tried.
  if (bytes.length < smallestPacked || bytes.length > limit * 16) return raw();
  const codec: ColumnCodec = values instanceof Int32Array && neverFalls(values) ? "delta" : "planes";
  const planes = toPlanes(
    codec === "delta" ? bytesOf(differences(values as Int32Array)) : bytes,
    elementBytes[shape.dtype],
  );
  const data = new Uint8Array(deflateRawSync(planes, { level: 1 }));
  if (data.length >= bytes.length) return raw();
  return data.length <= limit ? { ...shape, codec, data } : null;
}

/** The elements [start, start + length) of a column, as a column; nothing is copied. */
export function sliceColumn<C extends Column>(column: C, start: number, length: number): C {
  if (
    !(
      Number.isInteger(start) &&
      Number.isInteger(length) &&
      start >= 0 &&
      length >= 0 &&
      start + length <= column.length
    )
  ) {
    throw columnError(`elements [${start}, ${start + length}) lie outside a column of ${column.length} elements`);
  }
  return { ...column, start: column.start + start, length };
}

/** The values of a column, as the typed array of its dtype. */
export async function decodeColumn<D extends Dtype = Dtype>(
  blobs: BlobStore,
  column: Column,
  dtype?: D,
): Promise<TypedArrays[D]> {
  if (dtype !== undefined && column.dtype !== dtype)
    throw columnError(`a column of ${column.dtype} where ${dtype} is expected`);
  if (column.kind === "inline") return decodeInline(column) as TypedArrays[D];
  const size = elementBytes[column.dtype];
  const bytes = await blobs.getRange(column.hash, column.start * size, column.length * size);
  return viewAs(bytes, column.dtype) as TypedArrays[D];
}

export function decodeInline(column: InlineColumn): TypedArray {
  const size = elementBytes[column.dtype];
  let bytes: Uint8Array = column.data;
  if (column.codec !== "raw") {
    try {
      bytes = fromPlanes(inflateRawSync(column.data), size);
    } catch (cause) {
      throw columnError("packed bytes of a column cannot be unpacked", cause);
    }
  }
  if ((column.start + column.length) * size > bytes.length || bytes.length % size !== 0) {
    throw columnError(
      `elements [${column.start}, ${column.start + column.length}) of ${bytes.length} bytes of ${column.dtype}`,
    );
  }
  if (column.codec === "delta") {
    const values = viewAs(bytes, "i32") as Int32Array;
    for (let i = 1; i < values.length; i++) values[i] = ((values[i] as number) + (values[i - 1] as number)) | 0;
    return values.subarray(column.start, column.start + column.length);
  }
  return viewAs(bytes.subarray(column.start * size, (column.start + column.length) * size), column.dtype);
}

function handle(hash: BlobHash, values: TypedArray, startByte: number): ColumnHandle {
  const dtype = dtypeOf(values);
  return { kind: "handle", hash, dtype, start: startByte / elementBytes[dtype], length: values.length };
}

function bytesOf(values: TypedArray): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

/** Bytes as elements; copied only where they are not aligned. Bytes are little-endian, as every platform of Node here. */
function viewAs(bytes: Uint8Array, dtype: Dtype): TypedArray {
  const size = elementBytes[dtype];
  const aligned = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
  const length = aligned.length / size;
  switch (dtype) {
    case "i32":
      return new Int32Array(aligned.buffer, aligned.byteOffset, length);
    case "f32":
      return new Float32Array(aligned.buffer, aligned.byteOffset, length);
    case "f64":
      return new Float64Array(aligned.buffer, aligned.byteOffset, length);
    case "u8":
      return new Uint8Array(aligned.buffer, aligned.byteOffset, length);
  }
}

/** [n][size] → [size][n] */
function toPlanes(bytes: Uint8Array, size: number): Uint8Array {
  const n = bytes.length / size;
  const planes = new Uint8Array(bytes.length);
  for (let k = 0; k < size; k++) {
    for (let i = 0; i < n; i++) planes[k * n + i] = bytes[i * size + k] as number;
  }
  return planes;
}

/** [size][n] → [n][size] */
function fromPlanes(planes: Uint8Array, size: number): Uint8Array {
  const n = Math.floor(planes.length / size);
  const bytes = new Uint8Array(planes.length);
  for (let k = 0; k < size; k++) {
    for (let i = 0; i < n; i++) bytes[i * size + k] = planes[k * n + i] as number;
  }
  return bytes;
}

function neverFalls(values: Int32Array): boolean {
  for (let i = 1; i < values.length; i++) if ((values[i] as number) < (values[i - 1] as number)) return false;
  return true;
}

function differences(values: Int32Array): Int32Array {
  const result = values.slice();
  for (let i = values.length - 1; i > 0; i--) result[i] = ((values[i] as number) - (values[i - 1] as number)) | 0;
  return result;
}

function columnError(sentence: string, cause?: unknown): RollscopeError {
  return new RollscopeError("STORE_COLUMN_INVALID", `A token column cannot be read: ${sentence}.`, {
    next: "The document that holds it was damaged or written by another version; restore it from a backup or leave its record out.",
    cause,
  });
}
