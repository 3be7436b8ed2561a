// Token columns: every bit comes back, slices share their data, and large ones travel as handles into one blob.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  decodeColumn,
  encodeColumns,
  inlineColumn,
  sliceColumn,
  type TypedArray,
} from "../../agent-daemon/src/store/columns.ts";
import { decodeDocument, encodeDocument } from "../../agent-daemon/src/store/documentText.ts";
import { openFileBlobs } from "../../agent-daemon/src/store/fileBlobs.ts";
import type { BlobStore } from "../../agent-daemon/src/store/interface.ts";
import { columnSchema } from "../../protocol/column.ts";

let folder: string;
let blobs: BlobStore;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "store-columns-"));
  blobs = await openFileBlobs(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const bits = (values: TypedArray) => Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString("hex");

/** Any bit pattern, so that NaN payloads occur, and runs as token ids and positions have them. */
const typedArray: fc.Arbitrary<TypedArray> = fc.oneof(
  fc.uint8Array({ maxLength: 2000 }).map((bytes) => new Int32Array(bytes.slice(0, bytes.length & ~3).buffer)),
  fc.uint8Array({ maxLength: 2000 }).map((bytes) => new Float32Array(bytes.slice(0, bytes.length & ~3).buffer)),
  fc.uint8Array({ maxLength: 2000 }).map((bytes) => new Float64Array(bytes.slice(0, bytes.length & ~7).buffer)),
  fc.uint8Array({ maxLength: 2000 }),
  fc.array(fc.integer({ min: 0, max: 50_000 }), { maxLength: 500 }).map((ids) => Int32Array.from(ids)),
  fc
    .array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { maxLength: 300 })
    .map((ids) => Int32Array.from(ids).sort()),
  fc.array(fc.float({ noNaN: false }), { maxLength: 500 }).map((values) => Float32Array.from(values)),
);

describe("token columns", () => {
  it("give back every bit, through a document, inline or by a handle", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(typedArray, { maxLength: 4 }),
        fc.constantFrom(0, 64, 1 << 20),
        async (arrays, limit) => {
          const stored = decodeDocument(encodeDocument(await encodeColumns(blobs, arrays, limit)));
          const columns = columnSchema.array().parse(stored);
          for (const [i, values] of arrays.entries()) {
            const column = columns[i];
            if (column === undefined) throw new Error("a column is missing");
            const back = await decodeColumn(blobs, column);
            expect(back.constructor).toBe(values.constructor);
            expect(bits(back)).toBe(bits(values));
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it("give any slice of a slice, inline or by a handle, without touching the data", async () => {
    const values = Float64Array.from({ length: 100 }, (_, i) => i / 3);
    const [whole, other] = await encodeColumns(blobs, [values, Uint8Array.of(1, 2, 3)], 16);
    if (whole?.kind !== "handle" || other === undefined) throw new Error("expected a handle");
    const part = sliceColumn(sliceColumn(whole, 10, 50), 5, 7);
    expect(part).toEqual({ ...whole, start: whole.start + 15, length: 7 });
    expect(await decodeColumn(blobs, part, "f64")).toEqual(values.subarray(15, 22));
    const inline = inlineColumn(values, 1 << 20);
    if (inline === null) throw new Error("expected an inline column");
    const slice = sliceColumn(inline, 15, 7);
    expect(slice.data).toBe(inline.data);
    expect(await decodeColumn(blobs, slice)).toEqual(values.subarray(15, 22));
    expect(() => sliceColumn(slice, 3, 5)).toThrow(expect.objectContaining({ code: "STORE_COLUMN_INVALID" }));
    await expect(decodeColumn(blobs, part, "f32")).rejects.toMatchObject({ code: "STORE_COLUMN_INVALID" });
  });

  it("pack all large columns of a call into one blob", async () => {
    const arrays = [3000, 5001, 7].map((n) => Float32Array.from({ length: n }, (_, i) => Math.sin(i * 1.7)));
    const columns = await encodeColumns(blobs, [...arrays, new Uint8Array(9001).map((_, i) => (i * 7919) % 251)]);
    const hashes = columns.flatMap((column) => (column.kind === "handle" ? [column.hash] : []));
    expect(new Set(hashes).size).toBe(1);
    expect(columns[2]?.kind).toBe("inline");
    expect((await decodeColumn(blobs, columns[1] as (typeof columns)[number])).length).toBe(5001);
  });

  it("take less space than their numbers where the numbers allow it", () => {
    const positions = Int32Array.from({ length: 5000 }, (_, i) => i);
    const ids = Int32Array.from({ length: 2000 }, (_, i) => (i * 7919) % 49152);
    expect(inlineColumn(positions)).toMatchObject({ codec: "delta", length: 5000 });
    expect(inlineColumn(positions)?.data.length).toBeLessThan(200);
    expect(inlineColumn(ids)?.data.length).toBeLessThan(2000 * 4 * 0.6);
  });

  it("whose packed bytes were damaged are refused with a code", async () => {
    const column = inlineColumn(Int32Array.from({ length: 500 }, (_, i) => i * i));
    if (column === null) throw new Error("expected an inline column");
    for (const data of [column.data.slice(0, 10), Uint8Array.of(255, 255, 255), new Uint8Array(0)]) {
      await expect(decodeColumn(blobs, { ...column, data })).rejects.toMatchObject({ code: "STORE_COLUMN_INVALID" });
    }
  });
});
