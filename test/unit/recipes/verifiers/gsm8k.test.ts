import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { extractGsm8kAnswer, scoreGsm8k } from "../../../../agent-daemon/src/recipes/verifiers/gsm8k.ts";
import { dataPath } from "../../../support/paths.ts";

describe("GSM8K answers", () => {
  it("grades money, full stops and minus signs right", () => {
    expect(scoreGsm8k("…so it keeps $1,250,000.", "1250000")).toBe(1);
    expect(scoreGsm8k("#### $29.00", "29")).toBe(1);
    expect(scoreGsm8k("#### -48.5", "-48.5")).toBe(1);
    expect(scoreGsm8k("#### 48.5", "-48.5")).toBe(0);
    expect(scoreGsm8k("#### 72.", "72")).toBe(1);
  });

  it("has no answer, and scores 0, where the mark has no number", () => {
    expect(extractGsm8kAnswer("#### ,")).toBeNull();
    expect(scoreGsm8k("#### ,", 46)).toBe(0);
    expect(scoreGsm8k("It is 46. ####", 46)).toBe(0);
    expect(scoreGsm8k("", 46)).toBe(0);
  });

  it("finds a mark however early it stands", () => {
    const filler = "so we are done here ".repeat(30);
    expect(scoreGsm8k(`#### 17\n${filler}`, 17)).toBe(1);
    expect(scoreGsm8k(`#### 17 ${filler} step 2 of 3`, 17)).toBe(1);
    expect(scoreGsm8k(`#### 17\n${filler}\nstep 2 of 3`, 17)).toBe(1);
  });

  it("lets the last mark win", () => {
    expect(extractGsm8kAnswer("#### 12\nWait.\n#### 13\nas shown in step 2")).toBe("13");
    expect(extractGsm8kAnswer("#### 12\n####\n\n 13")).toBe("13");
    expect(extractGsm8kAnswer("#### 12\n#### unclear\n13")).toBeNull();
  });

  it("wants the mark when told so", () => {
    expect(extractGsm8kAnswer("There are 46 jars.", { mark: "required" })).toBeNull();
    expect(extractGsm8kAnswer("There are 46 jars.")).toBe("46");
  });

  it("is not moved by anything before the last mark or on later lines", () => {
    const words = fc.string({ unit: fc.constantFrom(..."abc 0123,.-$=\n#".split("")), maxLength: 60 });
    fc.assert(
      fc.property(words, fc.integer(), words, (before, value, after) => {
        const rest = after.replaceAll("#", "");
        expect(extractGsm8kAnswer(`${before}\n#### ${value}\n${rest}`)).toBe(String(value === 0 ? 0 : value));
      }),
    );
  });

  const facts = JSON.parse(readFileSync(dataPath("facts.json"), "utf8"));
  it.each(["gsm8k/train-512.jsonl", "gsm8k/test-128.jsonl"])("grades every worked answer of %s as right", (file) => {
    const rows = readFileSync(dataPath(file), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { answer: string });
    expect(rows.length).toBe(facts[file].records);
    const listed: string[] = facts[file].final_answers;
    for (const [index, { answer }] of rows.entries()) {
      expect(scoreGsm8k(answer, answer)).toBe(1);
      if (index < listed.length) expect(scoreGsm8k(answer, listed[index]!)).toBe(1);
    }
  });
});
