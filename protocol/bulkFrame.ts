// A bulk frame: a JSON header and typed arrays, as one piece of bytes. It travels on a connection of its own beside the RPC (a
// second socket, a binary WebSocket message, a transferred ArrayBuffer), so that megabytes of tokens never hold up an answer.
// Layout, little-endian: u32 header length, header (UTF-8 JSON), zeros up to a multiple of 8, then the arrays in order, each padded
// likewise.
// On a byte stream (the daemon's socket, `rollscope daemon stdio`): the client's hello with channel `bulk` and its answer are
// JSON-RPC messages as on the first connection; after the answer the daemon sends frames only, each after its length (u32, little-endian).
import { z } from "zod";

const dtypes = { i32: Int32Array, f32: Float32Array, f64: Float64Array, u8: Uint8Array } as const;
export type BulkDtype = keyof typeof dtypes;
export type BulkArray = Int32Array | Float32Array | Float64Array | Uint8Array;

export const bulkHeaderSchema = z.object({
  /** The id that an RPC answer named. */
  id: z.int().min(0),
  arrays: z.array(z.object({ name: z.string(), dtype: z.enum(["i32", "f32", "f64", "u8"]), length: z.int().min(0) })),
  /** Whatever is small and belongs to the arrays. */
  extra: z.record(z.string(), z.unknown()),
});

export interface BulkFrame {
  readonly id: number;
  readonly arrays: ReadonlyMap<string, BulkArray>;
  readonly extra: Readonly<Record<string, unknown>>;
}

const aligned = (bytes: number) => Math.ceil(bytes / 8) * 8;

function dtypeOf(array: BulkArray): BulkDtype {
  if (array instanceof Int32Array) return "i32";
  if (array instanceof Float32Array) return "f32";
  return array instanceof Float64Array ? "f64" : "u8";
}

export function encodeBulkFrame(frame: BulkFrame): Uint8Array<ArrayBuffer> {
  const entries = [...frame.arrays];
  const header = new TextEncoder().encode(
    JSON.stringify({
      id: frame.id,
      arrays: entries.map(([name, array]) => ({ name, dtype: dtypeOf(array), length: array.length })),
      extra: frame.extra,
    }),
  );
  const start = aligned(4 + header.length);
  const bytes = new Uint8Array(entries.reduce((sum, [, array]) => sum + aligned(array.byteLength), start));
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, 4);
  let at = start;
  for (const [, array] of entries) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at);
    at += aligned(array.byteLength);
  }
  return bytes;
}

/** @throws Error when the bytes are no whole frame; the sender is at fault and the connection is closed */
export function decodeBulkFrame(bytes: Uint8Array): BulkFrame {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteLength < 4 || 4 + view.getUint32(0, true) > bytes.byteLength)
    throw new Error("A bulk frame is cut off.");
  const size = view.getUint32(0, true);
  const header = bulkHeaderSchema.parse(JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size))));
  const arrays = new Map<string, BulkArray>();
  let at = aligned(4 + size);
  for (const { name, dtype, length } of header.arrays) {
    const Kind = dtypes[dtype];
    const byteLength = length * Kind.BYTES_PER_ELEMENT;
    if (at + byteLength > bytes.byteLength) throw new Error("A bulk frame is cut off.");
    // Of a Node Buffer, slice would give a view into memory that others use.
    arrays.set(name, new Kind(Uint8Array.prototype.slice.call(bytes, at, at + byteLength).buffer));
    at += aligned(byteLength);
  }
  return { id: header.id, arrays, extra: header.extra };
}
