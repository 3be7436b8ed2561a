import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../../agent-daemon/src/recipes/loadConfig.ts";
import { minimalRecipe, temporaryFolder } from "../../../support/recipeFolder.ts";

async function problemsOf(yaml: string | Uint8Array) {
  return (await loadConfig(await temporaryFolder({ "recipe.yaml": yaml }))).problems;
}

describe("a recipe.yaml that is damaged or hostile", () => {
  it("is refused at once when its aliases stand for more values than memory holds", async () => {
    const names = [..."abcdefghij"];
    const lines = names.map((name, index) => {
      const items = index === 0 ? "1" : `*${names[index - 1]}`;
      return `${name}: &${name} [${Array.from({ length: 9 }, () => items).join(", ")}]`;
    });
    const problems = await problemsOf(`${minimalRecipe}${lines.join("\n")}\n`);
    expect(problems.map(({ code }) => code)).toEqual(["CONFIG_SYNTAX"]);
    expect(problems[0]?.sentence).toContain("10000 values");
  });

  it("may repeat itself with aliases", async () => {
    expect(await problemsOf(`${minimalRecipe}taskSchema: { a: &t integer, b: *t }\n`)).toEqual([]);
  });

  it.each([".nan", ".inf", "-.inf", "1e400"])("is told that %s is no finite number, by that name", async (text) => {
    const [problem, ...others] = await problemsOf(`${minimalRecipe}training: { lr: ${text} }\n`);
    expect(others).toEqual([]);
    expect(problem?.sentence).toMatch(/^training\.lr is (NaN|-?Infinity): expected a finite number\.$/);
  });

  it("is refused with its line when it is not UTF-8", async () => {
    const bytes = Buffer.from(`${minimalRecipe}# caf\u00e9\n`, "latin1");
    expect(await problemsOf(bytes)).toMatchObject([
      { code: "CONFIG_SYNTAX", origin: { line: minimalRecipe.split("\n").length, column: 6 } },
    ]);
    expect(await problemsOf(Buffer.from(`\uFEFF${minimalRecipe}`, "utf16le"))).toMatchObject([
      { sentence: expect.stringContaining("UTF-8") },
    ]);
  });

  it("is refused when a second document follows", async () => {
    expect(await problemsOf(`${minimalRecipe}---\nname: two\n`)).toMatchObject([
      { sentence: expect.stringContaining("one YAML document") },
    ]);
  });
});
