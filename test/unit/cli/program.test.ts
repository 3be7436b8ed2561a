import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { describeExitCodes, exitCodes, exitOfError } from "../../../agent-daemon/src/cli/exitCodes.ts";
import { formatJson } from "../../../agent-daemon/src/cli/jsonOutput.ts";
import { type ErrorCode, errorCodes } from "../../../protocol/errors.ts";
import { command } from "../../support/commandLine.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { toyFolder } from "../../support/toyRun.ts";

describe("the command line", () => {
  test("prints help with an example for each command, and the exit codes", async () => {
    const { exit, stdout } = await command("--help");
    expect(exit).toBe("ok");
    for (const name of ["run", "resume", "stop", "pause", "inspect", "list", "check", "models", "data"]) {
      expect(stdout).toMatch(new RegExp(`^  ${name} `, "m"));
    }
    expect(stdout).toContain(describeExitCodes());
    for (const name of ["run", "resume", "stop", "pause", "inspect", "list", "check", "models fetch", "data inspect"]) {
      expect((await command(`${name} --help`)).stdout).toMatch(/Example:\n {2}rollscope /);
    }
  });

  test.each(["frobnicate", "list --jsn", "inspect", "inspect x --limit many", "stop a b"])(
    "refuses `%s` as wrong usage",
    async (line) => {
      const { exit, stderr, stdout } = await command(line);
      expect([exit, stdout]).toEqual(["usage", ""]);
      expect(stderr).toMatch(/^error: /);
    },
  );

  test("takes configuration as --path.to.key=value, and names the nearest key of one that does not exist", async () => {
    const folder = await toyFolder();
    const good = await command([
      "check",
      folder,
      "--training.lr=2e-5",
      "--sampling.stop=[a, b]",
      "--name=007",
      "--json",
    ]);
    expect(good.exit).toBe("ok");
    expect(good.json()).toMatchObject({
      ok: true,
      config: { training: { lr: 2e-5 }, sampling: { stop: ["a", "b"] }, name: "007" },
      origins: { "training.lr": "--training.lr=2e-5" },
    });
    const bad = await command(["check", folder, "--objective.clipLo=0.1"]);
    expect(bad.exit).toBe("config");
    expect(bad.stdout).toContain(
      "--objective.clipLo=0.1: error: There is no key objective.clipLo. Did you mean objective.clipLow?",
    );
    const run = await command(["run", folder, "--objective.clipLo=0.1", `--output-dir=${folder}/runs`]);
    expect(run.exit).toBe("config");
    expect((await command(["list", `--output-dir=${folder}/runs`])).stdout).toContain("No runs in");
  });

  test("names file, line and column of what is wrong in a recipe", async () => {
    const folder = await toyFolder();
    writeFileSync(
      join(folder, "recipe.yaml"),
      "name: x\nmodel: { source: ./model }\ndata: { train: tasks.jsonl }\nobjective:\n  kind: gpro\n",
    );
    const { exit, stdout } = await command(["check", folder, "--json"]);
    expect(exit).toBe("config");
    const { problems } = JSON.parse(stdout);
    expect(problems).toContainEqual(
      expect.objectContaining({ path: "objective.kind", place: expect.stringMatching(/recipe\.yaml:5:3$/) }),
    );
  });

  test("does not take a misspelt option for configuration", async () => {
    const { exit, stderr } = await command(["run", await toyFolder(), "--profle", "x"]);
    expect(exit).toBe("usage");
    expect(stderr).toContain("Did you mean --profile?");
  });

  test("answers with one document for --json, also when it fails", async () => {
    const folder = await temporaryFolder();
    const { exit, stdout, json } = await command(["inspect", "nothing", "--json", `--output-dir=${folder}`]);
    expect(exit).toBe("notFound");
    expect(stdout.trim().startsWith("{")).toBe(true);
    expect(json()).toMatchObject({ error: { code: "RUN_NOT_FOUND", at: { run: "nothing" } } });
  });

  test("shows a task file with its large ids exact", async () => {
    const folder = await temporaryFolder({
      "tasks.jsonl": '\uFEFF{"id": 7205759403792793601, "q": "a"}\r\n\r\n{"id": 7205759403792793602, "q": null}',
    });
    const text = await command(["data", "inspect", join(folder, "tasks.jsonl")]);
    expect(text.stdout).toContain('1: { "id": 7205759403792793601, "q": "a" }');
    expect(text.stdout).toContain('3: { "id": 7205759403792793602, "q": null }');
    const { stdout } = await command(["data", "inspect", join(folder, "tasks.jsonl"), "--json"]);
    expect(stdout).toContain('"id": 7205759403792793602');
    expect(JSON.parse(stdout)).toMatchObject({
      rows: 2,
      fields: [{ name: "id", types: ["integer"], rows: 2 }, { name: "q" }],
    });
  });

  test("lists models by source, with what could be fetched", async () => {
    const environment = { ROLLSCOPE_CACHE: await temporaryFolder() };
    const { exit, stdout } = await command("models list", { environment });
    expect(exit).toBe("ok");
    expect(stdout).toMatch(/smollm2-135m-instruct +not fetched/);
    const missing = await command("models verify nothing", { environment });
    expect([missing.exit, missing.stderr]).toEqual(["notFound", expect.stringContaining("[MODEL_NOT_FOUND]")]);
  });
});

describe("exit codes", () => {
  test("are distinct, and every error has one", () => {
    const codes = Object.values(exitCodes).map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const code of Object.keys(errorCodes) as ErrorCode[])
      expect(exitCodes[exitOfError(code)].code).toBeGreaterThan(0);
  });

  test("say that nothing was started only of what is found before a run begins", () => {
    expect(exitCodes.config.meaning).toContain("nothing was started");
    expect(exitOfError("OBJECTIVE_INVALID")).toBe("config");
    expect(exitOfError("OBJECTIVE_DEFINITION_MISSING")).toBe("config");
    expect(exitOfError("OBJECTIVE_DEFINITION_INVALID")).toBe("failed");
    expect(exitOfError("OBJECTIVE_COLUMN_INVALID")).toBe("failed");
    expect(exitOfError("ADVANTAGES_COLUMN_MISSING")).toBe("failed");
  });
});

describe("documents of --json", () => {
  test("keep large integers and say NaN in a word", () => {
    expect(
      formatJson({
        id: 7205759403792793601n,
        values: Float32Array.of(1, Number.NaN),
        x: -Number.POSITIVE_INFINITY,
        gone: undefined,
      }),
    ).toBe('{\n  "id": 7205759403792793601,\n  "values": [\n    1,\n    "NaN"\n  ],\n  "x": "-Infinity"\n}');
  });
});
