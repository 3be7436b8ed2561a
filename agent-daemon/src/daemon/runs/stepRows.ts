// Exact values of steps, ordered by step and then attempt.
import type { DaemonResult } from "../../../../protocol/daemonMethods.ts";
import type { MetricTable } from "./metricTable.ts";
import type { RunFold } from "./runFold.ts";

/** Rows from a step on; a limit never parts the attempts at one step. */
export function stepRows(table: MetricTable, fold: RunFold, from: number, limit: number): DaemonResult<"metrics/rows"> {
  const places = table.attempts().flatMap((attempt) => {
    const first = attempt.steps.lowerBound(from);
    const count = Math.min(limit + 1, attempt.steps.length - first);
    return Array.from({ length: Math.max(0, count) }, (_, index) => ({
      attempt,
      row: first + index,
      step: attempt.steps.at(first + index),
    }));
  });
  places.sort((a, b) => a.step - b.step || a.attempt.attempt - b.attempt.attempt);
  let end = Math.min(limit, places.length);
  while (end > 0 && end < places.length && places[end]!.step === places[end - 1]!.step) end += 1;
  return {
    rows: places.slice(0, end).map(({ attempt, row, step }) => ({
      attempt: attempt.attempt,
      step,
      void: step > (fold.voidedAfter(attempt.attempt) ?? step),
      metrics: Object.fromEntries(
        Object.entries(table.row(attempt, row)).map(([name, value]) => [
          name,
          Number.isFinite(value) ? value : String(value),
        ]),
      ),
    })),
    more: end < places.length,
  };
}
