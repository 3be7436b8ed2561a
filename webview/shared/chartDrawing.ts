// What a chart draws itself on uPlot's canvas: bands of least and greatest values with their lines, where attempts resumed, and
// where values are that cannot be drawn.
import type uPlot from "uplot";
import type { Column, DrawnChart } from "./chartData.ts";
import { alpha, dashOf } from "./chartLines.ts";
import { type Limits, placesIn } from "./chartRange.ts";
import type { Theme } from "./theme.ts";
import { sharedWords } from "./words.ts";

export interface ChartMark {
  readonly step: number;
  readonly label: string;
}

interface Drawn {
  readonly chart: DrawnChart;
  readonly marks: readonly ChartMark[];
  readonly theme: Theme;
}

/** What the numbers below the plot count, to the left of them. */
export function drawAxisName(plot: uPlot, theme: Theme): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  ctx.save();
  ctx.fillStyle = theme.muted;
  ctx.font = theme.font.replace(/^(\d+)px/, (_, size: string) => `${Number(size) * scale}px`);
  ctx.textAlign = "right";
  ctx.textBaseline = "top";
  ctx.fillText(sharedWords().stepAxis, bbox.left - 10 * scale, bbox.top + bbox.height + 4 * scale);
  ctx.restore();
}

/** From least to greatest value of each bucket, as one area for each run of buckets without a gap. */
export function drawBands(plot: uPlot, { chart, theme }: Drawn, limits: Limits): void {
  const { ctx, bbox } = plot;
  const [first, last] = placesIn(chart, limits);
  const weak = theme.background.startsWith("rgb(0, 0, 0") ? 0.35 : 0.22;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const { band, line, series } of chart.drawn) {
    if (band === null) continue;
    const area = new Path2D();
    let begun = -1;
    const close = (end: number) => {
      for (let at = end; at >= begun; at--) {
        const low = band.min[at];
        if (typeof low === "number") area.lineTo(plot.valToPos(chart.x[at]!, "x", true), plot.valToPos(low, "y", true));
      }
      area.closePath();
      begun = -1;
    };
    for (let at = first; at <= last; at++) {
      const high = band.max[at];
      if (high === undefined) continue;
      if (high === null) {
        if (begun >= 0) close(at - 1);
        continue;
      }
      const [x, y] = [plot.valToPos(chart.x[at]!, "x", true), plot.valToPos(high, "y", true)];
      if (begun < 0) {
        begun = at;
        area.moveTo(x, y);
      } else area.lineTo(x, y);
    }
    if (begun >= 0) close(last);
    ctx.fillStyle = alpha(theme.series[series.colour % theme.series.length]!, series.faint ? weak / 2 : weak);
    ctx.fill(area);
    strokeDense(plot, line, chart.x, [first, last], {
      colour: theme.series[series.colour % theme.series.length]!,
      dash: dashOf(series),
    });
  }
  ctx.restore();
}

/** A line through buckets: thin and with plain corners, which is sooner drawn where it is dense. */
function strokeDense(
  plot: uPlot,
  line: Column,
  x: readonly number[],
  [first, last]: readonly [number, number],
  { colour, dash }: { readonly colour: string; readonly dash: readonly number[] },
): void {
  const { ctx } = plot;
  const path = new Path2D();
  let begun = false;
  for (let at = first; at <= last; at++) {
    const value = line[at];
    if (value === undefined) continue;
    if (value === null) {
      begun = false;
      continue;
    }
    const [left, top] = [plot.valToPos(x[at]!, "x", true), plot.valToPos(value, "y", true)];
    if (begun) path.lineTo(left, top);
    else path.moveTo(left, top);
    begun = true;
  }
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.lineJoin = "bevel";
  ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
  ctx.stroke(path);
}

/** Where attempts resumed, and where values are that cannot be drawn. */
export function drawMarks(plot: uPlot, { chart, marks, theme }: Drawn): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  const { min, max } = plot.scales["x"]!;
  const inside = (x: number) => x >= (min ?? 0) && x <= (max ?? 0);
  ctx.save();
  ctx.strokeStyle = theme.muted;
  ctx.fillStyle = theme.muted;
  ctx.lineWidth = scale;
  ctx.font = theme.font.replace(/^(\d+)px/, (_, size: string) => `${Number(size) * scale * 0.95}px`);
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  for (const mark of marks) {
    if (!inside(mark.step)) continue;
    const x = Math.round(plot.valToPos(mark.step, "x", true)) + 0.5;
    ctx.setLineDash([2 * scale, 3 * scale]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const width = ctx.measureText(mark.label).width;
    const fits = x + 4 * scale + width <= bbox.left + bbox.width;
    ctx.fillText(mark.label, fits ? x + 4 * scale : x - 4 * scale - width, bbox.top + scale);
  }
  ctx.setLineDash([]);
  ctx.fillStyle = theme.error;
  const size = 4 * scale;
  const base = bbox.top + bbox.height;
  for (const { x: at } of chart.bad) {
    if (!inside(at)) continue;
    const x = plot.valToPos(at, "x", true);
    ctx.beginPath();
    ctx.moveTo(x - size, base);
    ctx.lineTo(x + size, base);
    ctx.lineTo(x, base - 1.8 * size);
    ctx.closePath();
    ctx.fill();
  }
  ctx.restore();
}
