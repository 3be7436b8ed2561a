import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { extractNumber, numbersIn, scoreNumber } from "../../../../agent-daemon/src/recipes/verifiers/number.ts";

const values = (text: string) => [...numbersIn(text)].map((found) => found.value);

describe("numbers in text", () => {
  it("reads money with currency sign, thousands commas, cents and a full stop after it", () => {
    expect(scoreNumber("…so it keeps $1,250,000.", 1250000)).toBe(1);
    expect(scoreNumber("It costs $29.00", "29")).toBe(1);
    expect(scoreNumber("It costs \\$29.00.", "$29")).toBe(1);
  });

  it("keeps the minus sign, and tells it from a subtraction", () => {
    expect(scoreNumber("it is -48.5", "-48.5")).toBe(1);
    expect(scoreNumber("it is 48.5", "-48.5")).toBe(0);
    expect(scoreNumber("it is −48.5", -48.5)).toBe(1);
    expect(values("-$5 $-5 (-5) 9-5 x-5 9 - 5")).toEqual(["-5", "-5", "-5", "9", "5", "5", "9", "5"]);
  });

  it("does not take a lone comma for a number and does not fuse list items", () => {
    expect(scoreNumber("There are 46 jars, more or less, in all.", 46)).toBe(1);
    expect(extractNumber(", , .")).toBeNull();
    expect(values("[3.5,12.25]")).toEqual(["3.5", "12.25"]);
    expect(values("1,2,3 and 12,3456 and 0,123")).toEqual(["1", "2", "3", "12", "3456", "0", "123"]);
  });

  it("answers with the number after the last equals sign", () => {
    expect(extractNumber("17 + 25 = 42, which is more than 25 + 3")).toBe("42");
    expect(extractNumber("a = 3 and b = 4 make 7")).toBe("4");
    expect(extractNumber("17 + 25 =")).toBe("25");
    expect(extractNumber("=")).toBeNull();
  });

  it("compares values, not spellings", () => {
    for (const text of ["29", "29.0", "29.00", "029", "2.9e1", "290e-1", "+29"]) expect(extractNumber(text)).toBe("29");
    expect(extractNumber(".5")).toBe("0.5");
    expect(extractNumber("-0.00")).toBe("0");
    expect(extractNumber("9007199254740993")).not.toBe(extractNumber("9007199254740992"));
    expect(extractNumber("1e999999999999999")).toBe("1e999999999999999");
  });

  it("finds every number written among words, whatever its spelling", () => {
    const spelling = fc.record({
      value: fc.bigInt({ min: 0n, max: 10n ** 15n }),
      negative: fc.boolean(),
      grouped: fc.boolean(),
      currency: fc.constantFrom("", "$", "€"),
      cents: fc.constantFrom("", ".0", ".00"),
      after: fc.constantFrom("", ".", ",", "!", " dollars", ")", ";"),
    });
    fc.assert(
      fc.property(fc.array(spelling, { minLength: 1, maxLength: 8 }), (list) => {
        const written = list.map(({ value, negative, grouped, currency, cents, after }) => {
          const digits = grouped ? value.toString().replace(/\B(?=(\d{3})+$)/g, ",") : value.toString();
          return `${negative ? "-" : ""}${currency}${digits}${cents}${after}`;
        });
        const expected = list.map(({ value, negative }) => (negative && value > 0n ? `-${value}` : `${value}`));
        expect(values(`There were ${written.join(" then ")} in all`)).toEqual(expected);
      }),
    );
  });

  it("agrees with doubles about the value", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (x) => {
        expect(Number(extractNumber(`so ${x}.`))).toBe(x === 0 ? 0 : x);
      }),
    );
  });

  it("never throws, and takes time linear in the text", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void values(text)));
    for (const piece of ["1,", "1.", "-", "$", "e", "1e", ",", "1,234,", ".1"]) {
      const text = piece.repeat(200_000);
      const start = performance.now();
      extractNumber(text);
      expect(performance.now() - start).toBeLessThan(2000);
    }
  });

  it("refuses a reference that is not one number", () => {
    for (const reference of ["", "none", "3 or 4"])
      expect(() => scoreNumber("3", reference)).toThrow(
        expect.objectContaining({ code: "VERIFIER_REFERENCE_INVALID" }),
      );
  });
});
