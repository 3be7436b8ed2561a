// Series in buckets of equal width, for charts: least, greatest and last finite value of each, and how many were not finite. Widths
// are powers of two steps aligned at 0, so that a bucket keeps its borders while the run grows.
import type { BulkArray } from "../../../../protocol/bulkFrame.ts";
import type { DaemonRequest } from "../../../../protocol/daemonMethods.ts";
import type { BulkContent } from "../methods/methodTypes.ts";
import type { AttemptTable, MetricTable } from "./metricTable.ts";
import type { RunFold } from "./runFold.ts";

type Request = Omit<DaemonRequest<"metrics/series">, "folder">;

export interface Buckets {
  readonly step: Float64Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly last: Float64Array;
  readonly bad: Int32Array;
}

/** Least power of two steps with which [from, to] needs at most `buckets` buckets aligned at 0. */
export function bucketWidth(from: number, to: number, buckets: number): number {
  let width = 1;
  while (Math.floor(to / width) - Math.floor(from / width) + 1 > buckets) width *= 2;
  return width;
}

export function seriesContent(table: MetricTable, fold: RunFold, request: Request): BulkContent {
  const attempts = table.attempts().filter(({ steps }) => steps.length > 0);
  const first = Math.min(...attempts.map(({ steps }) => steps.at(0)));
  const last = Math.max(...attempts.map(({ steps }) => steps.at(steps.length - 1)));
  const from = request.from ?? (Number.isFinite(first) ? first : 0);
  const to = request.to ?? (Number.isFinite(last) ? last : 0);
  const width = bucketWidth(from, Math.max(from, to), request.buckets);
  const arrays = new Map<string, BulkArray>();
  const series: { name: string; attempt: number; voidedAfter: number | null }[] = [];
  for (const name of request.names)
    for (const attempt of attempts) {
      const buckets = bucketsOf(attempt, name, { from, to, width, after: request.after });
      if (buckets === null) continue;
      const k = series.length;
      for (const [part, array] of Object.entries(buckets)) arrays.set(`${k}.${part}`, array);
      series.push({ name, attempt: attempt.attempt, voidedAfter: fold.voidedAfter(attempt.attempt) });
    }
  return { arrays, extra: { cursor: fold.cursor, width, series } };
}

interface Range {
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly after: number | null;
}

/** null when the attempt has no such series, or nothing newer than `after`. */
export function bucketsOf(table: AttemptTable, name: string, { from, to, width, after }: Range): Buckets | null {
  const series = table.series.get(name);
  if (series === undefined) return null;
  const { rows, values } = series;
  // Whole buckets at both ends, so that the same bucket always has the same numbers.
  const beginning = Math.floor(from / width) * width;
  const end = (Math.floor(to / width) + 1) * width;
  let row = table.steps.lowerBound(beginning);
  if (after !== null) {
    const newer = table.events.lowerBound(after + 1);
    if (newer >= table.steps.length) return null;
    // A bucket with something newer comes whole.
    row = Math.max(row, table.steps.lowerBound(Math.floor(table.steps.at(newer) / width) * width));
  }
  const start = rows.lowerBound(row);
  const stop = rows.lowerBound(table.steps.lowerBound(end));
  if (start >= stop) return null;
  let count = 0;
  let current = -1;
  for (let index = start; index < stop; index++) {
    const bucket = Math.floor(table.steps.at(rows.at(index)) / width);
    if (bucket !== current) count += 1;
    current = bucket;
  }
  const buckets: Buckets = {
    step: new Float64Array(count),
    min: new Float64Array(count).fill(Number.NaN),
    max: new Float64Array(count).fill(Number.NaN),
    last: new Float64Array(count).fill(Number.NaN),
    bad: new Int32Array(count),
  };
  let at = -1;
  current = -1;
  for (let index = start; index < stop; index++) {
    const step = table.steps.at(rows.at(index));
    const bucket = Math.floor(step / width);
    if (bucket !== current) {
      at += 1;
      current = bucket;
      buckets.step[at] = bucket * width;
    }
    const value = values.at(index);
    if (!Number.isFinite(value)) {
      buckets.bad[at]! += 1;
      continue;
    }
    buckets.last[at] = value;
    if (!(buckets.min[at]! <= value)) buckets.min[at] = value;
    if (!(buckets.max[at]! >= value)) buckets.max[at] = value;
  }
  return buckets;
}
