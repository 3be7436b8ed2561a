import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { completionsAt, hoverAt } from "../../../extension/recipeYaml/recipeLanguage.ts";
import { yamlCursor, yamlKeys } from "../../../extension/recipeYaml/yamlCursor.ts";
import { recipeJsonSchema } from "../../../protocol/recipeJsonSchema.ts";
import { allRecipeKeys, type SchemaNode } from "../../../protocol/recipeKeys.ts";

/** The text without its `|`, and where that stood. */
function at(marked: string): [text: string, line: number, column: number] {
  const before = marked.slice(0, marked.indexOf("|"));
  const lines = before.split("\n");
  return [marked.replace("|", ""), lines.length - 1, lines.at(-1)!.length];
}
const labels = (marked: string) => completionsAt(...at(marked)).map(({ label }) => label);
const completion = (marked: string, label: string) => completionsAt(...at(marked)).find((each) => each.label === label);
const hover = (marked: string) => hoverAt(...at(marked), [])?.text ?? null;

describe("completion in recipe.yaml", () => {
  it("offers the keys of the section that are not there yet, needed ones first", () => {
    expect(labels("name: x\n|")).toEqual(expect.arrayContaining(["model", "objective", "training"]));
    expect(labels("name: x\n|")).not.toContain("name");
    const inObjective = completionsAt(...at("objective:\n  kind: grpo\n  |\ntraining:\n  lr: 1\n"));
    expect(inObjective.map(({ label }) => label)).not.toContain("kind");
    expect([...inObjective].sort((a, b) => a.sort.localeCompare(b.sort))[0]?.label).toBe("aggregation");
  });

  it("tells meaning, default and the names that others have for it", () => {
    const found = completion("objective:\n  cl|", "clipLow")!;
    expect(found).toMatchObject({ detail: "number ≥ 0 = 0.2", snippet: "clipLow: $0", from: 2, to: 4 });
    expect(found.documentation).toMatch(/lower bound.*Default: `0.2`.*AxisRL `grpo.clip_ratio_low`/s);
    expect(completion("|", "training")!.snippet).toBe("training:\n  $0");
  });

  it("offers the values of a key, in blocks and in braces", () => {
    expect(labels("objective:\n  kind: |")).toContain("grpo");
    expect(labels("objective: { kind: grpo, aggregation: tok| }")).toContain("token-mean");
    expect(labels("evaluation:\n  atStart: |")).toEqual(["true", "false"]);
    expect(completion("objective:\n  kind:|", "grpo")!.snippet).toBe(" grpo");
    expect(labels("training: { schedule: { kind: | } }")).toEqual(["constant", "linear", "cosine"]);
  });

  it("offers keys in braces and in profiles", () => {
    expect(labels("training: { steps: 2, | }")).toContain("lr");
    expect(labels("training: { steps: 2, | }")).not.toContain("steps");
    expect(labels("profiles:\n  quick:\n    |")).toContain("training");
    expect(labels("profiles:\n  quick:\n    training:\n      |")).toContain("steps");
    expect(labels("profiles:\n  quick:\n    |")).not.toContain("profiles");
  });

  it("replaces only the word of a key that has a value", () => {
    expect(completion("sampling:\n  group|: 4", "groupSize")).toMatchObject({ snippet: "groupSize" });
  });

  it("is silent in comments, text and behind what it does not know", () => {
    for (const marked of ["# mo|", "name: x # mo|", "foo:\n  |", "name: |\n  te|xt"]) {
      if (marked.startsWith("name: |")) expect(yamlCursor("name: |\n  text", 1, 4).place).toBe("none");
      else expect(labels(marked)).toEqual([]);
    }
  });

  it("gives no answer that throws, whatever stands in the file", () => {
    const piece = fc.constantFrom(
      "training:",
      "  ",
      "\n",
      "{",
      "}",
      ",",
      "a",
      ": ",
      "#",
      "'",
      '"',
      "|",
      "- ",
      "[",
      "]",
      "lr",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.nat(10), fc.nat(40), (pieces, line, column) => {
        const text = pieces.join("");
        const length = (text.split("\n")[line] ?? "").length;
        completionsAt(text, line, Math.min(column, length));
        hoverAt(text, line, Math.min(column, length), []);
      }),
    );
  });
});

describe("hover in recipe.yaml", () => {
  it("says meaning, default, other names, and the value in force with what set it", () => {
    const values = [{ key: "training.lr", value: 2e-5, origin: "recipe.yaml:2:3" }];
    const found = hoverAt("training:\n  lr: 2e-5\n", 1, 3, values)!;
    expect(found).toMatchObject({ line: 1, from: 2, to: 4 });
    expect(found.text).toMatch(/\*\*training\.lr\*\*.*AdamW.*Default: `0.000001`.*AgentRL `learning_rate`/s);
    expect(found.text).toContain("In force: `0.00002`, from recipe.yaml:2:3.");
  });

  it("knows the knobs of the seed stacks, and nothing about other words", () => {
    expect(hover("grpo:\n  clip_ratio_|low: 0.2")).toMatch(
      /AxisRL.*`grpo.clip_ratio_low`; here it is objective.clipLow/,
    );
    expect(hover("nothing|: 1")).toBeNull();
    expect(hover("name: val|ue")).toBeNull();
  });

  it("knows every key of the schema", () => {
    for (const key of allRecipeKeys(recipeJsonSchema() as SchemaNode)) {
      const lines = key.path.split(".").map((name, depth) => `${"  ".repeat(depth)}${name}:`);
      const depth = lines.length - 1;
      expect(hoverAt(lines.join("\n"), depth, 2 * depth + 1, [])?.text, key.path).toContain(`**${key.path}**`);
    }
  });
});

describe("the keys of a text", () => {
  it("are found in blocks and braces, with their places", () => {
    expect(yamlKeys("a:\n  b: { c: 1, d: { e: [x, y] } } # f: g\nh: 1\n")).toEqual([
      { path: ["a"], line: 0, from: 0, to: 1 },
      { path: ["a", "b"], line: 1, from: 2, to: 3 },
      { path: ["a", "b", "c"], line: 1, from: 7, to: 8 },
      { path: ["a", "b", "d"], line: 1, from: 13, to: 14 },
      { path: ["a", "b", "d", "e"], line: 1, from: 18, to: 19 },
      { path: ["h"], line: 2, from: 0, to: 1 },
    ]);
  });
});
