import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readRecipeTask, taskArguments } from "../../../extension/recipeTask.ts";
import { doctorText } from "../../../extension/reportTexts.ts";
import { runContext, runLine, shortNumber, statusText } from "../../../extension/runs/describeRun.ts";
import { inOrder } from "../../../extension/runs/runsModel.ts";
import { machineLines, shortBytes } from "../../../extension/views/machineLines.ts";
import { recipeLines } from "../../../extension/views/recipeLines.ts";
import { runLines } from "../../../extension/views/runLines.ts";
import {
  describeList,
  parseScore,
  trajectoryLine,
  trajectoryLines,
  withNews,
} from "../../../extension/views/trajectoryLines.ts";
import { keyLine } from "../../../extension/webviews/keyLine.ts";
import { wordsForSpecials } from "../../../extension/webviews/pageRelay.ts";
import type { Advisory } from "../../../protocol/advisory.ts";
import { type RunSummary, runSummarySchema } from "../../../protocol/runView.ts";
import { trajectoryRowSchema } from "../../../protocol/trajectoryView.ts";

const run = (more: Partial<RunSummary> = {}): RunSummary => ({
  ...runSummarySchema.parse({
    folder: "/w/runs/a",
    run: "a",
    recipe: "math",
    recipeFolder: "/w/math",
    model: "smollm2",
    status: "running",
    phase: "sampling",
    attempt: 1,
    step: 3,
    steps: 40,
    reward: 0.25,
    loss: 0,
    evaluation: { base: null, latest: null },
    begun: 10,
    ended: null,
    pid: 1,
    error: null,
    crash: null,
    advisories: [],
  }),
  ...more,
});
const advisory: Advisory = {
  kind: "klSpike",
  severity: "severe",
  from: 2,
  to: 3,
  inForce: true,
  sentence: "KL rose to 4.",
  causes: ["The learning rate is high."],
  numbers: {},
  links: [{ kind: "step", step: 3 }],
};
const row = (more: object = {}) =>
  trajectoryRowSchema.parse({
    source: { kind: "record", folder: "/w/runs/a", record: "r1" },
    id: "r1",
    task: "t",
    taskName: "2 + 2",
    group: null,
    sample: 0,
    attempt: 0,
    split: "train",
    status: "graded",
    score: 1,
    turns: 1,
    promptTokens: 5,
    outputTokens: 12,
    truncated: false,
    toolErrors: 0,
    driftedCalls: 0,
    staleness: 0,
    mismatch: null,
    steps: [3],
    error: null,
    labels: [],
    ...more,
  });

describe("lines of the views", () => {
  it("say of a run how far it is, and offer what its state allows", () => {
    expect(runLine(run())).toBe("3/40 · reward 0.25 · sampling");
    expect(runLine(run({ status: "failed", reward: Number.NaN }))).toBe("failed · 3/40 · reward NaN");
    expect(runContext(run())).toBe("run.running");
    expect(runContext(run({ status: "crashed" }))).toBe("run.resumable");
    const [line] = runLines([run({ advisories: [advisory, { ...advisory, inForce: false }] })]);
    expect(line!.children!.map(({ label }) => label)).toEqual(["KL rose to 4."]);
    expect(line!.children![0]!.command!.arguments).toEqual([{ folder: "/w/runs/a", link: { kind: "step", step: 3 } }]);
  });

  it("name the cause and the next action below a run that ended badly", () => {
    const crash = {
      exitCode: null,
      signal: "SIGKILL",
      stderrTail: "",
      memory: { peak: null, available: null, killedForMemory: true },
      message: "The kernel ended it for want of memory.",
      next: "Lower sampling.concurrency.",
      at: 1,
    };
    const [line] = runLines([run({ status: "crashed", crash })]);
    expect(line!.children!.map(({ label }) => label)).toEqual([crash.message, crash.next]);
  });

  it("put the newest run first, and those that have not begun before it", () => {
    const runs = [run({ folder: "a", begun: 5 }), run({ folder: "b", begun: null }), run({ folder: "c", begun: 9 })];
    expect(inOrder(runs).map(({ folder }) => folder)).toEqual(["b", "c", "a"]);
  });

  it("show of a trajectory its score, length and what is odd about it", () => {
    expect(trajectoryLine(row())).toMatchObject({
      label: "2 + 2 #0",
      description: "1 · 1 turn · 12 tokens",
      icon: "pass",
    });
    const odd = trajectoryLine(row({ score: null, truncated: true, driftedCalls: 2, toolErrors: 1, staleness: 3 }));
    expect(odd.description).toBe("graded · 1 turn · 12 tokens · truncated · drift 2 · 1 tool errors · stale 3");
    const lines = trajectoryLines("/w/runs/a", { rows: [row()], total: 7, more: true }, "created");
    const worst = trajectoryLine(row({ mismatch: 0.25 }), "mismatch");
    expect(worst.description).toBe("1 · 1 turn · 12 tokens · mismatch 0.25");
    expect(lines.at(-1)).toMatchObject({ label: "Show more", description: "1 of 7" });
  });

  it("say of a rollout that goes on only that, and how it ended once that is known, each line in its place", () => {
    const running = row({ id: "r2", status: "running", score: null, turns: 0, outputTokens: 0 });
    expect(trajectoryLine(running).description).toBe("running");
    const known = [row(), running];
    expect(withNews(known, [row({ id: "r3" }), running])).toBe(known);
    const over = row({ id: "r2", score: 0.5 });
    expect(withNews(known, [row({ id: "r3" }), over, row({ score: 9 })])).toEqual([row(), over]);
  });

  it("describe filter and order", () => {
    expect(describeList("math", {}, "created")).toBe("math");
    expect(describeList("math", { step: 3, score: { min: 0.5 }, drifted: true }, "score")).toBe(
      "math · step 3 · score 0.5 to ∞ · drifted · by score",
    );
  });

  it("read a typed range of scores", () => {
    expect(parseScore("0.5 -")).toEqual({ min: 0.5 });
    expect(parseScore(" -1   2e-1 ")).toEqual({ min: -1, max: 0.2 });
    expect(parseScore("")).toEqual({});
    expect(parseScore("a b")).toBeNull();
    expect(parseScore("1")).toBeNull();
  });

  it("tell this machine's state, with and without GPUs", () => {
    const machine = { hostname: "box", platform: "linux", cpus: 8, cpuModel: "Cpu", memory: 1, node: "v20" };
    const hello = { protocol: 1, version: "1", pid: 2, started: 0, session: "s", machine };
    const gpu = { name: "H200", utilisation: 0.5, memoryUsed: 2 ** 31, memoryTotal: 2 ** 37 };
    const memory = { total: 2 ** 34, available: 2 ** 33 };
    const state = { cpu: 0.25, memory, disk: null, gpus: [gpu], at: 0 };
    const [line] = machineLines(hello, state, [run()]);
    expect(line!.description).toBe("1 run · CPU 25 %");
    expect(line!.children!.map(({ label, description }) => `${label}: ${description}`)).toEqual([
      "CPU: 25 % of 8 processors",
      "Memory: 8.0 GB of 16.0 GB, 8.0 GB available",
      "GPU 0: 50 % · 2.0 GB of 128.0 GB",
    ]);
    expect(machineLines(hello, { ...state, gpus: [] }, [])[0]!.children!.at(-1)!.description).toContain("none");
    expect(machineLines(null, null, [])).toEqual([]);
    expect(shortBytes(1023)).toBe("1023 B");
  });

  it("list the window's recipes before the shipped ones", () => {
    const recipe = { folder: "/r", name: "r", description: "d", shipped: false, problems: 2 };
    const lines = recipeLines([{ ...recipe, folder: "/s", shipped: true, problems: 0 }, recipe]);
    expect(lines.map(({ label, description }) => [label, description])).toEqual([
      ["r", "2 problems"],
      ["Shipped with Rollscope", undefined],
    ]);
    expect(recipeLines([])).toEqual([]);
  });
});

describe("the status bar item", () => {
  it("shows progress of the one run, the count of several, and advisories", () => {
    const connected = (runs: RunSummary[]) => statusText({ kind: "connected", runs, version: "1" });
    expect(connected([run()]).text).toBe("$(sync~spin) math 3/40");
    expect(connected([run(), run({ folder: "b" })]).text).toBe("$(sync~spin) 2 runs");
    const warned = connected([run({ advisories: [advisory] })]);
    expect(warned).toMatchObject({ text: "$(sync~spin) math 3/40 $(warning) 1", alarming: true });
    expect(warned.tooltip).toContain("⚠ KL rose to 4.");
    expect(connected([run({ status: "completed", advisories: [advisory] })]).text).toBe("$(pulse) Rollscope");
  });

  it("says what is wrong and what to do when the daemon is away", () => {
    const text = statusText({ kind: "trouble", code: "PAYLOAD_NOT_FOUND", message: "None found.", next: "Check." });
    expect(text).toMatchObject({ tooltip: ["None found. (PAYLOAD_NOT_FOUND)", "Check."], alarming: true });
  });
});

describe("texts", () => {
  it("keep four digits of a number, whatever its size", () => {
    const shown = [0, 1, 0.25, 1 / 3, 12.5, 123456, 1e-7, -0.00012345, Number.NaN, Number.NEGATIVE_INFINITY];
    expect(shown.map(shortNumber)).toEqual([
      "0",
      "1",
      "0.25",
      "0.3333",
      "12.5",
      "1.23e+5",
      "1e-7",
      "-1.23e-4",
      "NaN",
      "-Infinity",
    ]);
    fc.assert(
      fc.property(fc.double({ noNaN: true, min: -1e300, max: 1e300 }), (value) => {
        expect(Math.abs(Number(shortNumber(value)) - value)).toBeLessThanOrEqual(Math.abs(value) * 0.006 + 1e-300);
      }),
    );
  });

  it("list checks with what to do, and sum them up", () => {
    const ok = { id: "a", title: "Node", status: "ok" as const, detail: "22", next: null };
    const bad = { id: "b", title: "Engine", status: "failed" as const, detail: "no addon", next: "Build it." };
    expect(doctorText([ok], true)).toContain("Everything that a run needs works");
    expect(doctorText([ok, bad], true)).toMatch(/1 of 2 checks failed[\s\S]*✗ Engine {2}no addon\n.*→ Build it\./);
  });

  it("find the line of a key in recipe.yaml", () => {
    const yaml =
      "name: x\nobjective:\n  # clip: 9\n  kind: grpo\n  kl:\n    coefficient: 0.1\nkl: 3\ntraining: { steps: 4 }\n";
    expect(keyLine(yaml, "objective.kl.coefficient")).toBe(5);
    expect(keyLine(yaml, "objective.clip")).toBe(1);
    expect(keyLine(yaml, "kl")).toBe(6);
    expect(keyLine(yaml, "training.steps")).toBe(7);
    expect(keyLine(yaml, "missing")).toBeNull();
  });

  it("make the command line of a task", () => {
    const overrides = { "training.steps": "3", "env.url": "a=b" };
    expect(taskArguments("/r", { profile: "small", overrides })).toEqual([
      "run",
      "/r",
      "--profile",
      "small",
      "--training.steps=3",
      "--env.url=a=b",
    ]);
    expect(taskArguments("/r", { command: "check" })).toEqual(["check", "/r"]);
  });

  it("take a task as tasks.json writes it, and no other", () => {
    expect(readRecipeTask({ type: "rollscope", recipe: "r" })).toMatchObject({ recipe: "r" });
    expect(readRecipeTask({ type: "rollscope", recipe: "r", command: "check" })).toMatchObject({ command: "check" });
    for (const wrong of [{}, { recipe: 3 }, { recipe: "r", command: "delete" }])
      expect(readRecipeTask(wrong)).toBeNull();
  });

  it("write numbers that JSON lacks as the words of the contract", () => {
    const value = { a: [Number.NaN, { b: Number.POSITIVE_INFINITY, c: null }], d: "x", e: 1.5 };
    expect(wordsForSpecials(value)).toEqual({ a: ["NaN", { b: "Infinity", c: null }], d: "x", e: 1.5 });
  });
});
