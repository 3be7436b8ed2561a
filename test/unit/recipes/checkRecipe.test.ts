import { beforeEach, describe, expect, it, vi } from "vitest";
import { type CheckOptions, checkRecipe, recipeError } from "../../../agent-daemon/src/recipes/checkRecipe.ts";
import { minimalRecipe, temporaryFolder } from "../../support/recipeFolder.ts";

const code =
  'import { defineRecipe } from "rollscope/recipe";\nexport default defineRecipe({ rollout() {}, evaluate: () => 0 });\n';
const whole = { "recipe.yaml": minimalRecipe, "recipe.ts": code, "tasks.jsonl": '{"a":1}\n' };

async function check(files: Record<string, string>, options: CheckOptions = {}) {
  const folder = await temporaryFolder({ ...whole, ...files });
  return await checkRecipe(folder, options);
}

// Bundled code goes to a folder of the test, not to the cache of whoever runs it.
beforeEach(async () => {
  vi.stubEnv("ROLLSCOPE_CACHE", await temporaryFolder());
  return () => vi.unstubAllEnvs();
});

describe("checking a recipe", () => {
  it("finds nothing wrong with a whole one", async () => {
    const checked = await check({});
    expect(checked.problems).toEqual([]);
    expect(recipeError(checked)).toBeNull();
  });

  it("finds what is wrong in configuration, code and data at once", async () => {
    const checked = await check({
      "recipe.yaml": minimalRecipe.replace("kind: grpo", "kind: grpo\n  clipLo: 0.1"),
      "recipe.ts": `${code}let x = ;\n`,
    });
    expect(checked.problems.map((problem) => [problem.code, problem.origin?.line])).toEqual([
      ["CONFIG_KEY_UNKNOWN", 8],
      ["RECIPE_CODE_INVALID", 3],
    ]);
    expect(checked.config).toBeNull();
    expect(recipeError(checked)).toMatchObject({ code: "RECIPE_INVALID", message: expect.stringContaining("clipLow") });
  });

  it("names the row of the task file and the key that names the file", async () => {
    const { problems } = await check({ "tasks.jsonl": '{"a":1}\n{"a":}\n' });
    expect(problems).toMatchObject([{ code: "DATA_ROW_INVALID", path: "data.train", origin: { line: 5 } }]);
    expect(problems[0]?.sentence).toMatch(/tasks\.jsonl:2:/);
  });

  it("refuses an unknown model source, naming the nearest one", async () => {
    const { problems } = await check({}, { overrides: ["--model.source=smolm2-135m-instruct"] });
    expect(problems).toMatchObject([
      { code: "MODEL_SOURCE_UNKNOWN", next: "Did you mean smollm2-135m-instruct?", origin: { layer: "command line" } },
    ]);
  });

  it("wants an objective in the code for kind custom, and only then", async () => {
    const custom = minimalRecipe.replace("kind: grpo", "kind: custom");
    const objective = code.replace(
      "() => 0",
      "() => 0, objective: { name: 'x', scope: 'token', token: () => ({ loss: 0, dLogp: 0 }) }",
    );
    const codes = async (files: Record<string, string>) => (await check(files)).problems.map((problem) => problem.code);
    expect(await codes({ "recipe.yaml": custom })).toEqual(["OBJECTIVE_DEFINITION_MISSING"]);
    expect(await codes({ "recipe.ts": objective })).toEqual(["CONFIG_KEY_UNREAD"]);
    expect(await codes({ "recipe.yaml": custom, "recipe.ts": objective })).toEqual([]);
  });

  it("says what a KL estimator does as a loss, without standing in the way", async () => {
    const checked = await check({}, { overrides: ["--objective.kl={estimator: k1, coef: 0.1}"] });
    expect(checked.problems).toMatchObject([
      { code: "CONFIG_ADVICE", severity: "note", path: "objective.kl.estimator", origin: { layer: "command line" } },
    ]);
    expect(checked.problems[0]?.sentence).toContain("gradient is 0");
    expect(recipeError(checked)).toBeNull();
  });

  it("refuses a critic's loss where no estimator makes returns", async () => {
    const { problems } = await check({}, { overrides: ["--objective.value={coef: 0.5}"] });
    expect(problems).toMatchObject([{ code: "CONFIG_CONFLICT", severity: "error", path: "objective.value" }]);
  });

  it("knows from the code whether a custom objective reads the advantages", async () => {
    const custom = minimalRecipe.replace("kind: grpo", "kind: custom");
    const imitating = code.replace(
      "() => 0",
      "() => 0, objective: { name: 'x', scope: 'token', reads: [], token: ({ logp }) => ({ loss: -logp, dLogp: -1 }) }",
    );
    const { problems } = await check({ "recipe.yaml": custom, "recipe.ts": imitating });
    expect(problems).toMatchObject([
      { code: "CONFIG_ADVICE", severity: "note", path: "advantages.estimator", origin: { layer: "recipe" } },
    ]);
    expect(problems[0]?.origin?.line).toBeGreaterThan(1);
  });

  it("shows type errors when asked", async () => {
    const typed = code.replace("() => 0", "() => 'much'");
    expect((await check({ "recipe.ts": typed }, { types: true })).problems).toMatchObject([
      { code: "RECIPE_CODE_INVALID", origin: { line: 2 } },
    ]);
  });
});
