import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { extractBoxed, normalizeMath, scoreBoxed } from "../../../../agent-daemon/src/recipes/verifiers/boxed.ts";

describe("boxed mathematics", () => {
  it("takes the last box, whole, with its nested braces", () => {
    const text = "\\boxed{12}. Wait: \\boxed{\\frac{7}{4}}";
    expect(extractBoxed(text)).toBe("\\frac{7}{4}");
    expect(scoreBoxed(text, "\\frac{7}{4}")).toBe(1);
    expect(scoreBoxed(text, 12)).toBe(0);
    expect(extractBoxed("\\boxed {a} then \\fbox{\\{b\\}}")).toBe("\\{b\\}");
  });

  it("does not count a unit", () => {
    for (const box of [
      "\\text{9 cm}",
      "9\\,\\mathrm{cm}^2",
      "9\\text{ cm}",
      "9 cm",
      "\\$9",
      "9^\\circ",
      "9\\%",
      "x = 9",
      "9.00",
    ])
      expect([box, scoreBoxed(`so \\boxed{${box}}`, 9)]).toEqual([box, 1]);
  });

  it("does not take a variable for a unit", () => {
    for (const box of ["9x", "9ab", "9\\pi", "9 + x", "9^2", "9i"])
      expect([box, scoreBoxed(`\\boxed{${box}}`, 9)]).toEqual([box, 0]);
    expect(scoreBoxed("\\boxed{9x}", "9y")).toBe(0);
    expect(scoreBoxed("\\boxed{9 x}", "9x")).toBe(1);
  });

  it("has no answer in a box that is not closed", () => {
    expect(extractBoxed("\\boxed{5")).toBeNull();
    expect(extractBoxed("\\boxed{12} and then \\boxed{5")).toBeNull();
    expect(scoreBoxed("\\boxed{5", 5)).toBe(0);
    expect(scoreBoxed("5", 5)).toBe(0);
    expect(scoreBoxed("\\boxed{}", 5)).toBe(0);
  });

  it("compares numbers and fractions by value", () => {
    expect(scoreBoxed("\\boxed{\\dfrac{7}{4}}", "7/4")).toBe(1);
    expect(scoreBoxed("\\boxed{1.75}", "\\frac74")).toBe(1);
    expect(scoreBoxed("\\boxed{-\\frac{1}{2}}", "-0.5")).toBe(1);
    expect(scoreBoxed("\\boxed{\\frac{1}{2}}", "-0.5")).toBe(0);
    expect(scoreBoxed("\\boxed{1,250,000}", 1250000)).toBe(1);
    expect(scoreBoxed("\\boxed{(1, 2)}", "\\left(1,2\\right)")).toBe(1);
    expect(scoreBoxed("\\boxed{\\frac{1}{0}}", "\\frac{2}{0}")).toBe(0);
  });

  it("takes linear time, however many braces there are", () => {
    const n = 100_000;
    const texts = [
      `\\boxed{${"{".repeat(n)}`,
      `\\boxed{${"{".repeat(n)}7${"}".repeat(n)}}`,
      "\\boxed{".repeat(n),
      "\\boxed   ".repeat(n),
      `\\boxed{${"\\text{".repeat(n)}${"}".repeat(n)}}`,
      `\\boxed{${"9".repeat(n)}}`,
      `\\boxed{9${" cm".repeat(n)}}`,
      `\\boxed${" ".repeat(n)}x`,
    ];
    for (const text of texts) {
      const start = performance.now();
      scoreBoxed(text, 7);
      expect(performance.now() - start).toBeLessThan(2000);
    }
  });

  it("gives back the content of any balanced box", () => {
    const { content } = fc.letrec<{ content: string }>((tie) => ({
      content: fc.oneof(
        { maxDepth: 6 },
        fc.constantFrom("x", "12", "\\frac", "\\{", "\\}", "a b"),
        fc.tuple(tie("content"), tie("content")).map(([a, b]) => `${a}{${b}}`),
      ),
    }));
    fc.assert(
      fc.property(content, content, (before, inside) => {
        expect(extractBoxed(`\\boxed{${before}} no, \\boxed{${inside}} }`)).toBe(inside.trim());
        expect(scoreBoxed(`\\boxed{${inside}}`, `\\boxed{${inside}}`)).toBe(1);
      }),
    );
  });

  it("gives equal fractions one spelling", () => {
    const factor = fc.integer({ min: 1, max: 1000 });
    fc.assert(
      fc.property(fc.integer({ min: -5000, max: 5000 }), factor, factor, (top, bottom, k) => {
        expect(normalizeMath(`\\frac{${top}}{${bottom}}`)).toBe(normalizeMath(`\\dfrac{${top * k}}{${bottom * k}}`));
        expect(normalizeMath(`${top}/${bottom}`)).toBe(normalizeMath(`\\frac{${top}}{${bottom}}`));
      }),
    );
  });

  it("never throws on any text", () => {
    const pieces = fc.array(
      fc.constantFrom("\\boxed", "{", "}", "\\", "\\text{", "9", "cm", "=", "\\frac", "$", " ", "/", "^"),
    );
    fc.assert(fc.property(pieces, (list) => void scoreBoxed(list.join(""), 9)));
  });
});
