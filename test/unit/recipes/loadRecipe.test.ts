import { describe, expect, it } from "vitest";
import * as api from "../../../agent-daemon/src/recipes/api.ts";
import { checkTypes } from "../../../agent-daemon/src/recipes/checkTypes.ts";
import { loadRecipe } from "../../../agent-daemon/src/recipes/loadRecipe.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

const head = 'import { defineRecipe, scoreNumber, RollscopeError } from "rollscope/recipe";\n';

async function load(files: Record<string, string>) {
  const folder = await temporaryFolder(files);
  return await loadRecipe(folder, { bundleFolder: `${folder}/bundle` });
}

describe("the code of a recipe", () => {
  it("is TypeScript that imports its neighbours and the product's own API", async () => {
    const { definition } = await load({
      "recipe.ts": `${head}import { answer } from "./answer.ts";
        import { readFileSync } from "node:fs";
        const words: string = readFileSync(new URL("./words.txt", import.meta.url), "utf8");
        interface Row { a: number }
        export default defineRecipe<Row, string>({
          rollout: async (task) => words + answer(task.payload.a),
          evaluate: (record) => scoreNumber(record.result, 42),
        });`,
      "answer.ts": 'export const answer = (a: number): string => " = " + a;',
      "words.txt": "so",
    });
    const task = { id: "1", index: 0, split: "train" as const, payload: { a: 42 } };
    const result = await definition.rollout(task, {} as api.Agent);
    expect(result).toBe("so = 42");
    expect(await definition.evaluate({ result } as api.RecordView)).toBe(1);
  });

  it("shares the identity of the product's errors", async () => {
    const { definition } = await load({
      "recipe.ts": `${head}export default defineRecipe({ rollout: () => scoreNumber("1", "none"), evaluate: () => 0 });`,
    });
    expect(() => definition.rollout({} as api.Task, {} as api.Agent)).toThrow(api.RollscopeError);
  });

  it("is named by its content, and loads anew when it changes", async () => {
    const text = (score: number) => `${head}export default defineRecipe({ rollout() {}, evaluate: () => ${score} });`;
    const one = await load({ "recipe.ts": text(1) });
    const two = await load({ "recipe.ts": text(2) });
    expect(one.codeHash).not.toBe(two.codeHash);
    expect([
      await one.definition.evaluate({} as api.RecordView),
      await two.definition.evaluate({} as api.RecordView),
    ]).toEqual([1, 2]);
  });

  it("is refused with file and line when it cannot be compiled", async () => {
    await expect(load({ "recipe.ts": `${head}\nexport default defineRecipe({ rollout( });\n` })).rejects.toMatchObject({
      code: "RECIPE_CODE_INVALID",
      at: { line: 3, column: 40, file: expect.stringMatching(/recipe\.ts$/) },
    });
    const said = async (files: Record<string, string>) => {
      const error = await load(files).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "RECIPE_CODE_INVALID" });
      return (error as api.RollscopeError).message;
    };
    expect(await said({ "recipe.ts": 'import "./other.ts";', "other.ts": "\n\nlet x = ;\n" })).toMatch(/other\.ts:3:9/);
    expect(await said({ "recipe.ts": 'let x; import { gone } from "./gone.ts"; x = gone;' })).toMatch(
      /recipe\.ts:1:29/,
    );
  });

  it("is refused with a code when it throws, and the cause's stack names its line", async () => {
    const error = await load({ "recipe.ts": `${head}\n\nthrow new Error("no luck");\n` }).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: "RECIPE_CODE_FAILED", message: expect.stringContaining("no luck") });
    expect(((error as Error).cause as Error).stack).toMatch(/recipe\.ts:4/);
  });

  it("is refused when it ends the process, or awaits what never comes, while it is imported", async () => {
    await expect(load({ "recipe.ts": `${head}process.exit(0);` })).rejects.toMatchObject({
      code: "RECIPE_CODE_FAILED",
      message: expect.stringContaining("process.exit()"),
    });
    const folder = await temporaryFolder({ "recipe.ts": `${head}await new Promise(() => {});` });
    const options = { bundleFolder: `${folder}/bundle` };
    await expect(loadRecipe(folder, { ...options, importMilliseconds: 5 })).rejects.toMatchObject({
      code: "RECIPE_CODE_FAILED",
      message: expect.stringContaining("top level"),
    });
    const stop = new AbortController();
    const loading = loadRecipe(folder, { ...options, signal: stop.signal });
    stop.abort(new Error("stopped"));
    await expect(loading).rejects.toThrow("stopped");
  });

  it("is refused when its default export is no recipe", async () => {
    const objective = (text: string) => `export default { rollout() {}, evaluate() {}, objective: ${text} };`;
    for (const text of [
      "export const recipe = {};",
      "export default 3;",
      "export default { rollout() {} };",
      "export default { rollout() {}, evaluate: 3 };",
      "export default { rollout() {}, evaluate() {}, evalute() {} };",
      objective("3"),
      objective("{ scope: 'token', token() {} }"),
      objective("{ name: 'x', scope: 'token', unit() {} }"),
      objective("{ name: 'x', scope: 'batch', token() {} }"),
    ])
      await expect(load({ "recipe.ts": text })).rejects.toMatchObject({ code: "RECIPE_DEFINITION_INVALID" });
    await expect(load({})).rejects.toMatchObject({ code: "RECIPE_NOT_FOUND" });
    expect(
      (await load({ "recipe.ts": objective("{ name: 'x', scope: 'token', token() {} }") })).definition.objective?.name,
    ).toBe("x");
  });

  it("has its type errors found, with file and line", async () => {
    const folder = await temporaryFolder({
      "recipe.ts": `${head}export default defineRecipe<{ a: number }, string>({
        rollout: async (task) => task.payload.b,
        evaluate: ({ result }) => result.length,
      });`,
    });
    const checked = await checkTypes(`${folder}/recipe.ts`);
    expect(checked).toMatchObject({
      kind: "checked",
      problems: [{ line: 3, column: 47, file: `${folder}/recipe.ts` }],
    });
  });
});
