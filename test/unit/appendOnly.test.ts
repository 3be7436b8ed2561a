// Where two renderings part, in whole characters: what is kept of a text must be a text.
import fc from "fast-check";
import { expect, it } from "vitest";
import { commonLength } from "../../agent-daemon/src/capture/appendOnly.ts";

it("ends the common start before a character of which two texts share only the first half", () => {
  expect(commonLength("ab🙂", "ab🙃")).toBe(2);
  expect(commonLength("🙂🙂", "🙂🙃")).toBe(2);
  expect(commonLength("a🙂", "a")).toBe(1);
  expect(commonLength("a🙂b", "a🙂c")).toBe(3);
});

it("is the common start in code points, for any two texts", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "🙂", "🙃", "é") });
  fc.assert(
    fc.property(text, text, (left, right) => {
      const [a, b] = [[...left], [...right]];
      const parting = a.findIndex((character, i) => character !== b[i]);
      const common = parting === -1 ? a : a.slice(0, parting);
      expect(left.slice(0, commonLength(left, right))).toBe(common.join(""));
    }),
  );
});
