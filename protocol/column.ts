// A token column: one number per token of a call or of a training row. Inline when small, else a handle into a blob.
// A slice of a column is the same column with another start and length; nothing is copied.
import { z } from "zod";

export const dtypeSchema = z.enum(["i32", "f32", "f64", "u8"]);
export type Dtype = z.infer<typeof dtypeSchema>;

/** sha256 of a blob's bytes, in lower-case hexadecimal. */
export const blobHashSchema = z.string().regex(/^[0-9a-f]{64}$/, "not a sha256 in hexadecimal");
export type BlobHash = z.infer<typeof blobHashSchema>;

/**
 * How the bytes of an inline column are packed. All but `raw` are deflated without a header: `planes` after gathering the
 * k-th bytes of all elements, `delta` after replacing i32 elements by their differences (mod 2^32) and then as `planes`.
 */
export const columnCodecSchema = z.enum(["raw", "planes", "delta"]);
export type ColumnCodec = z.infer<typeof columnCodecSchema>;

const count = z.int().min(0);

const inlineColumnSchema = z.strictObject({
  kind: z.literal("inline"),
  dtype: dtypeSchema,
  codec: columnCodecSchema,
  data: z.instanceof(Uint8Array),
  /** First element and number of elements, in the unpacked array. */
  start: count,
  length: count,
});

/** Elements [start, start + length) of the blob seen as a little-endian array of `dtype`. */
const handleColumnSchema = z.strictObject({
  kind: z.literal("handle"),
  hash: blobHashSchema,
  dtype: dtypeSchema,
  start: count,
  length: count,
});

export const columnSchema = z.discriminatedUnion("kind", [inlineColumnSchema, handleColumnSchema]);
export type Column = z.infer<typeof columnSchema>;
export type InlineColumn = z.infer<typeof inlineColumnSchema>;
export type ColumnHandle = z.infer<typeof handleColumnSchema>;
