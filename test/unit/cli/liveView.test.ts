import { describe, expect, test } from "vitest";
import { evaluationTable } from "../../../agent-daemon/src/cli/evaluationTable.ts";
import { renderLive } from "../../../agent-daemon/src/cli/liveView.ts";
import { plainLines } from "../../../agent-daemon/src/cli/plainView.ts";
import { foldEvent, noProgress, timeLeft } from "../../../agent-daemon/src/cli/runProgress.ts";
import { plainPaint } from "../../../agent-daemon/src/cli/terminal/colors.ts";
import { widthOf } from "../../../agent-daemon/src/cli/terminal/text.ts";
import { detectAdvisories } from "../../../agent-daemon/src/runs/advisories/detect.ts";
import { readHistory } from "../../../agent-daemon/src/runs/advisories/history.ts";
import type { JournalEvent, JournalEventBody } from "../../../protocol/journal.ts";
import { metricTroubles, troubledJournal } from "../../support/troubledRun.ts";

function journal(bodies: readonly [at: number, body: JournalEventBody][]): JournalEvent[] {
  return bodies.map(([at, body], index) => ({ n: index + 1, at, attempt: 1, ...body }));
}

const started: JournalEventBody = {
  type: "started",
  run: "toy-20260131-120509",
  recipe: "toy",
  model: "smollm2-135m-instruct",
  steps: 10,
  seed: 5,
  evaluations: [0, 5, 10],
  resumed: null,
};

const step = (number: number, metrics: { [name: string]: number }): JournalEventBody => ({
  type: "step",
  step: number,
  weightVersion: number,
  skipped: null,
  metrics,
  timings: {},
});

const evaluation = (at: number, score: number): JournalEventBody => ({
  type: "evaluation",
  step: at,
  summary: { tasks: 120, graded: 120, ungraded: 0, failed: 0, truncated: 3, scores: { score, strict: score / 2 } },
  milliseconds: 6000,
});

const fiveSteps = journal([
  [0, started],
  [6000, evaluation(0, 0.2833)],
  [14000, step(1, { reward_mean: 0.25, loss: 0.5, kl_k3: 0 })],
  [22000, step(2, { reward_mean: 0.3, loss: 0.25, kl_k3: 0.001 })],
  [30000, step(3, { reward_mean: 0.35, loss: Number.NaN, kl_k3: 0.002 })],
  [38000, step(4, { reward_mean: 0.4, loss: -0.25, kl_k3: 0.003 })],
  [46000, step(5, { reward_mean: 0.45, loss: -0.5, kl_k3: 0.004, entropy: 1.25, grad_norm: 0.5 })],
  [52000, evaluation(5, 0.45)],
  [52000, { type: "phase", step: 5, phase: "sampling" }],
]);

const progress = fiveSteps.reduce(foldEvent, noProgress);

describe("the live picture of a run", () => {
  test("shows title, progress with time left, three curves and the evaluations", () => {
    const lines = renderLive(
      { progress, phase: { done: 16, total: 64, unit: "rollouts" }, now: 54000, advisories: [], notice: null },
      { width: 72, height: 20 },
      plainPaint,
    );
    expect(lines).toEqual([
      "toy-20260131-120509 smollm2-135m-instruct",
      "████▏░░░ step 5/10 · 54.0 s elapsed · 44.0 s left · sampling 16/64 roll…",
      "reward       0.4500 ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⣀⡠⠔⠊⠁",
      "0.4500              ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⢀⡠⠔⠒⠉",
      "                    ⠀⠀⠀⠀⠀⠀⠀⠀⠀⢀⣀⠤⠔⠊⠁",
      "                    ⠀⠀⠀⠀⣀⠤⠔⠒⠉⠁",
      "             0.2500 ⣀⠤⠒⠉",
      "",
      "loss         0.5000 ⠉⠒⠤⣀",
      "−0.5000       1 gap ⠀⠀⠀⠀⠉⠒",
      "                    ",
      "                    ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠤⣀",
      "            −0.5000 ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠉⠒⠢⢄⡀",
      "",
      "KL           0.0040 ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⣀⡠⠔⠊⠁",
      "0.0040              ⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⢀⡠⠔⠒⠉",
      "                    ⠀⠀⠀⠀⠀⠀⠀⠀⠀⢀⣀⠤⠔⠊⠁",
      "                    ⠀⠀⠀⠀⣀⠤⠔⠒⠉⠁",
      "                  0 ⣀⠤⠒⠉",
      "held out: base 28.3 % → step 5 45.0 %",
    ]);
  });

  test("keeps a bar of one width that never goes back within a step", () => {
    const bars = (
      [
        ["sampling", null],
        ["sampling", { done: 64, total: 64, unit: "rollouts" }],
        ["training", null],
        ["training", { done: 40, total: 12_450, unit: "tokens" }],
      ] as const
    ).map(([phase, done]) => {
      const state = { progress: { ...progress, phase }, phase: done, now: 54_000, advisories: [], notice: null };
      return renderLive(state, { width: 100, height: 20 }, plainPaint)[1]?.split(" ")[0] ?? "";
    });
    expect(bars.map(widthOf)).toEqual([28, 28, 28, 28]);
    const filled = bars.map((bar) => bar.replaceAll("░", "").length);
    expect(filled).toEqual([...filled].sort((a, b) => a - b));
  });

  test("counts skipped steps and has a dash for a number that the last step does not have", () => {
    const [skipped] = journal([
      [60_000, { ...step(6, { loss: 0 }), skipped: { code: "X", reason: "nothing to train" } } as JournalEventBody],
    ]);
    const state = { progress: foldEvent(progress, skipped!), phase: null, now: 60_000, advisories: [], notice: null };
    const lines = renderLive(state, { width: 100, height: 20 }, plainPaint);
    expect(lines[1]).toContain("step 6/10, 1 skipped");
    expect(lines.filter((line) => line.startsWith("–  "))).toHaveLength(2);
    expect(lines.join()).not.toContain("NaN");
  });

  test("fits any size", () => {
    const warned = foldEvent(progress, {
      ...journal([
        [53000, { type: "warning", step: 5, error: { code: "X", message: "a\u001b[2Jb ".repeat(40), next: "n" } }],
      ])[0]!,
    });
    const history = readHistory();
    for (const event of troubledJournal(
      30,
      metricTroubles.map(([, change]) => change),
    ))
      history.read(event);
    const noticed = detectAdvisories(history.history(), 0);
    expect(noticed.length).toBeGreaterThan(3);
    for (let width = 20; width < 140; width += 7) {
      for (let height = 4; height < 40; height += 5) {
        const state = {
          progress: warned,
          phase: null,
          now: 60_000,
          advisories: noticed,
          notice: "Stopping at the next safe point.",
        };
        const lines = renderLive(state, { width, height }, plainPaint);
        expect(lines.length).toBeLessThanOrEqual(height);
        for (const line of lines) {
          expect(widthOf(line)).toBeLessThanOrEqual(width);
          expect(line).not.toContain("\u001b");
        }
      }
    }
  });

  test("needs no event to be drawn", () => {
    expect(
      renderLive(
        { progress: noProgress, phase: null, now: 0, advisories: [], notice: null },
        { width: 60, height: 5 },
        plainPaint,
      )[0],
    ).toBe("starting");
  });
});

describe("a run as plain lines", () => {
  test("has one line a step, with its numbers and the time left", () => {
    let state = noProgress;
    const lines = fiveSteps.flatMap((event) => {
      state = foldEvent(state, event);
      return plainLines(event, state);
    });
    expect(lines).toEqual([
      "run toy-20260131-120509: toy on smollm2-135m-instruct, 10 steps, seed 5",
      "held out: base 28.3 %  (120 tasks, 3 cut off, 6.0 s)",
      "step 1/10  reward 0.2500  loss 0.5000  KL 0  8.0 s  1:24 left",
      "step 2/10  reward 0.3000  loss 0.2500  KL 0.0010  8.0 s  1:16 left",
      "step 3/10  reward 0.3500  loss NaN  KL 0.0020  8.0 s  1:08 left",
      "step 4/10  reward 0.4000  loss −0.2500  KL 0.0030  8.0 s  1:00 left",
      "step 5/10  reward 0.4500  loss −0.5000  KL 0.0040  entropy 1.250  grad 0.5000  8.0 s  52.0 s left",
      "held out: base 28.3 % → step 5 45.0 %  (120 tasks, 3 cut off, 6.0 s)",
    ]);
  });
});

describe("progress", () => {
  test("takes back the steps after the checkpoint of a resume", () => {
    const [resumed] = journal([
      [
        90_000,
        { ...started, resumed: { step: 3, checkpoint: "checkpoints/step_3", voidedSteps: 2 } } as JournalEventBody,
      ],
    ]);
    const after = foldEvent(progress, { ...resumed!, attempt: 2 });
    expect(after.points.map((point) => point.step)).toEqual([1, 2, 3]);
    expect(after.evaluations.map((each) => each.step)).toEqual([0]);
    expect(after).toMatchObject({ step: 3, attempt: 2, begun: 0, attemptBegun: 90_000 });
    expect(timeLeft(after)).toBe(7 * 8000 + 2 * 6000);
  });

  test("compares the base with the last evaluation, score by score", () => {
    expect(evaluationTable(progress.evaluations, null)).toEqual([
      "held out (120 tasks)    base  step 5   change",
      "score                 28.3 %  45.0 %  +16.7 %",
      "strict                14.2 %  22.5 %   +8.3 %",
    ]);
  });
});
