import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkEditedRecipe, valuesInForce } from "../../../agent-daemon/src/recipes/diagnostics.ts";
import type { RecipeDiagnostic, TextEdit, TextRange } from "../../../protocol/daemonMethods.ts";
import { minimalRecipe, temporaryFolder } from "../../support/recipeFolder.ts";

const code =
  'import { defineRecipe } from "rollscope/recipe";\nexport default defineRecipe({ rollout() {}, evaluate: () => 0 });\n';

async function folderOf(files: Record<string, string> = {}) {
  return await temporaryFolder({
    "recipe.yaml": minimalRecipe,
    "recipe.ts": code,
    "tasks.jsonl": '{"a":1}\n',
    "model/config.json": "{}",
    "model/model.safetensors": "",
    ...files,
  });
}

async function diagnose(text: string, files: Record<string, string> = {}) {
  const folder = await folderOf(files);
  const { diagnostics } = await checkEditedRecipe({ folder, text, profile: null, overrides: {} });
  return diagnostics.filter((each) => each.code !== "MODEL_NOT_FOUND");
}

function offset(text: string, line: number, column: number): number {
  return text.split("\n").slice(0, line).join("\n").length + (line === 0 ? 0 : 1) + column;
}

function marked(text: string, range: TextRange | null): string | null {
  return range === null
    ? null
    : text.slice(offset(text, range.line, range.column), offset(text, range.endLine, range.endColumn));
}

/** The text after a fix. */
function mended(text: string, diagnostic: RecipeDiagnostic, title: string): string {
  const fix = diagnostic.fixes.find((each) => each.title === title);
  if (fix === undefined) throw new Error(`no fix ${title} among ${diagnostic.fixes.map((each) => each.title)}`);
  const edits: TextEdit[] = [{ range: fix.range ?? diagnostic.range!, newText: fix.newText }, ...(fix.also ?? [])];
  edits.sort((a, b) => b.range.line - a.range.line || b.range.column - a.range.column);
  return edits.reduce(
    (whole, { range, newText }) =>
      whole.slice(0, offset(whole, range.line, range.column)) +
      newText +
      whole.slice(offset(whole, range.endLine, range.endColumn)),
    text,
  );
}

describe("checking a recipe in an editor", () => {
  it("finds nothing wrong with a whole one", async () => {
    expect(await diagnose(minimalRecipe)).toEqual([]);
  });

  it("marks a misspelt key and renames it", async () => {
    const text = minimalRecipe.replace("kind: grpo", "kind: grpo\n  clipLo: 0.1 # low");
    const [found] = await diagnose(text);
    expect(found).toMatchObject({ code: "CONFIG_KEY_UNKNOWN", severity: "error", key: "objective.clipLo" });
    expect(marked(text, found!.range)).toBe("clipLo");
    expect(mended(text, found!, "Rename to clipLow")).toContain("  clipLow: 0.1 # low\n");
    expect(mended(text, found!, "Remove objective.clipLo")).toBe(minimalRecipe);
  });

  it("moves a key to the section that knows it", async () => {
    const text = `${minimalRecipe}sampling:\n  lr: 2e-5\n  groupSize: 4\n`;
    const [found] = await diagnose(text);
    expect(marked(text, found!.range)).toBe("lr");
    const after = mended(text, found!, "Move to training.lr");
    expect(after).toBe(`${minimalRecipe}sampling:\n  groupSize: 4\ntraining:\n  lr: 2e-5\n`);
    expect(await diagnose(after)).toEqual([]);
  });

  it("knows what the seed stacks call a key, and renames it", async () => {
    const text = minimalRecipe.replace("kind: grpo", "kind: grpo\n  clip_ratio_low: 0.1");
    const [found] = await diagnose(text);
    expect(found!.next).toBe("AxisRL knows it as grpo.clip_ratio_low; here it is objective.clipLow.");
    expect(mended(text, found!, "Rename to clipLow")).toContain("  clipLow: 0.1\n");
    const moved = `${minimalRecipe}num_generations: 4\n`;
    const [generations] = await diagnose(moved);
    expect(mended(moved, generations!, "Move to sampling.groupSize")).toBe(
      `${minimalRecipe}sampling:\n  groupSize: 4\n`,
    );
    const [refused] = await diagnose(`${minimalRecipe}sampling:\n  presence_penalty: 1\n`);
    expect(refused!.next).toMatch(/^AgentRL knows it as presence_penalty; there is no such knob here: a penalty/);
    const [later] = await diagnose(`${minimalRecipe}training:\n  tp_size: 2\n`);
    expect(later!.next).toMatch(/not available yet; it comes with part 7/);
  });

  it("marks the value that has the wrong type, and offers those that fit", async () => {
    const text = minimalRecipe.replace("token-mean", "token_mean").replace("group_mean", "none");
    const [found] = await diagnose(text);
    expect(marked(text, found!.range)).toBe("token_mean");
    expect(found!.fixes[0]?.title).toBe("Change to token-mean");
    const quoted = `${minimalRecipe}training: { steps: "3" }\n`;
    const [number] = await diagnose(quoted);
    expect(marked(quoted, number!.range)).toBe('"3"');
    expect(mended(quoted, number!, "Change to 3")).toContain("{ steps: 3 }");
    const named = minimalRecipe.replace("name: minimal", "name: 007");
    const [name] = await diagnose(named);
    expect(mended(named, name!, 'Change to "007"')).toContain('name: "007"\n');
  });

  it("removes a key that nothing reads, with the section that would be empty", async () => {
    const text = `${minimalRecipe}training:\n  schedule: { finalFraction: 0.1 }\n`;
    const [found] = await diagnose(text);
    expect(found).toMatchObject({ code: "CONFIG_KEY_UNREAD" });
    expect(marked(text, found!.range)).toBe("finalFraction");
    expect(mended(text, found!, "Remove training.schedule.finalFraction")).toBe(minimalRecipe);
    const flow = `${minimalRecipe}training:\n  schedule: { finalFraction: 0.1, warmupSteps: 2 }\n`;
    const [inFlow] = await diagnose(flow);
    expect(mended(flow, inFlow!, "Remove training.schedule.finalFraction")).toContain("schedule: { warmupSteps: 2 }");
  });

  it("shows behind a misspelt key what else is wrong, and the values in force", async () => {
    const text = `${minimalRecipe}sampling: { groupSize: 2, minGroupSize: 3, groupsize: 4 }\ntraining:\n  schedule: { finalFraction: 0.1 }\n`;
    const codes = (await diagnose(text)).map(({ code, key }) => `${code} ${key}`);
    expect(codes.sort()).toEqual([
      "CONFIG_CONFLICT sampling.minGroupSize",
      "CONFIG_KEY_UNKNOWN sampling.groupsize",
      "CONFIG_KEY_UNREAD training.schedule.finalFraction",
    ]);
    const { values } = await valuesInForce({ folder: await folderOf(), text });
    expect(values.find(({ key }) => key === "sampling.groupSize")).toMatchObject({ value: 2 });
    expect((await diagnose(text.replace("groupSize: 2", "groupSize: two"))).map(({ code }) => code).sort()).toEqual([
      "CONFIG_KEY_UNKNOWN",
      "CONFIG_VALUE_INVALID",
    ]);
  });

  it("names a combination that cannot run at the key that makes it so", async () => {
    const text = `${minimalRecipe}sampling: { groupSize: 2, minGroupSize: 3 }\n`;
    const [found] = await diagnose(text);
    expect(found).toMatchObject({ code: "CONFIG_CONFLICT" });
    expect(marked(text, found!.range)).toBe("minGroupSize");
  });

  it("inserts what is missing, in the form that the file has", async () => {
    const without = minimalRecipe.replace("  aggregation: token-mean\n", "");
    const [found] = await diagnose(without);
    expect(found).toMatchObject({ code: "CONFIG_KEY_MISSING", key: "objective.aggregation" });
    expect(marked(without, found!.range)).toBe("objective");
    const after = mended(without, found!, "Insert objective.aggregation: token-mean");
    expect(after).toBe(minimalRecipe);
    const noObjective = minimalRecipe.replace(/objective:\n.*\n.*\n/, "");
    const [whole] = await diagnose(noObjective);
    expect(await diagnose(mended(noObjective, whole!, whole!.fixes[0]!.title))).toEqual([]);
    const flow = `${without.replace("objective:\n  kind: grpo\n", "objective: { kind: grpo }\n")}`;
    const [inFlow] = await diagnose(flow);
    expect(mended(flow, inFlow!, "Insert objective.aggregation: token-mean")).toContain(
      "objective: { kind: grpo, aggregation: token-mean }",
    );
  });

  it("inserts the keys of an empty file one after the other", async () => {
    let text = "";
    for (let round = 0; round < 10; round++) {
      const missing = (await diagnose(text)).find((each) => each.code === "CONFIG_KEY_MISSING");
      if (missing === undefined) break;
      text = mended(text, missing, missing.fixes[0]!.title);
    }
    expect(await diagnose(text, { "train.jsonl": '{"a":1}\n' })).toEqual([]);
  });

  it("marks problems inside a profile, and mends them there", async () => {
    const text = `${minimalRecipe}profiles:\n  quick:\n    training: { step: 2 }\n`;
    const [found] = await diagnose(text);
    expect(marked(text, found!.range)).toBe("step");
    expect(mended(text, found!, "Rename to steps")).toContain("training: { steps: 2 }");
  });

  it("says which file is missing, at its name", async () => {
    const text = minimalRecipe.replace("tasks.jsonl", "nothing.jsonl").replace("./model", "./nowhere");
    const folder = await folderOf();
    const { diagnostics } = await checkEditedRecipe({ folder, text, profile: null, overrides: {} });
    expect(diagnostics.map(({ code, range }) => [code, marked(text, range)])).toEqual([
      ["DATA_FILE_NOT_FOUND", "nothing.jsonl"],
      ["MODEL_NOT_FOUND", "./nowhere"],
    ]);
  });

  it("never reads what would have to be fetched, and never runs the recipe's code", async () => {
    const text = minimalRecipe.replace("tasks.jsonl", "hf://datasets/a/b/c.jsonl");
    const spy = globalThis as { ranRecipeCode?: boolean };
    expect(await diagnose(text, { "recipe.ts": `globalThis.ranRecipeCode = true;\n${code}` })).toEqual([]);
    expect(spy.ranRecipeCode).toBeUndefined();
  });

  it("shows an error of the code in the file of the code", async () => {
    const folder = await folderOf({ "recipe.ts": `${code}let x = ;\n` });
    const { diagnostics } = await checkEditedRecipe({ folder, text: null, profile: null, overrides: {} });
    const found = diagnostics.find((each) => each.code === "RECIPE_CODE_INVALID");
    expect(found).toMatchObject({ file: join(folder, "recipe.ts"), range: { line: 2, column: 8 } });
  });

  it("survives text that is no YAML, and any other text", async () => {
    for (const text of ["a: [", "- 1\n- 2", "&a [*a]", "\t\tx", "a: 1\n---\nb: 2", "? [a]\n: b", "objective:\n"]) {
      expect((await diagnose(text)).length).toBeGreaterThan(0);
    }
  });

  it("counts columns in CRLF files as editors do", async () => {
    const text = minimalRecipe.replace("kind: grpo", "kind: grpo\n  clipLo: 0.1").replaceAll("\n", "\r\n");
    const [found] = await diagnose(text);
    expect(found!.range).toEqual({ line: 7, column: 2, endLine: 7, endColumn: 8 });
  });

  it("tells the value in force of every key, and what set it", async () => {
    const folder = await folderOf();
    const { values } = await valuesInForce({ folder, text: `${minimalRecipe}training: { lr: 2e-5 }\n` });
    const of = (key: string) => values.find((each) => each.key === key);
    expect(of("training.lr")).toMatchObject({ value: 2e-5, origin: expect.stringMatching(/recipe\.yaml:11:13$/) });
    expect(of("sampling.groupSize")).toEqual({ key: "sampling.groupSize", value: 8, origin: "default" });
  });
});
