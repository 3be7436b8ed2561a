// Documents as text: what goes in comes out, whatever numbers and keys it has.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeDocument, encodeDocument } from "../../agent-daemon/src/store/documentText.ts";

const big = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).filter((value) => !Number.isSafeInteger(Number(value)));
const key = fc.oneof(fc.string(), fc.constantFrom("$number", "$int", "$bytes", "$object", "__proto__", "toString"));
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: "binary" }),
    fc.double(),
    fc.integer(),
    fc.constantFrom(2 ** 53, 2 ** 60, -(2 ** 63), 1e20, 1e21, 1e300, -0, Number.NaN),
    big,
    fc.boolean(),
    fc.constant(null),
    fc.uint8Array({ maxLength: 20 }),
    fc.array(tie("value"), { maxLength: 5 }),
    fc.dictionary(key, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

describe("document text", () => {
  it("gives back any document exactly", () => {
    fc.assert(
      fc.property(value, (document) => {
        expect(decodeDocument(encodeDocument(document))).toStrictEqual(document);
      }),
      { numRuns: 1500 },
    );
  });

  it("keeps integer ids of nineteen digits as they are, in the text as well", () => {
    const text = encodeDocument({ ids: [7205759403792793601n, 7205759403792793602n] });
    expect(text).toBe('{"ids":[7205759403792793601,7205759403792793602]}');
    expect(decodeDocument(text)).toEqual({ ids: [7205759403792793601n, 7205759403792793602n] });
  });

  it("reads integers beyond 2^53 exactly and long fractions as the nearest number", () => {
    expect(
      decodeDocument("[9007199254740993, 0.30000000000000004, 12345678901234567890e-10, -9007199254740993]"),
    ).toEqual([9007199254740993n, 0.30000000000000004, 1234567890.1234567, -9007199254740993n]);
  });
});
