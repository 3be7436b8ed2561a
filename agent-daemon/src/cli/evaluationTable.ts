// How well the held-out tasks went, from the base weights to the last ones: one line while a run goes on, a table at its end.
import type { EvaluationSummary } from "../../../protocol/journal.ts";
import { formatNumber, formatPercent } from "./terminal/numbers.ts";
import { renderTable } from "./terminal/table.ts";

export interface EvaluationPoint {
  readonly step: number;
  readonly summary: EvaluationSummary;
}

/** Scores that all lie between 0 and 1 read as percentages, others as numbers: a row has one unit. */
function scoreFormat(values: readonly number[]): (value: number) => string {
  const format = values.every((value) => Number.isNaN(value) || isFraction(value)) ? formatPercent : formatNumber;
  return (value) => (Number.isNaN(value) ? "–" : format(value));
}

const isFraction = (value: number) => value >= 0 && value <= 1;

/** In the unit of the scores it lies between; none where one of them is missing. */
function formatChange(before: number, after: number): string {
  const gain = after - before;
  if (Number.isNaN(gain)) return "–";
  const size = Math.abs(gain);
  return `${gain >= 0 ? "+" : "−"}${isFraction(before) && isFraction(after) ? formatPercent(size) : formatNumber(size)}`;
}

function nameOf(step: number): string {
  return step === 0 ? "base" : `step ${step}`;
}

/** `held out: base 28.3 % → step 10 45.0 %` */
export function evaluationLine(evaluations: readonly EvaluationPoint[]): string {
  const shown =
    evaluations.length > 4
      ? [evaluations[0], ...evaluations.slice(-3)].filter((each) => each !== undefined)
      : evaluations;
  const format = scoreFormat(evaluations.map(scoreOf));
  const points = shown.map((each) => `${nameOf(each.step)} ${format(scoreOf(each))}`);
  return `held out: ${points.join(" → ")}`;
}

function scoreOf({ summary }: EvaluationPoint): number {
  return summary.scores["score"] ?? Number.NaN;
}

/** One row a score, columns base, final and the difference; nothing before two evaluations. */
export function evaluationTable(evaluations: readonly EvaluationPoint[], width: number | null): string[] {
  const base = evaluations[0];
  const final = evaluations.at(-1);
  if (base === undefined || final === undefined || base === final) {
    return base === undefined ? [] : [evaluationLine(evaluations)];
  }
  const names = [...new Set([...Object.keys(base.summary.scores), ...Object.keys(final.summary.scores)])];
  const rows = names.map((name) => {
    const before = base.summary.scores[name] ?? Number.NaN;
    const after = final.summary.scores[name] ?? Number.NaN;
    const format = scoreFormat([before, after]);
    return [name, format(before), format(after), formatChange(before, after)];
  });
  const columns = [
    { title: `held out (${final.summary.tasks} tasks)` },
    { title: nameOf(base.step), align: "right" as const },
    { title: nameOf(final.step), align: "right" as const },
    { title: "change", align: "right" as const },
  ];
  return renderTable(columns, rows, width);
}
