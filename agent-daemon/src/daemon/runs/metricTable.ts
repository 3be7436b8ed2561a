// The numbers of a run's steps in columns: one table an attempt, one series a name, sparse. It grows by appending and is asked for
// buckets of steps or for whole rows; it never holds an event.
import type { JournalEventOf } from "../../../../protocol/journal.ts";
import { stepMetricDefinitions, stepTimingDefinitions } from "../../../../protocol/metrics.ts";
import { IntColumn, NumberColumn } from "./growingColumns.ts";

interface Series {
  /** Row of each value, ascending. */
  readonly rows: IntColumn;
  readonly values: NumberColumn;
}

export interface AttemptTable {
  readonly attempt: number;
  readonly steps: NumberColumn;
  /** Event number of each row. */
  readonly events: NumberColumn;
  readonly series: Map<string, Series>;
}

const known = [...Object.keys(stepMetricDefinitions), ...Object.keys(stepTimingDefinitions)];
const places = new Map(known.map((name, index) => [name, index]));

export class MetricTable {
  readonly #attempts = new Map<number, AttemptTable>();
  readonly #names = new Set<string>();
  #sorted: string[] | null = null;
  #points = 0;

  add(event: JournalEventOf<"step">): void {
    const table = this.#tableOf(event.attempt);
    const row = table.steps.length;
    table.steps.push(event.step);
    table.events.push(event.n);
    for (const numbers of [event.metrics, event.timings])
      for (const [name, value] of Object.entries(numbers)) {
        let series = table.series.get(name);
        if (series === undefined) {
          series = { rows: new IntColumn(), values: new NumberColumn() };
          table.series.set(name, series);
          if (!this.#names.has(name)) {
            this.#names.add(name);
            this.#sorted = null;
          }
        }
        series.rows.push(row);
        series.values.push(value);
        this.#points += 1;
      }
  }

  /** In the order of protocol/metrics.ts, then others by name. */
  names(): readonly string[] {
    const placeOf = (name: string) => places.get(name) ?? known.length;
    this.#sorted ??= [...this.#names].sort((a, b) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1));
    return this.#sorted;
  }

  get points(): number {
    return this.#points;
  }

  /** In the order of their numbers. */
  attempts(): AttemptTable[] {
    return [...this.#attempts.values()].sort((a, b) => a.attempt - b.attempt);
  }

  /** Values of one row by name. */
  row(table: AttemptTable, row: number): Record<string, number> {
    const values: Record<string, number> = {};
    for (const name of this.names()) {
      const series = table.series.get(name);
      if (series === undefined) continue;
      const at = series.rows.lowerBound(row);
      if (at < series.rows.length && series.rows.at(at) === row) values[name] = series.values.at(at);
    }
    return values;
  }

  #tableOf(attempt: number): AttemptTable {
    let table = this.#attempts.get(attempt);
    if (table === undefined) {
      table = { attempt, steps: new NumberColumn(), events: new NumberColumn(), series: new Map() };
      this.#attempts.set(attempt, table);
    }
    return table;
  }
}
