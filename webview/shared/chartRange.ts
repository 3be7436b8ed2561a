// Which part of its values a chart shows: places within limits of the steps, and the range of the axis of values.
import { type DrawnChart, nearestIndex } from "./chartData.ts";

/** Steps, both ends included. */
export interface Limits {
  readonly min: number;
  readonly max: number;
}

/** First and last place within the limits, and one more on either side, for lines that leave the plot. */
export function placesIn(chart: DrawnChart, { min, max }: Limits): [number, number] {
  const last = chart.x.length - 1;
  return [Math.max(0, nearestIndex(chart.x, min) - 1), Math.min(last, nearestIndex(chart.x, max) + 1)];
}

/** The range of the lines, widened to what their bands hold. */
export function withBands(chart: DrawnChart, limits: Limits, range: [number | null, number | null]) {
  let [least, greatest] = range;
  const [first, last] = placesIn(chart, limits);
  for (const { band } of chart.drawn) {
    if (band === null) continue;
    for (let at = first; at <= last; at++) {
      const [low, high] = [band.min[at], band.max[at]];
      if (typeof low === "number" && (least === null || low < least)) least = low;
      if (typeof high === "number" && (greatest === null || high > greatest)) greatest = high;
    }
  }
  return [least, greatest] as const;
}

export function linearRange(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null || !Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
  if (min === 0 && max === 0) return [0, 1];
  if (min === max) {
    const room = Math.abs(min) * 0.1;
    return [min - room, max + room];
  }
  const room = (max - min) * 0.06;
  // A quantity that is never negative does not get an axis that is.
  return [min >= 0 && min - room < 0 ? 0 : min - room, max + room];
}

export function logarithmicRange(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null || !(min > 0) || !Number.isFinite(max)) return [0.1, 10];
  return [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max * 1.0001))];
}

/** Lines of a logarithmic axis: all in a narrow range, only powers of ten where more would fill the plot. null: no line. */
export function logarithmicGrid(ticks: readonly number[]): (number | null)[] {
  const powers = ticks.map((tick) => Math.abs(Math.log10(tick) - Math.round(Math.log10(tick))) < 1e-6);
  const narrow = powers.filter(Boolean).length <= 3;
  return ticks.map((tick, index) => (narrow || powers[index] === true ? tick : null));
}
