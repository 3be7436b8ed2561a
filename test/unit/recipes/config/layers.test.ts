import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { readArgumentLayer, readEnvironmentLayer } from "../../../../agent-daemon/src/recipes/configOverrides.ts";
import { resolveLayers } from "../../../../agent-daemon/src/recipes/configResolve.ts";
import { readYamlLayer, readYamlValue } from "../../../../agent-daemon/src/recipes/configYaml.ts";

const schema = z.strictObject({
  lr: z.number().default(1),
  layers: z.array(z.int()).default([]),
  seed: z.int().nullable().default(1),
  env: z.strictObject({ url: z.string().default("") }).prefault({}),
  run: z.strictObject({ name: z.string().default("") }).prefault({}),
  objective: z.strictObject({ clipLow: z.number().default(0.2), clipHigh: z.number().default(0.28) }).prefault({}),
});

function fromArguments(...overrides: string[]) {
  const { layer, problems } = readArgumentLayer(overrides);
  expect(problems).toEqual([]);
  return resolveLayers(schema, [layer], "recipe.yaml");
}

function fromYaml(text: string) {
  const { layer, problems } = readYamlLayer(text, "recipe.yaml");
  expect(problems).toEqual([]);
  return resolveLayers(schema, [layer], "recipe.yaml");
}

function fromEnvironment(environment: Record<string, string>) {
  const { layer, problems } = readEnvironmentLayer(environment);
  expect(problems).toEqual([]);
  return resolveLayers(schema, [layer], "recipe.yaml");
}

describe("values of the configuration", () => {
  const url = "http://127.0.0.1:9/x?a=b=c";

  it("have the same type by file, argument and variable", () => {
    const expected = {
      lr: 2e-5,
      layers: [0, 2],
      seed: null,
      env: { url },
      run: { name: "007" },
      objective: { clipLow: 0.1, clipHigh: 0.28 },
    };
    const yaml = `lr: 2e-5\nlayers: [0, 2]\nseed: null\nenv: {url: "${url}"}\nrun:\n  name: '007'\nobjective:\n  clipLow: 0.1\n`;
    expect(fromYaml(yaml).config).toEqual(expected);
    const args = ["lr=2e-5", "layers=[0, 2]", "seed=null", `env.url=${url}`, "run.name='007'", "objective.clipLow=0.1"];
    expect(fromArguments(...args).config).toEqual(expected);
    expect(fromArguments(...args.map((arg) => `--${arg}`)).config).toEqual(expected);
    const variables = args.map((arg) => [
      `ROLLSCOPE__${arg.slice(0, arg.indexOf("=")).replaceAll(".", "__")}`,
      arg.slice(arg.indexOf("=") + 1),
    ]);
    expect(fromEnvironment(Object.fromEntries(variables)).config).toEqual(expected);
  });

  it("keep the characters of an argument where text is wanted, since a shell takes quotes away", () => {
    for (const text of [
      "007",
      "1.50",
      "true",
      "a #b",
      "a: b",
      "[x",
      "*x",
      "@x",
      "2e-5",
      "{a: 1}",
      "",
      "  7 ",
      "( ",
      " a b ",
      "a\nb",
      "---",
      "--- a",
      "#\n~",
      "|",
      "- 1",
      "null",
    ])
      expect(fromArguments(`--run.name=${text}`).config?.run.name).toBe(text === "null" ? "" : text);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const quoted = /^['"]/.test(text.trim());
        const isNull = /^(null|~|)$/i.test(text.trim());
        const name = fromArguments(`--run.name=${text}`).config?.run.name;
        return quoted || isNull || name === text;
      }),
    );
  });

  it("read a rate as a number in each of its spellings", () => {
    for (const text of ["2e-5", "2E-5", "2.0e-5", "0.00002", ".2e-4", "+2e-5"]) {
      expect(fromArguments(`--lr=${text}`).config?.lr).toBe(2e-5);
      expect(fromYaml(`lr: ${text}`).config?.lr).toBe(2e-5);
    }
    fc.assert(
      fc.property(fc.double({ min: -1e15, max: 1e15, noNaN: true }), (rate) => {
        const value = readYamlValue(String(rate));
        return value === rate;
      }),
    );
  });

  it("refuse a misspelt key, naming it, its place and the nearest key", () => {
    const [byArgument] = fromArguments("objective.clipLo=0.1").problems;
    expect(byArgument).toMatchObject({
      code: "CONFIG_KEY_UNKNOWN",
      path: "objective.clipLo",
      next: "Did you mean objective.clipLow?",
      origin: { layer: "command line", source: "objective.clipLo=0.1" },
    });
    const [byFile] = fromYaml("lr: 1\nobjective:\n  clipLo: 0.1\n").problems;
    expect(byFile).toMatchObject({
      code: "CONFIG_KEY_UNKNOWN",
      path: "objective.clipLo",
      next: "Did you mean objective.clipLow?",
      origin: { layer: "recipe", source: "recipe.yaml", line: 3, column: 3 },
    });
    const [byVariable] = fromEnvironment({ ROLLSCOPE__objective__clip_lo: "0.1" }).problems;
    expect(byVariable).toMatchObject({
      next: "Did you mean objective.clipLow?",
      origin: { layer: "environment", source: "ROLLSCOPE__objective__clip_lo" },
    });
  });

  it("refuse a wrong type and a number that would be rounded, with the place", () => {
    const { problems, config } = fromYaml("lr: fast\nlayers: 3\nseed: 7205759403792793601\nrun:\n  name: 5\n");
    expect(config).toBeNull();
    expect(problems.map(({ path, origin, code }) => [path, origin?.line, code])).toEqual([
      ["lr", 1, "CONFIG_VALUE_INVALID"],
      ["layers", 2, "CONFIG_VALUE_INVALID"],
      ["seed", 3, "CONFIG_VALUE_INVALID"],
      ["run.name", 5, "CONFIG_VALUE_INVALID"],
    ]);
    expect(problems[2]?.sentence).toContain("7205759403792793601");
    expect(fromArguments("--seed=7205759403792793601").config).toBeNull();
  });

  it("do not let the later of two arguments swallow the earlier one", () => {
    expect(fromArguments("--objective.clipLow=0.1", "--objective.clipHigh=0.3").config?.objective).toEqual({
      clipLow: 0.1,
      clipHigh: 0.3,
    });
    expect(fromArguments("--lr=1", "--lr=2").config?.lr).toBe(2);
    for (const pair of [
      ["--objective=3", "--objective.clipLow=1"],
      ["--objective.clipLow=1", "--objective=3"],
    ])
      expect(readArgumentLayer(pair).problems).toMatchObject([{ code: "CONFIG_CONFLICT" }]);
    expect(readArgumentLayer(["--lr", "--a..b=1", "=1"]).problems).toHaveLength(3);
  });

  it("come from the highest layer that has them, and know it", () => {
    const recipe = readYamlLayer(
      "lr: 1\nlayers: [1, 2, 3]\nobjective: {clipLow: 0.5, clipHigh: 0.6}\n",
      "recipe.yaml",
    ).layer;
    const environment = readEnvironmentLayer({ ROLLSCOPE__lr: "2", ROLLSCOPE__layers: "[9]" }).layer;
    const commandLine = readArgumentLayer(["--lr=3", "--objective.clipLow=null"]).layer;
    const { config, origins } = resolveLayers(schema, [recipe, environment, commandLine], "recipe.yaml");
    expect(config).toMatchObject({ lr: 3, layers: [9], objective: { clipLow: 0.2, clipHigh: 0.6 } });
    expect(Object.fromEntries([...origins].map(([key, origin]) => [key, origin.layer]))).toEqual({
      lr: "command line",
      layers: "environment",
      seed: "default",
      "env.url": "default",
      "run.name": "default",
      "objective.clipLow": "default",
      "objective.clipHigh": "recipe",
    });
    expect(origins.get("objective.clipHigh")).toMatchObject({ line: 3, column: 27 });
  });

  it("name the place of what YAML itself cannot read", () => {
    const cases: [string, number][] = [
      ["lr: 1\nlr: 2\n", 2],
      ["lr: [1\n", 2],
      ["lr: 1\n\tseed: 2\n", 2],
      ["- lr\n", 1],
      ["lr: *gone\n", 1],
      ["lr: &a [*a]\n", 1],
      ["lr: 1\n---\nlr: 2\n", 2],
      ["? [a]\n: 1\n", 1],
    ];
    for (const [text, line] of cases) {
      const { problems } = readYamlLayer(text, "recipe.yaml");
      expect([text, problems[0]?.code, problems[0]?.origin?.line]).toEqual([text, "CONFIG_SYNTAX", line]);
    }
  });

  it("take a key named __proto__ for what it is: unknown", () => {
    const { problems } = fromYaml("__proto__: {lr: 3}\n");
    expect(problems).toMatchObject([{ code: "CONFIG_KEY_UNKNOWN", path: "__proto__" }]);
    expect(fromArguments("--__proto__.lr=3").problems).toMatchObject([{ code: "CONFIG_KEY_UNKNOWN" }]);
  });

  it("survive a byte order mark and Windows line ends", () => {
    const { config, origins } = fromYaml("\uFEFFlr: 3\r\nseed: 4\r\n");
    expect(config).toMatchObject({ lr: 3, seed: 4 });
    expect(origins.get("seed")).toMatchObject({ line: 2, column: 1 });
  });
});
