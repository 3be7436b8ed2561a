// What a chart's lines are to uPlot: columns in one order, strokes, and which places get a point of their own.
import type uPlot from "uplot";
import type { ChartSeries, DrawnChart } from "./chartData.ts";
import type { Theme } from "./theme.ts";

export function alignedData(chart: DrawnChart): uPlot.AlignedData {
  const columns: (number | null | undefined)[][] = [];
  for (const { line, raw } of chart.drawn) {
    if (raw !== null) columns.push(raw);
    columns.push(line);
  }
  return [chart.x, ...columns] as uPlot.AlignedData;
}

/** In the order of alignedData. */
export function seriesOptions(chart: DrawnChart, theme: Theme): uPlot.Series[] {
  const series: uPlot.Series[] = [{}];
  for (const one of chart.drawn) {
    const colour = theme.series[one.series.colour % theme.series.length]!;
    if (one.raw !== null) series.push({ stroke: alpha(colour, 0.35), width: 1, points: { show: false } });
    const points = one.series.shape === "points";
    series.push({
      stroke: colour,
      width: points ? 1 : 1.5,
      // Drawn with its band.
      ...(one.band === null ? {} : { paths: () => null }),
      dash: points ? [2, 3] : dashOf(one.series),
      points: points
        ? { show: true, size: 7, fill: theme.background, stroke: colour, width: 1.5 }
        : { size: 4, fill: colour, stroke: colour, filter: (plot, index) => lonePoints(plot, index) },
    });
  }
  return series;
}

/** Lengths of a line's dashes and gaps, in pixels; none: a whole line. */
export function dashOf(series: ChartSeries): number[] {
  return series.faint ? [5, 4] : series.dotted ? [2, 2] : [];
}

/** Values without a neighbour to draw a line to; all values where there is room for them. */
function lonePoints(plot: uPlot, seriesIndex: number): number[] | null {
  const values = plot.data[seriesIndex]!;
  const [first, last] = [plot.valToIdx(plot.scales["x"]!.min ?? 0), plot.valToIdx(plot.scales["x"]!.max ?? 0)];
  const roomy = plot.bbox.width / (last - first + 1) > 14 * devicePixelRatio;
  const indices: number[] = [];
  const neighbour = (from: number, step: number) => {
    for (let at = from + step; at >= 0 && at < values.length; at += step) {
      if (values[at] !== undefined) return values[at];
    }
    return null;
  };
  for (let at = first; at <= last; at++) {
    const value = values[at];
    if (value === null || value === undefined) continue;
    if (roomy || (neighbour(at, -1) === null && neighbour(at, 1) === null)) indices.push(at);
  }
  return indices;
}

/** The colour of a theme, `rgb(…)`, with an opacity of 0 to 1. */
export function alpha(colour: string, share: number): string {
  return colour.replace("rgb(", "rgba(").replace(")", `, ${share})`);
}
