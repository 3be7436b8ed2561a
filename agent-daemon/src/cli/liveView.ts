// The picture of a run in progress: title, progress bar with time left, curves of reward, loss and KL, the evaluations so far,
// what was noticed.
// Pure: a state and a size in, lines out, none wider than the size.
import type { Advisory } from "../../../protocol/advisory.ts";
import { advisoryPicture } from "./advisoryLines.ts";
import { evaluationLine } from "./evaluationTable.ts";
import { curveOf, type RunProgress, timeLeft } from "./runProgress.ts";
import { type Curve, curves, shownValue } from "./shownMetrics.ts";
import { type Chart, drawChart } from "./terminal/chart.ts";
import type { Paint } from "./terminal/colors.ts";
import { formatDuration, formatNumber } from "./terminal/numbers.ts";
import { progressBar } from "./terminal/progressBar.ts";
import { padEnd, padStart, truncate, visible, widthOf } from "./terminal/text.ts";

/** How far the current phase is; null where it does not say. */
export interface PhaseProgress {
  readonly done: number;
  readonly total: number;
  /** `rollouts`, `tokens`. */
  readonly unit: string;
}

export interface LiveState {
  readonly progress: RunProgress;
  readonly phase: PhaseProgress | null;
  readonly now: number;
  /** In force, worst first. */
  readonly advisories: readonly Advisory[];
  /** What stop or pause was asked for and is not yet done. */
  readonly notice: string | null;
}

export interface ViewSize {
  readonly width: number;
  readonly height: number;
}

const labelWidth = 9;
const valueWidth = 11;
const tallest = 5;
/** From this height on charts are parted by an empty line; lower ones need the line themselves. */
const parted = 4;
/** Below it the charts have no numbers before them. */
const narrowest = 40;

export function renderLive(state: LiveState, size: ViewSize, paint: Paint): string[] {
  const { progress } = state;
  const head = [titleLine(progress, size.width, paint), progressLine(state, size.width, paint)];
  const tail = [
    ...evaluationLines(progress, size.width, paint),
    ...advisoryPicture(state.advisories, size, paint),
    ...warningLines(progress, size.width, paint),
    ...(state.notice === null ? [] : [paint("yellow", truncate(visible(state.notice), size.width))]),
  ];
  const room = size.height - head.length - tail.length;
  const withGaps = Math.floor((room - curves.length + 1) / curves.length);
  const height = Math.max(0, Math.min(tallest, withGaps >= parted ? withGaps : Math.floor(room / curves.length)));
  const charts =
    height === 0
      ? []
      : curves.flatMap((curve, index) => [
          ...(index > 0 && withGaps >= parted ? [""] : []),
          ...chartLines(curve, progress, size.width, height, paint),
        ]);
  return [...head, ...charts, ...tail].slice(0, size.height);
}

function titleLine(progress: RunProgress, width: number, paint: Paint): string {
  const title = visible(progress.run || "starting");
  const model = progress.model === "" ? "" : ` ${visible(progress.model)}`;
  const rest = truncate(model, Math.max(0, width - widthOf(title)));
  return `${paint("bold", truncate(title, width))}${paint("dim", rest)}`;
}

function progressLine(state: LiveState, width: number, paint: Paint): string {
  const { progress, phase } = state;
  const left = progress.ended === null ? timeLeft(progress) : null;
  const skipped = progress.points.filter((point) => point.skipped !== null).length;
  const parts = [
    `step ${progress.step}/${progress.steps}${skipped === 0 ? "" : `, ${skipped} skipped`}`,
    progress.attemptBegun === null ? "" : `${formatDuration(state.now - progress.attemptBegun)} elapsed`,
    left === null ? "" : `${formatDuration(left - elapsedInStep(state))} left`,
    phase === null ? (progress.phase ?? "") : `${progress.phase} ${phase.done}/${phase.total} ${phase.unit}`,
  ].filter((part) => part !== "");
  // The bar keeps its width whatever stands beside it.
  const barWidth = width < 60 ? 0 : Math.max(8, Math.min(40, width - 72));
  const text = truncate(parts.join(" · "), barWidth === 0 ? width : width - barWidth - 1);
  if (barWidth === 0) return text;
  const fraction = progress.steps === 0 ? 0 : (progress.step + partOfStep(state)) / progress.steps;
  return `${paint("green", progressBar(fraction, barWidth))} ${text}`;
}

/** How much of the current step is done, sampling and training counted as a half each; never less than a moment ago. */
function partOfStep({ progress, phase }: LiveState): number {
  const inPhase = phase === null || phase.total === 0 ? 0 : Math.min(1, phase.done / phase.total);
  if (progress.phase === "sampling") return inPhase / 2;
  return progress.phase === "comparing" || progress.phase === "training" ? 0.5 : 0;
}

/** Milliseconds of the current step that have passed, but never more than a step takes. */
function elapsedInStep({ progress, now }: LiveState): number {
  const usual = progress.points.at(-1)?.milliseconds ?? 0;
  return Math.min(usual, Math.max(0, now - (progress.mark ?? now)));
}

function chartLines(curve: Curve, progress: RunProgress, width: number, height: number, paint: Paint): string[] {
  const values = curveOf(progress, curve);
  const valueRoom = width < narrowest ? 0 : valueWidth;
  const chartWidth = width - labelWidth - valueRoom;
  const chart = drawChart(values, { width: chartWidth, height }, progress.steps);
  const latest = latestText(progress, curve);
  return chart.lines.map((line, row) => {
    const label = row === 0 ? curve.title : row === 1 ? latest : "";
    const edge = height === 1 ? latest : edgeText(chart, row, height);
    const left =
      row === 0 ? paint("bold", padEnd(truncate(label, labelWidth - 1), labelWidth)) : padEnd(label, labelWidth);
    const axis = valueRoom === 0 ? "" : `${paint("dim", padStart(truncate(edge, valueRoom - 1), valueRoom - 1))} `;
    // Lines end with their curve, so that few of them wrap when the terminal becomes narrower.
    return `${left}${axis}${paint(curve.color, line.replace(/\u2800+$/, ""))}`;
  });
}

/** A step of which nothing was trained has no KL: that is a dash, not a NaN. */
function latestText(progress: RunProgress, curve: Curve): string {
  const last = progress.points.at(-1);
  if (last === undefined) return "";
  const value = shownValue(last.metrics, curve.metrics);
  return value === undefined ? "–" : formatNumber(value);
}

/** Largest value before the top line, smallest before the bottom one, and how many values are missing. */
function edgeText({ range, gaps }: Chart, row: number, height: number): string {
  if (row === 1 && gaps > 0) return gaps === 1 ? "1 gap" : `${gaps} gaps`;
  if (range === null) return "";
  if (row === 0) return formatNumber(range.max);
  return row === height - 1 ? formatNumber(range.min) : "";
}

function evaluationLines(progress: RunProgress, width: number, paint: Paint): string[] {
  if (progress.evaluations.length === 0) return [];
  return [paint("cyan", truncate(evaluationLine(progress.evaluations), width))];
}

function warningLines(progress: RunProgress, width: number, paint: Paint): string[] {
  const last = progress.warnings.at(-1);
  if (last === undefined) return [];
  const count = progress.warnings.length === 1 ? "" : ` (${progress.warnings.length} warnings)`;
  return [paint("yellow", truncate(visible(`! ${last.message}${count}`), width))];
}
