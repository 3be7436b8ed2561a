import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scoreExactMatch } from "../../../../agent-daemon/src/recipes/verifiers/exactMatch.ts";

describe("exact match", () => {
  it("ignores white space around and the amount of it inside, and the way accents are encoded", () => {
    expect(scoreExactMatch("  Old\n Gr\u00f6\u00dfe ", "Old Gro\u0308\u00dfe")).toBe(1);
    expect(scoreExactMatch("OldGröße", "Old Größe")).toBe(0);
  });

  it("counts case unless told otherwise", () => {
    expect(scoreExactMatch("Paris", "paris")).toBe(0);
    expect(scoreExactMatch("Paris", "paris", { ignoreCase: true })).toBe(1);
  });

  it("accepts any of several references, and none of none", () => {
    expect(scoreExactMatch("B", ["A", "B"])).toBe(1);
    expect(scoreExactMatch("", [])).toBe(0);
  });

  it("accepts every text as itself", () => {
    fc.assert(fc.property(fc.string({ unit: "grapheme" }), (text) => scoreExactMatch(text, text) === 1));
  });
});
