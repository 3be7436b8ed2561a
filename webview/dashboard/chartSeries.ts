// Which charts the dashboard has, and what lines stand in each: metrics of every run and attempt that is shown. Pure.
import { type MetricDefinition, stepMetricDefinitions, stepTimingDefinitions } from "../../protocol/metrics.ts";
import type { RunSnapshot } from "../../protocol/runView.ts";
import type { ChartSeries } from "../shared/chartData.ts";
import type { ChartMark } from "../shared/chartDrawing.ts";
import type { Buckets, Window } from "./bucketStore.ts";
import { dashboardWords } from "./words.ts";

export interface ChartDefinition {
  readonly key: string;
  readonly title: string;
  readonly description: string;
  readonly unit: string;
  /** Metrics, with what the legend calls them. */
  readonly lines: readonly { readonly name: string; readonly label: string }[];
  /** Scores of held-out tasks belong to it. */
  readonly evaluations: boolean;
}

const definitions: Readonly<Record<string, MetricDefinition>> = { ...stepMetricDefinitions, ...stepTimingDefinitions };

export function metricDescription(name: string): string {
  return definitions[name]?.description ?? "";
}

function unitOf(name: string): string {
  const unit = definitions[name]?.unit ?? "";
  return unit === "fraction" ? "" : unit;
}

/** First alternative of which the run has a metric; the first one where it has none yet. */
const standard = () => {
  const words = dashboardWords();
  return [
    { key: "loss", title: words.loss, alternatives: [["loss"]] },
    { key: "reward", title: words.reward, alternatives: [["reward_mean"]], evaluations: true },
    { key: "kl", title: words.klReference, alternatives: [["kl_k3"], ["kl_old_k3"]] },
    { key: "mismatch", title: words.mismatch, alternatives: [["mismatch_k3"]] },
    { key: "entropy", title: words.entropy, alternatives: [["entropy"]] },
    { key: "gradient", title: words.gradientNorm, alternatives: [["grad_norm", "critic_grad_norm"]] },
    { key: "lengths", title: words.lengths, alternatives: [["tokens_sampled", "tokens_trainable"]] },
    { key: "throughput", title: words.throughput, alternatives: [["tokens_per_second", "flat_tokens_per_second"]] },
    { key: "staleness", title: words.staleness, alternatives: [["staleness_mean", "staleness_max"]] },
  ] as const;
};

/** The charts that are always there, then one for each picked metric. */
export function chartsFor(metricNames: ReadonlySet<string>, picked: readonly string[]): ChartDefinition[] {
  const words = dashboardWords();
  const fixed = standard().map((chart): ChartDefinition => {
    const names: readonly string[] =
      chart.alternatives.find((list) => list.some((name) => metricNames.has(name))) ?? chart.alternatives[0];
    const there = names.filter((name) => metricNames.has(name));
    const lines = (there.length === 0 ? names.slice(0, 1) : there).map((name) => ({
      name,
      label: words.lineLabels[name as keyof typeof words.lineLabels] ?? name,
    }));
    const old = chart.key === "kl" && lines[0]!.name === "kl_old_k3";
    return {
      key: chart.key,
      title: old ? words.klOld : chart.title,
      description: lines.map(({ name }) => `${name}: ${metricDescription(name)}`).join("\n"),
      unit: unitOf(lines[0]!.name),
      lines,
      evaluations: "evaluations" in chart,
    };
  });
  const own = picked.map(
    (name): ChartDefinition => ({
      key: `metric ${name}`,
      title: name,
      description: metricDescription(name),
      unit: unitOf(name),
      lines: [{ name, label: name }],
      evaluations: false,
    }),
  );
  return [...fixed, ...own];
}

export interface ChartRun {
  readonly label: string;
  readonly snapshot: RunSnapshot;
  readonly read: (name: string) => ReadonlyMap<number, Buckets>;
}

/**
 * Every attempt is a series of its own, parted where a later attempt made it void: no line ever runs backwards. Of one run, each
 * metric has its colour; of several, each run has the same colour in all charts.
 */
export function chartSeries(chart: ChartDefinition, runs: readonly ChartRun[], window: Window): ChartSeries[] {
  const words = dashboardWords();
  const series: ChartSeries[] = [];
  const many = runs.length > 1;
  runs.forEach((run, runIndex) => {
    const manyAttempts = run.snapshot.attempts.length > 1;
    const label = (line: string, attempt: number, voided: boolean) =>
      [
        many ? run.label : "",
        chart.lines.length > 1 || chart.evaluations ? line : "",
        manyAttempts ? (voided ? words.attemptVoid(attempt) : words.attemptNumber(attempt)) : "",
      ]
        .filter((part) => part !== "")
        .join(" · ") || line;
    chart.lines.forEach(({ name, label: line }, lineIndex) => {
      for (const [attempt, buckets] of [...run.read(name)].sort(([a], [b]) => a - b)) {
        const voidedAfter = run.snapshot.attempts.find((one) => one.attempt === attempt)?.voidedAfter ?? null;
        for (const part of partedAt(buckets, voidedAfter, window.width)) {
          series.push({
            key: `${runIndex} ${name} ${attempt} ${part.faint}`,
            label: label(line, attempt, part.faint),
            colour: many ? runIndex : lineIndex,
            shape: "line",
            dotted: many && lineIndex > 0,
            width: window.width,
            ...part,
          });
        }
      }
    });
    if (!chart.evaluations) return;
    const valid = run.snapshot.evaluations.filter(({ attempt, step }) => {
      const voidedAfter = run.snapshot.attempts.find((one) => one.attempt === attempt)?.voidedAfter ?? null;
      return voidedAfter === null || step <= voidedAfter;
    });
    const points = [...new Map(valid.map((evaluation) => [evaluation.step, evaluation])).values()].sort(
      (a, b) => a.step - b.step,
    );
    if (points.length === 0) return;
    const scores = points.map(({ scores: { score } }) => score ?? Number.NaN);
    const finite = scores.map((score) => (Number.isFinite(score) ? score : Number.NaN));
    series.push({
      key: `${runIndex} evaluation`,
      label: many ? `${run.label} · ${words.heldOut}` : words.heldOut,
      colour: many ? runIndex : chart.lines.length,
      shape: "points",
      dotted: false,
      faint: false,
      width: 1,
      step: points.map(({ step }) => step),
      min: finite,
      max: finite,
      last: finite,
      bad: scores.map((score) => (Number.isFinite(score) ? 0 : 1)),
    });
  });
  return series;
}

type SeriesPart = Pick<ChartSeries, "step" | "min" | "max" | "last" | "bad" | "faint">;

/** What still counts, and what a later attempt made void. */
function partedAt(buckets: Buckets, voidedAfter: number | null, width: number): SeriesPart[] {
  if (voidedAfter === null) return [{ ...buckets, faint: false }];
  const found = buckets.step.findIndex((step) => step + width - 1 > voidedAfter);
  const at = found < 0 ? buckets.step.length : found;
  const cut = (from: number, to: number, faint: boolean): SeriesPart => ({
    step: buckets.step.slice(from, to),
    min: buckets.min.slice(from, to),
    max: buckets.max.slice(from, to),
    last: buckets.last.slice(from, to),
    bad: buckets.bad.slice(from, to),
    faint,
  });
  return [cut(0, at, false), cut(at, buckets.step.length, true)].filter((part) => part.step.length > 0);
}

/** Where attempts went on from. */
export function resumeMarks(snapshot: RunSnapshot): ChartMark[] {
  const words = dashboardWords();
  return snapshot.attempts
    .filter((attempt) => attempt.attempt > 1)
    .map((attempt) => ({ step: attempt.from, label: words.attemptNumber(attempt.attempt) }));
}
