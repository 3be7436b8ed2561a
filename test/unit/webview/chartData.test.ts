// What a chart draws of buckets: gaps, smoothing, one axis for all lines.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  bucketAt,
  type ChartSeries,
  drawChart,
  extent,
  latestValue,
  smoothed,
} from "../../../webview/shared/chartData.ts";
import { logarithmicGrid } from "../../../webview/shared/chartRange.ts";

function series(values: readonly number[], { first = 1, width = 1, key = "a" } = {}): ChartSeries {
  const finite = values.map((value) => (Number.isFinite(value) ? value : Number.NaN));
  return {
    key,
    label: key,
    colour: 0,
    shape: "line",
    faint: false,
    dotted: false,
    width,
    step: values.map((_, index) => first + index * width),
    min: finite,
    max: finite,
    last: finite,
    bad: values.map((value) => (Number.isFinite(value) ? 0 : 1)),
  };
}
const plain = { logarithmic: false, smoothing: 0 };

describe("a chart's data", () => {
  it("P35: has a gap where a value is not finite, and counts it", () => {
    const chart = drawChart([series([1, Number.NaN, 3, Number.POSITIVE_INFINITY])], plain);
    expect(chart.drawn[0]!.line).toEqual([1, null, 3, null]);
    expect(chart.bad).toEqual([
      { x: 2, count: 1 },
      { x: 4, count: 1 },
    ]);
    expect(chart.badCount).toBe(2);
    expect(extent([series([1, Number.NaN, 3])], 0, 10)).toEqual({ min: 1, max: 3 });
  });

  it("puts lines with different steps on one rising axis and joins over steps that a line lacks", () => {
    const chart = drawChart([series([1, 2], { first: 1 }), series([5, 6], { first: 2, key: "b" })], plain);
    expect(chart.x).toEqual([1, 2, 3]);
    expect(chart.drawn[0]!.line).toEqual([1, 2, undefined]);
    expect([...chart.drawn[1]!.line]).toEqual([undefined, 5, 6]);
  });

  it("draws a band for buckets of several steps, at their middle", () => {
    const chart = drawChart([series([1, 2], { first: 0, width: 4 })], plain);
    expect(chart.x).toEqual([1.5, 5.5]);
    expect(chart.to).toEqual([3, 7]);
    expect(chart.drawn[0]!.band).not.toBeNull();
  });

  it("leaves out of a logarithmic axis what it cannot show, and says how much", () => {
    const chart = drawChart([series([0, 1, -2])], { ...plain, logarithmic: true });
    expect(chart.drawn[0]!.line).toEqual([null, 1, null]);
    expect(chart.notPositive).toBe(2);
  });

  it("smooths within the range of the values and keeps gaps", () => {
    const value = fc.oneof(fc.double({ min: -1e6, max: 1e6, noNaN: true }), fc.constant(null), fc.constant(undefined));
    fc.assert(
      fc.property(fc.array(value), fc.double({ min: 0.01, max: 0.99, noNaN: true }), (values, weight) => {
        const numbers = values.filter((one) => typeof one === "number");
        smoothed(values, weight).forEach((one, index) => {
          if (typeof values[index] !== "number") {
            expect(one ?? null).toBe(values[index] ?? null);
            return;
          }
          expect(one).toBeGreaterThanOrEqual(Math.min(...numbers) - 1e-6);
          expect(one).toBeLessThanOrEqual(Math.max(...numbers) + 1e-6);
        });
      }),
    );
  });

  it("finds the bucket that holds a step, and the newest finite value", () => {
    const one = series([1, 2, Number.NaN], { first: 8, width: 8 });
    expect([7, 8, 15, 16, 31, 32].map((step) => bucketAt(one, step))).toEqual([-1, 0, 0, 1, 2, -1]);
    expect(latestValue(one)).toBe(2);
  });

  it("draws every line of a narrow logarithmic axis, and powers of ten only of a wide one", () => {
    const ticks = (powers: readonly number[]) =>
      powers.flatMap((power) => [1, 2, 5].map((times) => times * 10 ** power));
    expect(logarithmicGrid(ticks([-1, 0]))).toEqual(ticks([-1, 0]));
    expect(logarithmicGrid(ticks([-3, -2, -1, 0])).filter((line) => line !== null)).toEqual([1e-3, 1e-2, 1e-1, 1]);
  });
});
