import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatNumber } from "../../../agent-daemon/src/cli/terminal/numbers.ts";
import { command } from "../../support/commandLine.ts";
import { toyFiles, toyFolder } from "../../support/toyRun.ts";

interface Listed {
  readonly run: string;
  readonly record: string;
  readonly inspect: string;
}

let folder = "";
let outputDir = "";
let ended: Listed;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "rollscope-cli-"));
  outputDir = `--output-dir=${join(folder, "runs")}`;
  for (const [name, contents] of Object.entries(toyFiles)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), contents);
  }
  const result = await command(["run", folder, "--json", outputDir]);
  expect([result.exit, result.stderr]).toEqual(["ok", ""]);
  ended = result.json() as Listed;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a run on the command line", () => {
  test("prints one line a step where there is no terminal, and last how to look at a trajectory", async () => {
    const source = await toyFolder();
    const runs = `--output-dir=${join(source, "runs")}`;
    const { exit, stdout } = await command(["run", source, "--training.steps=2", runs]);
    expect(exit).toBe("ok");
    const lines = stdout.trimEnd().split("\n");
    expect(lines.filter((line) => line.startsWith("step "))).toHaveLength(2);
    expect(stdout).toMatch(/held out \(4 tasks\) +base +step 2 +change/);
    const inspect = /rollscope (inspect \S+ t\S+)/.exec(stdout)?.[1] ?? "";
    const shown = await command([...inspect.split(" "), runs]);
    expect(shown.exit).toBe("ok");
    expect(shown.stdout).toContain("advantage");
  });

  test("draws curves in place on a terminal, without colours where NO_COLOR says so", async () => {
    const source = await toyFolder();
    const line = ["run", source, "--training.steps=2", `--output-dir=${join(source, "runs")}`];
    const { exit, stdout } = await command(line, { columns: 90, environment: { NO_COLOR: "1", TERM: "xterm" } });
    expect(exit).toBe("ok");
    expect(stdout).toContain("\u001b[?25l");
    expect(stdout).toContain("\u001b[?25h");
    expect(stdout).toMatch(/\nreward +[\d.]+ /);
    expect(stdout).toMatch(/[⠀-⣿]{40,}/u);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colour codes are what is looked for
    expect(stdout).not.toMatch(/\u001b\[\d+m/);
  });

  test("is listed with its state", async () => {
    const { run } = ended;
    const { exit, json } = await command(["list", "--json", outputDir]);
    expect(exit).toBe("ok");
    expect(json()).toMatchObject({ runs: [{ run, status: "completed", step: 4, steps: 4, model: "./model" }] });
  });

  test("lists its records: those of a step, those of a task, the worst", async () => {
    const { run } = ended;
    const list = async (...more: string[]) =>
      (
        (await command(["inspect", run, "--json", outputDir, ...more])).json() as {
          records: { id: string; task: string; score: number; lastTrainedStep: number }[];
        }
      ).records;
    const ofStep = await list("--step", "3");
    expect(ofStep).toHaveLength(8);
    expect(ofStep.every((record) => record.lastTrainedStep === 3)).toBe(true);
    const task = ofStep[0]?.task ?? "";
    const ofTask = await list("--group", task);
    expect(ofTask.map((record) => record.task)).toEqual(Array(4).fill(task));
    const worst = (await list("--worst", "5")).map((record) => record.score);
    expect(worst).toEqual([...worst].sort((a, b) => a - b));
    expect(worst).toHaveLength(5);
  });

  test("shows a trajectory token by token with exactly the numbers that are stored", async () => {
    const { run, record } = ended;
    const { json } = await command(["inspect", run, record, "--json", outputDir]);
    const shown = json() as {
      calls: {
        step: number;
        tokens: {
          id: number;
          text: string;
          rollout: number;
          old: number;
          new: number;
          ratio: number;
          advantage: number;
          entropy: number;
        }[];
      }[];
    };
    const [token] = shown.calls[0]?.tokens ?? [];
    expect(token?.rollout).toBeCloseTo(token?.old ?? Number.NaN, 5);
    expect(token?.ratio).toBe(Math.exp((token?.new ?? 0) - (token?.old ?? 0)));
    const text = await command(["inspect", run, record, outputDir]);
    const row = text.stdout.split("\n").find((line) => line.trimStart().startsWith("0  "));
    expect(row).toContain(formatNumber(token?.rollout ?? Number.NaN));
    expect(row).toContain(formatNumber(token?.entropy ?? Number.NaN));
    expect(text.stdout).toMatch(/# +token +id +rollout +old +new +ratio +entropy +advantage/);
    expect(text.stdout).toContain(`training of step ${shown.calls[0]?.step}`);
    expect(text.stdout).toMatch(/user: \d+\+\d=/);
  });

  test("ends with the totals of the whole record, whichever tokens are shown", async () => {
    const { run, record } = ended;
    interface Shown {
      readonly calls: { readonly tokens: { readonly rollout: number; readonly entropy: number }[] }[];
      readonly totals: { readonly tokens: number; readonly logprobSum: number; readonly entropyMean: number };
    }
    const shown = (await command(["inspect", run, record, "--json", outputDir])).json() as Shown;
    const tokens = shown.calls.flatMap((call) => call.tokens);
    expect(shown.totals.tokens).toBe(tokens.length);
    expect(shown.totals.logprobSum).toBeCloseTo(
      tokens.reduce((sum, token) => sum + token.rollout, 0),
      10,
    );
    const worst = await command(["inspect", run, record, "--worst", "1", outputDir]);
    const last = worst.stdout.trimEnd().split("\n").at(-1);
    expect(last).toBe(
      `total  ${tokens.length} tokens sampled · ${tokens.length} trained · Σ log-probability ${formatNumber(shown.totals.logprobSum)} · mean entropy ${formatNumber(shown.totals.entropyMean)}`,
    );
  });

  test("shows the least likely tokens of a trajectory first when asked for the worst", async () => {
    const { run, record } = ended;
    const { json } = await command(["inspect", run, record, "--worst", "2", "--json", outputDir]);
    const { calls } = json() as { calls: { tokens: { rollout: number }[] }[] };
    const [first, second] = calls[0]?.tokens ?? [];
    expect(first?.rollout).toBeLessThanOrEqual(second?.rollout ?? Number.NEGATIVE_INFINITY);
  });

  test("shows task ids beyond 2^53 exactly, in lists, in trajectories and in documents", async () => {
    const { run, record } = ended;
    const group = record.replace(/-s\d+$/, "");
    const { records } = (await command(["inspect", run, "--group", group, "--json", outputDir])).json() as {
      records: { taskName: string }[];
    };
    const name = records[0]?.taskName ?? "";
    expect(name).toMatch(/^72057594037927936\d\d$/);
    expect(BigInt(name) - 7205759403792793600n).toBe(BigInt(group.split("-")[1] ?? ""));
    expect((await command(["inspect", run, "--group", name, outputDir])).stdout).toContain(name);
    expect((await command(["inspect", run, record, outputDir])).stdout).toContain(`task ${name} `);
    expect((await command(["inspect", run, record, "--json", outputDir])).stdout).toContain(`"id": ${name}`);
  });

  test("names what does not exist: run, record, step", async () => {
    const { run } = ended;
    expect((await command(["inspect", run, "t9-9-s9", outputDir])).exit).toBe("notFound");
    const step = await command(["inspect", run, "--step", "99", outputDir]);
    expect([step.exit, step.stderr]).toEqual(["usage", expect.stringContaining("has no step 99")]);
    expect((await command(["stop", run, outputDir])).exit).toBe("notActive");
    expect((await command(["pause", run, outputDir])).exit).toBe("notActive");
  });

  test("cannot be resumed when it is complete", async () => {
    const { run } = ended;
    const copy = join(folder, "runs", `${run}-again`);
    cpSync(join(folder, "runs", run), copy, { recursive: true });
    const { exit, stderr } = await command(["resume", copy, outputDir]);
    expect(exit).toBe("notActive");
    expect(stderr).toContain("[RUN_NOT_RESUMABLE]");
    rmSync(copy, { recursive: true });
  });
});
