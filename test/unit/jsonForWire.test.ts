// JSON values on a wire that speaks plain JSON: integers of any size come out with every digit.
import fc from "fast-check";
import { expect, it } from "vitest";
import { parseExact } from "../../agent-daemon/src/store/interchange/jsonText.ts";
import type { JsonValue } from "../../protocol/agent.ts";
import { jsonText, withoutBigints } from "../../protocol/json.ts";

const key = fc.oneof(fc.constantFrom("$int", "$object", "id"), fc.string());
const integer = fc
  .bigInt({ min: -(10n ** 30n), max: 10n ** 30n })
  .filter((value) => !Number.isSafeInteger(Number(value)));
const { value: anyValue } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.oneof(fc.string(), fc.boolean(), fc.constant(null), fc.integer(), integer),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
  ),
}));

const digits = (value: unknown): string =>
  JSON.stringify(value, (_key, inner) => (typeof inner === "bigint" ? `#${inner}` : inner));

it("P20: a value that went through plain JSON is shown as the same value", () => {
  fc.assert(
    fc.property(anyValue, (value) => {
      const arrived: unknown = JSON.parse(JSON.stringify(withoutBigints(value)));
      expect(digits(parseExact(jsonText(arrived)))).toBe(digits(value));
    }),
  );
});

it("keeps two ids apart that JSON.parse makes equal, and leaves what needs no change as it is", () => {
  const ids = { a: 7205759403792793601n, b: [7205759403792793602n] };
  expect(jsonText(JSON.parse(JSON.stringify(withoutBigints(ids))))).toBe(
    '{\n  "a": 7205759403792793601,\n  "b": [\n    7205759403792793602\n  ]\n}',
  );
  const plain = { a: [1, { b: "x" }] };
  expect(withoutBigints(plain)).toBe(plain);
  expect(jsonText({ $int: "no digits", a: [] })).toBe('{\n  "$int": "no digits",\n  "a": []\n}');
});
