import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { formatProblem } from "../../../../agent-daemon/src/recipes/configProblem.ts";
import { type ConfigOptions, loadConfig } from "../../../../agent-daemon/src/recipes/loadConfig.ts";
import { recipeSchema } from "../../../../protocol/recipe.ts";
import { recipeJsonSchema } from "../../../../protocol/recipeJsonSchema.ts";
import { minimalRecipe, temporaryFolder } from "../../../support/recipeFolder.ts";

async function load(yaml: string, options: ConfigOptions = {}) {
  return await loadConfig(await temporaryFolder({ "recipe.yaml": yaml }), options);
}

function line(yaml: string, text: string): number {
  return yaml.slice(0, yaml.indexOf(text)).split("\n").length;
}

async function paths(yaml: string, code: string, options: ConfigOptions = {}) {
  return (await load(yaml, options)).problems.filter((problem) => problem.code === code).map((problem) => problem.path);
}

describe("the configuration of a recipe", () => {
  it("is whole when only what has no default is written", async () => {
    const { config, problems, origins } = await load(minimalRecipe);
    expect(problems).toEqual([]);
    expect(config).toEqual(recipeSchema.parse(config));
    expect(origins.get("training.lr")?.layer).toBe("default");
    expect(origins.get("objective.kind")).toMatchObject({
      layer: "recipe",
      line: line(minimalRecipe, "kind:"),
      column: 3,
    });
  });

  it("lists every problem at once, each with its line", async () => {
    const yaml = `${minimalRecipe}sampling:\n  temprature: 0.7\n  groupSize: many\n  topP: 2\ntraining:\n  lr: -1\n  checkpoint:\n    keeplast: 3\nretention:\n  days: 3\n`;
    const { config, problems } = await load(yaml);
    expect(config).toBeNull();
    const found = problems.map(({ path, code, origin }) => ({ path, code, line: origin?.line }));
    const at = (path: string, code: string, text: string) => ({ path, code, line: line(yaml, text) });
    expect(found).toHaveLength(6);
    expect(found).toEqual(
      expect.arrayContaining([
        at("sampling.temprature", "CONFIG_KEY_UNKNOWN", "temprature"),
        at("sampling.groupSize", "CONFIG_VALUE_INVALID", "groupSize"),
        at("sampling.topP", "CONFIG_VALUE_INVALID", "topP"),
        at("training.lr", "CONFIG_VALUE_INVALID", "lr:"),
        at("training.checkpoint.keeplast", "CONFIG_KEY_UNKNOWN", "keeplast"),
        at("retention.days", "CONFIG_KEY_UNKNOWN", "days"),
      ]),
    );
    const text = problems.map(formatProblem).join("\n");
    expect(text).toContain("Did you mean sampling.temperature?");
    expect(text).toContain("Did you mean training.checkpoint.keepLast?");
  });

  it("finds a key that was written in the wrong section", async () => {
    const { problems } = await load(`${minimalRecipe}temperature: 0.7\n`);
    expect(problems[0]?.next).toBe("Did you mean sampling.temperature?");
    const dotted = await load(`${minimalRecipe}training.lr: 0.7\n`);
    expect(dotted.problems[0]?.next).toBe("Did you mean training.lr?");
  });

  it("says what is missing, and where", async () => {
    const { problems } = await load("name: x\nobjective:\n  kind: tis\n");
    expect(problems.map(({ path, code }) => [path, code])).toEqual(
      expect.arrayContaining([
        ["model", "CONFIG_KEY_MISSING"],
        ["data", "CONFIG_KEY_MISSING"],
        ["advantages", "CONFIG_KEY_MISSING"],
        ["objective.aggregation", "CONFIG_KEY_MISSING"],
      ]),
    );
    expect(problems.find(({ path }) => path === "objective.aggregation")?.origin?.line).toBe(2);
    expect(await paths("", "CONFIG_KEY_MISSING")).toContain("name");
  });

  it("refuses knobs that nothing reads in this configuration", async () => {
    const cases: [string, string, string[]][] = [
      ["", "objective:\n", []],
      ["objective:\n", "objective:\n  lengthNormalizer: 10\n", ["objective.lengthNormalizer"]],
      ["kind: grpo", "kind: reinforce\n  clipLow: 0.1\n  dualClip: 3", ["objective.clipLow", "objective.dualClip"]],
      ["objective:\n", "objective:\n  unit: turn\n", ["objective.unit"]],
      ["objective:\n", "objective:\n  kl: {coef: 0.1, placement: reward, estimator: k3}\n", ["objective.kl.estimator"]],
      ["advantages:\n", "advantages:\n  gamma: 1\n", ["advantages.gamma"]],
      ["data:\n", "training: {decayed: all}\ndata:\n", ["training.decayed"]],
      ["data:\n", "training: {weightDecay: 0.1, decayed: all}\ndata:\n", []],
      ["data:\n", "training: {schedule: {finalFraction: 0.1}}\ndata:\n", ["training.schedule.finalFraction"]],
      ["data:\n", "evaluation: {tasks: 5}\ndata:\n", ["evaluation.tasks"]],
      ["data:\n", "evaluation: {tasks: 5}\ndata:\n  heldOutCount: 9\n", []],
      ["data:\n", "data:\n  heldOut: x.jsonl\n  heldOutCount: 9\n", ["data.heldOutCount"]],
      ["data:\n", "data:\n  order: file\n  seed: 9\n", ["data.seed"]],
      ["model:\n", "model:\n  revision: v2\n", ["model.revision"]],
    ];
    for (const [from, to, expected] of cases) {
      const yaml = from === "" ? minimalRecipe : minimalRecipe.replace(from, to);
      expect([to, await paths(yaml, "CONFIG_KEY_UNREAD")]).toEqual([to, expected]);
    }
  });

  it("names the argument that made a knob unread or wrote one that is", async () => {
    const { problems } = await load(minimalRecipe, { overrides: ["--training.decayed=all"] });
    expect(problems).toMatchObject([{ path: "training.decayed", origin: { source: "--training.decayed=all" } }]);
  });

  it("refuses combinations that cannot run", async () => {
    const overrides = [
      "--sampling.minGroupSize=9",
      "--training.tokenBudget=100",
      "--indexes=[lenght]",
      "--recordFields={length: integer}",
    ];
    const { problems } = await load(minimalRecipe, { overrides });
    expect(problems.map(({ path, code }) => [path, code])).toEqual([
      ["sampling.minGroupSize", "CONFIG_CONFLICT"],
      ["training.tokenBudget", "CONFIG_CONFLICT"],
      ["indexes.0", "CONFIG_CONFLICT"],
    ]);
    expect(problems[2]?.next).toBe("Did you mean length?");
  });

  it("lays profile over recipe, environment over profile, arguments over all", async () => {
    const yaml = `${minimalRecipe}training: {lr: 1, steps: 1, seed: 1, eps: 1}\nprofiles:\n  quick:\n    training: {steps: 2, seed: 2, eps: 2}\n`;
    const environment = { ROLLSCOPE__training__seed: "3", ROLLSCOPE__training__eps: "3", ROLLSCOPE_OUTPUT_DIR: "out" };
    const overrides = ["--training.eps=4"];
    const { config, origins, outputDir } = await load(yaml, { profile: "quick", environment, overrides });
    expect(config?.training).toMatchObject({ lr: 1, steps: 2, seed: 3, eps: 4 });
    expect(["lr", "steps", "seed", "eps"].map((key) => origins.get(`training.${key}`)?.layer)).toEqual([
      "recipe",
      "profile",
      "environment",
      "command line",
    ]);
    expect(origins.get("training.steps")).toMatchObject({ profile: "quick", line: line(yaml, "    training") });
    expect(outputDir).toBe(resolve("out"));
    expect((await load(yaml)).config?.training.steps).toBe(1);
  });

  it("refuses a profile that does not exist, and checks those that are not chosen", async () => {
    const yaml = `${minimalRecipe}profiles:\n  quick:\n    training: {stepz: 2}\n  slow: {training: {steps: 9}}\n`;
    const { problems } = await load(yaml, { profile: "slwo" });
    expect(problems).toMatchObject([
      { code: "CONFIG_PROFILE_UNKNOWN", next: "Did you mean slow?" },
      { code: "CONFIG_KEY_UNKNOWN", path: "training.stepz", origin: { layer: "profile", profile: "quick" } },
    ]);
  });

  it("is refused with a code when there is none", async () => {
    const folder = await temporaryFolder();
    await expect(loadConfig(folder)).rejects.toMatchObject({ code: "RECIPE_NOT_FOUND" });
  });

  it("has a JSON Schema that is current and describes every key", async () => {
    const text = await readFile(new URL("../../../../protocol/recipe.schema.json", import.meta.url), "utf8");
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(recipeJsonSchema())));
    const bare: string[] = [];
    const visit = (node: unknown, path: string) => {
      if (typeof node !== "object" || node === null) return;
      for (const [key, value] of Object.entries(node)) {
        if (key === "properties")
          for (const [name, inner] of Object.entries(value as Record<string, { description?: string }>))
            if (!inner.description) bare.push(`${path}.${name}`);
        visit(value, key === "properties" ? path : `${path}.${key}`);
      }
    };
    visit(recipeJsonSchema(), "");
    expect(bare).toEqual([]);
  });
});
