// What a chart draws, computed from buckets of a metric: columns on one axis, smoothing, gaps, counts of what cannot be drawn.
// Pure; it never changes the buckets that it is given.

/** A metric of one attempt of one run, in buckets of equal width. Every array has the same length; steps rise. */
export interface ChartSeries {
  /** Stays the same over updates. */
  readonly key: string;
  readonly label: string;
  /** Index into Theme.series. */
  readonly colour: number;
  /** `points`: few values that stand for themselves (an evaluation). */
  readonly shape: "line" | "points";
  /** Made void by a later attempt, or not the main run. */
  readonly faint: boolean;
  /** Beside another line of the same colour. */
  readonly dotted: boolean;
  /** Steps a bucket; 1: every value by itself. */
  readonly width: number;
  /** First step of the bucket. */
  readonly step: ArrayLike<number>;
  /** Of the finite values; NaN where there is none. */
  readonly min: ArrayLike<number>;
  readonly max: ArrayLike<number>;
  readonly last: ArrayLike<number>;
  /** Values that are NaN or infinite. */
  readonly bad: ArrayLike<number>;
}

/** undefined: nothing there, the line goes on; null: a gap. */
export type Column = (number | null | undefined)[];

export interface DrawnSeries {
  readonly series: ChartSeries;
  readonly line: Column;
  /** Values themselves, beneath a smoothed line. */
  readonly raw: Column | null;
  readonly band: { readonly min: Column; readonly max: Column } | null;
}

export interface DrawnChart {
  /** Middle of each bucket, in steps; rising. */
  readonly x: number[];
  /** First and last step at each place. */
  readonly from: number[];
  readonly to: number[];
  readonly drawn: readonly DrawnSeries[];
  /** Places with values that are not finite, and how many of all series. */
  readonly bad: readonly { readonly x: number; readonly count: number }[];
  readonly badCount: number;
  /** Values that a logarithmic axis cannot show. */
  readonly notPositive: number;
}

export interface DrawOptions {
  readonly logarithmic: boolean;
  /** 0…0.99: weight of what came before. */
  readonly smoothing: number;
}

const middle = (step: number, width: number) => step + (width - 1) / 2;

/** Puts all series on one axis. */
export function drawChart(series: readonly ChartSeries[], { logarithmic, smoothing }: DrawOptions): DrawnChart {
  const x = positionsOf(series);
  const from: number[] = new Array(x.length);
  const to: number[] = new Array(x.length);
  const badAt = new Map<number, number>();
  let badCount = 0;
  let notPositive = 0;

  const drawn = series.map((one): DrawnSeries => {
    const length = x.length;
    const values: Column = new Array(length);
    const min: Column = new Array(length);
    const max: Column = new Array(length);
    let index = 0;
    for (let at = 0; at < one.step.length; at++) {
      const position = middle(one.step[at]!, one.width);
      while (x[index]! < position) index += 1;
      from[index] ??= one.step[at]!;
      to[index] ??= one.step[at]! + one.width - 1;
      const bad = one.bad[at]!;
      if (bad > 0) {
        badCount += bad;
        badAt.set(position, (badAt.get(position) ?? 0) + bad);
      }
      const shown = (value: number) => Number.isFinite(value) && !(logarithmic && value <= 0);
      const last = one.last[at]!;
      if (logarithmic && Number.isFinite(last) && last <= 0) notPositive += 1;
      values[index] = shown(last) ? last : null;
      min[index] = shown(one.min[at]!) ? one.min[at]! : null;
      max[index] = shown(one.max[at]!) ? one.max[at]! : null;
    }
    const smooth = smoothing > 0 && one.shape === "line";
    return {
      series: one,
      line: smooth ? smoothed(values, smoothing) : values,
      raw: smooth && one.width === 1 ? values : null,
      band: one.width > 1 && one.shape === "line" ? { min, max } : null,
    };
  });
  return {
    x,
    from,
    to,
    drawn,
    bad: [...badAt].sort(([a], [b]) => a - b).map(([position, count]) => ({ x: position, count })),
    badCount,
    notPositive,
  };
}

/** Middles of all buckets, each once, rising. */
function positionsOf(series: readonly ChartSeries[]): number[] {
  const all = new Float64Array(series.reduce((sum, { step }) => sum + step.length, 0));
  let end = 0;
  for (const { step, width } of series) {
    for (let at = 0; at < step.length; at++) all[end++] = middle(step[at]!, width);
  }
  all.sort();
  return Array.from(all.filter((value, index) => index === 0 || value !== all[index - 1]));
}

/** Exponential moving average, corrected for its beginning: Σ wⁱ vₙ₋ᵢ / Σ wⁱ. Gaps stay gaps and carry nothing. */
export function smoothed(values: Column, weight: number): Column {
  let sum = 0;
  let norm = 0;
  const result: Column = new Array(values.length);
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (value === undefined) continue;
    if (value === null) {
      result[at] = null;
      continue;
    }
    sum = weight * sum + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    result[at] = sum / norm;
  }
  return result;
}

/** Index of the value nearest to `wanted`; −1 in an empty list. Values rise. */
export function nearestIndex(values: ArrayLike<number>, wanted: number): number {
  let low = 0;
  let high = values.length - 1;
  if (high < 0) return -1;
  while (low < high) {
    const at = (low + high) >> 1;
    if (values[at]! < wanted) low = at + 1;
    else high = at;
  }
  return low > 0 && wanted - values[low - 1]! <= values[low]! - wanted ? low - 1 : low;
}

/** The bucket of a series that holds the step; −1 where it has none. */
export function bucketAt(series: ChartSeries, step: number): number {
  const index = nearestIndex(series.step, step - (series.width - 1) / 2);
  if (index < 0) return -1;
  const first = series.step[index]!;
  return step >= first && step < first + series.width ? index : -1;
}

/** The newest finite value, null where there is none. */
export function latestValue(series: ChartSeries): number | null {
  for (let at = series.last.length - 1; at >= 0; at--) if (Number.isFinite(series.last[at])) return series.last[at]!;
  return null;
}

/** Least and greatest finite value of all series within the steps. */
export function extent(series: readonly ChartSeries[], from: number, to: number): { min: number; max: number } | null {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const one of series) {
    for (let at = 0; at < one.step.length; at++) {
      if (one.step[at]! + one.width <= from || one.step[at]! > to) continue;
      if (one.min[at]! < min) min = one.min[at]!;
      if (one.max[at]! > max) max = one.max[at]!;
    }
  }
  return min <= max ? { min, max } : null;
}
