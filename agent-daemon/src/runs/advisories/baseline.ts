// What is usual for a number, by median and median absolute deviation: a few wild values do not move them.

/** Of finite numbers; NaN when there is none. */
export function median(values: readonly number[]): number {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export interface Baseline {
  readonly median: number;
  /** A standard deviation's worth: 1.4826 · median |x − median|, but at least a quarter of the median. */
  readonly spread: number;
  readonly count: number;
}

export function baseline(values: readonly number[]): Baseline {
  const finite = values.filter(Number.isFinite);
  const middle = median(finite);
  const deviation = median(finite.map((value) => Math.abs(value - middle)));
  return { median: middle, spread: Math.max(1.4826 * deviation, Math.abs(middle) / 4), count: finite.length };
}
