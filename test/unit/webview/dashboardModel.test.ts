// The dashboard's pure parts: folding events, time left, lines of charts, numbers in words, colours to be told apart.
import { describe, expect, it } from "vitest";
import type { JournalEvent } from "../../../protocol/journal.ts";
import type { RunSnapshot, RunSummary } from "../../../protocol/runView.ts";
import { chartSeries, chartsFor } from "../../../webview/dashboard/chartSeries.ts";
import { runLabels } from "../../../webview/dashboard/runLabels.ts";
import { modelOf, stepBounds, timeLeft, withEvents } from "../../../webview/dashboard/runModel.ts";
import { readView } from "../../../webview/dashboard/view.ts";
import { barSteps } from "../../../webview/dashboard/wasteSteps.ts";
import { contrast, parseColour, seriesColours } from "../../../webview/shared/colour.ts";
import { durationText, languageOf, numberText, sizeText } from "../../../webview/shared/text.ts";

const summary: RunSummary = {
  folder: "/runs/a",
  run: "a",
  recipe: "math",
  recipeFolder: null,
  model: "m",
  status: "running",
  phase: "sampling",
  attempt: 1,
  step: 15,
  steps: 20,
  reward: null,
  loss: null,
  evaluation: { base: null, latest: null },
  begun: 0,
  ended: null,
  pid: null,
  error: null,
  crash: null,
  advisories: [],
};
const snapshot: RunSnapshot = {
  summary,
  cursor: 30,
  attempts: [{ attempt: 1, from: 0, to: 15, begun: 0, voidedAfter: null }],
  metricNames: ["loss"],
  evaluations: [],
  records: null,
  warnings: [],
  checkpoints: [],
  disk: null,
};
const stepEvent = (n: number, step: number, attempt: number): JournalEvent => ({
  n,
  at: step * 1000,
  attempt,
  type: "step",
  step,
  weightVersion: step,
  skipped: null,
  metrics: { loss: 1, "own metric": 2 },
  timings: {},
});
const resumed: JournalEvent = {
  n: 31,
  at: 0,
  attempt: 2,
  type: "started",
  run: "a",
  recipe: "math",
  model: "m",
  steps: 20,
  seed: 1,
  evaluations: [],
  resumed: { step: 10, checkpoint: "step-10", voidedSteps: 5 },
};

describe("a run's model", () => {
  const model = withEvents(modelOf(snapshot), [resumed, stepEvent(32, 11, 2), stepEvent(33, 12, 2)], summary);

  it("P36: marks as void what a resumed attempt replaces, and learns new metrics", () => {
    expect(model.attempts).toEqual([
      { attempt: 1, from: 0, to: 15, begun: 0, voidedAfter: 10 },
      { attempt: 2, from: 10, to: 12, begun: 0, voidedAfter: null },
    ]);
    expect(model.metricNames).toEqual(["loss", "own metric"]);
    expect(stepBounds([model])).toEqual({ from: 1, to: 15 });
  });

  it("takes no event twice", () => {
    expect(withEvents(model, [resumed, stepEvent(32, 11, 2)], summary)).toEqual(model);
  });

  it("tells the time that is left at the pace of the newest steps", () => {
    const paced = { ...model, summary: { ...summary, step: 18 }, stepTimes: [1000, 3000, 5000] };
    expect(timeLeft(paced, 5000)).toBe(4000);
    expect(timeLeft({ ...paced, summary: { ...summary, status: "completed" } }, 5000)).toBeNull();
  });

  it("P36: parts an attempt where it became void, so that no line runs backwards", () => {
    const steps = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
    const buckets = (step: number[]) => ({ step, min: step, max: step, last: step, bad: step.map(() => 0) });
    const chart = chartsFor(new Set(["loss"]), [])[0]!;
    const read = () =>
      new Map([
        [1, buckets(steps(1, 15))],
        [2, buckets(steps(11, 20))],
      ]);
    const lines = chartSeries(chart, [{ label: "a", snapshot: model, read }], {
      width: 1,
      firstChunk: 0,
      lastChunk: 0,
    });
    expect(lines.map((line) => [line.label, line.faint, line.step[0], Array.from(line.step).at(-1)])).toEqual([
      ["attempt 1", false, 1, 10],
      ["attempt 1, void", true, 11, 15],
      ["attempt 2", false, 11, 20],
    ]);
    for (const line of lines) expect(Array.from(line.step)).toEqual(Array.from(line.step).sort((a, b) => a - b));
  });

  it("reads what was kept value by value, and falls back where one is broken", () => {
    expect(readView({ smoothing: "much", logarithmic: true, tab: "nowhere" })).toEqual({
      tab: "charts",
      range: null,
      smoothing: 0,
      logarithmic: true,
      picked: [],
      step: null,
    });
  });

  it("calls runs by what tells them apart", () => {
    const label = (...folders: string[]) => [...runLabels(folders).values()];
    expect(label("/runs/math-2026-11-30")).toEqual(["math-2026-11-30"]);
    expect(label("/runs/math-2026-11-30", "/runs/math-2026-11-29")).toEqual(["30", "29"]);
    expect(label("/a/run", "/b/run")).toEqual(["a/run", "b/run"]);
    expect(label("/runs/a", "/runs/b")).toEqual(["a", "b"]);
    expect(label("/runs/sum-20261201-052013", "/runs/sum-20261201-061500")).toEqual(["05:20:13", "06:15:00"]);
    expect(label("/runs/sum-20261201-052013", "/runs/dice-20261201-061500")).toEqual([
      "sum-2026-12-01 05:20:13",
      "dice-2026-12-01 06:15:00",
    ]);
  });

  it("draws at most so many bars, the last step among them", () => {
    expect(barSteps(1, 5, 40)).toEqual([1, 2, 3, 4, 5]);
    const many = barSteps(1, 1000, 40);
    expect(many.length).toBeLessThanOrEqual(40);
    expect(many.at(-1)).toBe(1000);
  });
});

describe("texts and colours", () => {
  it("writes numbers as people read them", () => {
    expect(
      [0, 0.0123456, -2, 1234, 3.1e-11, 12345678, Number.NaN, Number.NEGATIVE_INFINITY, null].map((n) => numberText(n)),
    ).toEqual(["0", "0.01235", "−2", "1,234", "3.1e−11", "1.23e7", "NaN", "−∞", "–"]);
    expect([12, 850, 12_400, 185_000, 7_800_000, 274_000_000].map(durationText)).toEqual([
      "12 ms",
      "850 ms",
      "12 s",
      "3 min 5 s",
      "2 h 10 min",
      "3 d 4 h",
    ]);
    expect([12, 1536, 1.6e9].map(sizeText)).toEqual(["12 B", "1.50 KB", "1.49 GB"]);
    expect(["zh-CN", "zh", "en-GB", "de"].map(languageOf)).toEqual(["zh-cn", "zh-cn", "en", "en"]);
  });

  it("picks twenty colours that can be told from any ground", () => {
    const base = ["#1a85ff", "#d18616", "#388a34", "#652d90", "#e51400", "#bf8803"].map((text) => parseColour(text)!);
    for (const ground of ["#ffffff", "#1f1f1f", "#000000", "#808080"].map((text) => parseColour(text)!)) {
      for (const colour of seriesColours(base, ground, 20, 3))
        expect(contrast(colour, ground)).toBeGreaterThanOrEqual(3);
    }
  });
});
