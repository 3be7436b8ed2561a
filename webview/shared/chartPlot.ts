// The canvas of a chart: uPlot set up for metrics over steps, with bands, gaps, marks, zoom and pan. It holds no state of the page
// but what is drawn, and draws nothing while it is out of sight.
import uPlot from "uplot";
import { type Column, type DrawnChart, nearestIndex } from "./chartData.ts";
import { drawInTurn, forget } from "./drawTurns.ts";
import { numberText } from "./text.ts";
import type { Theme } from "./theme.ts";

export interface StepRange {
  readonly from: number;
  readonly to: number;
}

export interface ChartMark {
  readonly step: number;
  readonly label: string;
}

export interface PlotModel {
  readonly chart: DrawnChart;
  readonly marks: readonly ChartMark[];
  readonly logarithmic: boolean;
  readonly theme: Theme;
}

export interface PlotEvents {
  readonly onRange: (range: StepRange) => void;
  /** Index into DrawnChart.x; null: the pointer has left. */
  readonly onPointer: (index: number | null) => void;
  readonly onClick: (index: number) => void;
}

/** Farther than this from where it went down, a pointer has dragged. */
const clickDistance = 4;

export class ChartPlot {
  readonly #host: HTMLElement;
  readonly #events: PlotEvents;
  #plot: uPlot | null = null;
  #model: PlotModel | null = null;
  #structure = "";
  #range: StepRange | null = null;
  #visible = true;
  #stale = false;
  #panning = false;
  #size = { width: 0, height: 0 };
  readonly #resizes: ResizeObserver;
  readonly #sight: IntersectionObserver;

  constructor(host: HTMLElement, events: PlotEvents) {
    this.#host = host;
    this.#events = events;
    this.#size = { width: host.clientWidth, height: host.clientHeight };
    this.#resizes = new ResizeObserver(() => {
      const size = { width: host.clientWidth, height: host.clientHeight };
      if (size.width === this.#size.width && size.height === this.#size.height) return;
      this.#size = size;
      if (size.width > 0 && size.height > 0) this.#plot?.setSize(size);
    });
    this.#resizes.observe(host);
    this.#sight = new IntersectionObserver(
      (entries) => {
        this.#visible = entries.at(-1)!.isIntersecting;
        if (this.#visible && this.#stale) this.#draw();
      },
      { rootMargin: "100px" },
    );
    this.#sight.observe(host);
  }

  update(model: PlotModel): void {
    this.#model = model;
    this.#draw();
  }

  /** null: everything. */
  setRange(range: StepRange | null): void {
    this.#range = range;
    if (!this.#visible || this.#plot === null) {
      this.#stale = true;
      return;
    }
    drawInTurn(this, this.#panning);
  }

  /** Draws the range that was set last, at once. */
  drawNow(): void {
    const plot = this.#plot;
    plot?.batch(() => plot.setScale("x", this.#limits()));
  }

  /** Shows the crosshair at a place, or hides it. */
  showAt(x: number | null): void {
    const plot = this.#plot;
    if (plot === null || !this.#visible) return;
    const left = x === null ? -10 : plot.valToPos(x, "x");
    if (x === null && (plot.cursor.left ?? -10) < 0) return;
    plot.setCursor({ left, top: x === null ? -10 : plot.height / 4 }, false);
  }

  dispose(): void {
    this.#resizes.disconnect();
    this.#sight.disconnect();
    forget(this);
    this.#plot?.destroy();
    this.#plot = null;
  }

  #limits(): { min: number; max: number } {
    const x = this.#model?.chart.x ?? [];
    if (this.#range !== null) return { min: this.#range.from, max: this.#range.to };
    const [min, max] = [x[0] ?? 0, x.at(-1) ?? 1];
    return min === max ? { min: min - 0.5, max: max + 0.5 } : { min, max };
  }

  #draw(): void {
    const model = this.#model;
    if (model === null) return;
    if (!this.#visible) {
      this.#stale = true;
      return;
    }
    this.#stale = false;
    const structure = JSON.stringify([
      model.chart.drawn.map(({ series, raw, band }) => [
        series.colour,
        series.shape,
        series.faint,
        raw !== null,
        band !== null,
      ]),
      model.logarithmic,
      model.theme,
    ]);
    const data = alignedData(model.chart);
    if (this.#plot === null || structure !== this.#structure) {
      this.#plot?.destroy();
      this.#structure = structure;
      this.#plot = new uPlot(this.#options(model), data, this.#host);
      this.#plot.over.setAttribute("aria-hidden", "true");
    } else {
      const plot = this.#plot;
      plot.batch(() => {
        plot.setData(data, false);
        plot.setScale("x", this.#limits());
      });
    }
  }

  #options(model: PlotModel): uPlot.Options {
    const { theme, logarithmic } = model;
    const axis: uPlot.Axis = {
      stroke: theme.muted,
      font: theme.font,
      grid: { stroke: theme.grid, width: 1 },
      ticks: { show: false },
      border: { show: false },
      gap: 4,
    };
    return {
      ...this.#size,
      series: seriesOptions(model.chart, theme),
      padding: [8, 14, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, range: () => rangeOf(this.#limits()) },
        y: {
          distr: logarithmic ? 3 : 1,
          range: (_, min, max) => {
            const { chart } = this.#model ?? model;
            const widened = withBands(chart, this.#limits(), [min, max]);
            return logarithmic ? logarithmicRange(...widened) : linearRange(...widened);
          },
        },
      },
      axes: [
        {
          ...axis,
          size: 22,
          space: 48,
          incrs: [1, 2, 5].flatMap((m) => [0, 1, 2, 3, 4, 5, 6, 7].map((p) => m * 10 ** p)).sort((a, b) => a - b),
          values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? numberText(tick) : "")),
        },
        {
          ...axis,
          size: (_, values) => Math.max(46, ...(values ?? []).map((value) => 10 + (value ?? "").length * 6.5)),
          space: 28,
          values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : numberText(tick, 3))),
        },
      ],
      cursor: {
        y: false,
        points: { size: 7, width: 1.5, fill: theme.background },
        drag: { x: true, y: false, setScale: false, dist: clickDistance },
        bind: {
          dblclick: () => () => null,
        },
      },
      hooks: {
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < clickDistance) return;
            const range = { from: plot.posToVal(left, "x"), to: plot.posToVal(left + width, "x") };
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            this.#events.onRange(range);
          },
        ],
        drawAxes: [(plot) => drawBands(plot, this.#model ?? model, this.#limits())],
        draw: [(plot) => drawMarks(plot, this.#model ?? model)],
        ready: [(plot) => this.#listen(plot)],
      },
    };
  }

  #listen(plot: uPlot): void {
    // Before the plot itself hears of it, which would begin to select.
    plot.root.addEventListener(
      "mousedown",
      (event) => {
        if (event.button !== 1 && !(event.button === 0 && event.shiftKey)) return;
        event.preventDefault();
        event.stopPropagation();
        this.#pan(plot, event);
      },
      { capture: true },
    );
    // Not uPlot's own hook, which also tells of cursors that a redraw has moved.
    plot.over.addEventListener("mousemove", (event) => {
      if (!this.#panning) this.#events.onPointer(plot.posToIdx(event.clientX - plot.over.getBoundingClientRect().left));
    });
    plot.over.addEventListener("mouseleave", () => {
      if (!this.#panning) this.#events.onPointer(null);
    });
    let down: { x: number; y: number } | null = null;
    plot.over.addEventListener("mousedown", (event) => {
      down = event.button === 0 && !event.shiftKey ? { x: event.clientX, y: event.clientY } : null;
    });
    plot.over.addEventListener("mouseup", (event) => {
      if (down === null || Math.hypot(event.clientX - down.x, event.clientY - down.y) >= clickDistance) return;
      down = null;
      const index = plot.posToIdx(event.clientX - plot.over.getBoundingClientRect().left);
      if (this.#model !== null && index < this.#model.chart.x.length) this.#events.onClick(index);
    });
    // A plain wheel scrolls the page; with Ctrl it zooms, sideways or with Shift it pans.
    plot.over.addEventListener(
      "wheel",
      (event) => {
        const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
        if (!event.ctrlKey && !sideways) return;
        event.preventDefault();
        const { min, max } = this.#limits();
        const delta = event.deltaX === 0 ? event.deltaY : event.deltaX;
        if (!event.ctrlKey) {
          const shift = ((max - min) * delta) / Math.max(1, plot.over.clientWidth);
          this.#events.onRange({ from: min + shift, to: max + shift });
          return;
        }
        const centre = plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x");
        const factor = Math.exp(event.deltaY / 300);
        this.#events.onRange({ from: centre - (centre - min) * factor, to: centre + (max - centre) * factor });
      },
      { passive: false },
    );
  }

  #pan(plot: uPlot, start: MouseEvent): void {
    this.#host.focus();
    this.#events.onPointer(null);
    this.#panning = true;
    const { min, max } = this.#limits();
    const stepsPerPixel = (max - min) / Math.max(1, plot.over.clientWidth);
    const move = (event: MouseEvent) => {
      const shift = (start.clientX - event.clientX) * stepsPerPixel;
      this.#events.onRange({ from: min + shift, to: max + shift });
    };
    const end = () => {
      this.#panning = false;
      document.removeEventListener("mousemove", move);
      document.removeEventListener("mouseup", end);
    };
    document.addEventListener("mousemove", move);
    document.addEventListener("mouseup", end);
  }
}

function alignedData(chart: DrawnChart): uPlot.AlignedData {
  const columns: (number | null | undefined)[][] = [];
  for (const { line, raw } of chart.drawn) {
    if (raw !== null) columns.push(raw);
    columns.push(line);
  }
  return [chart.x, ...columns] as uPlot.AlignedData;
}

/** In the order of alignedData. */
function seriesOptions(chart: DrawnChart, theme: Theme): uPlot.Series[] {
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
      ...(one.series.faint || points ? { dash: points ? [2, 3] : [5, 4] } : {}),
      points: points
        ? { show: true, size: 7, fill: theme.background, stroke: colour, width: 1.5 }
        : { size: 4, fill: colour, stroke: colour, filter: (plot, index) => lonePoints(plot, index) },
    });
  }
  return series;
}

/** First and last place within the limits, and one more on either side, for lines that leave the plot. */
function placesIn(chart: DrawnChart, { min, max }: { min: number; max: number }): [number, number] {
  const last = chart.x.length - 1;
  return [Math.max(0, nearestIndex(chart.x, min) - 1), Math.min(last, nearestIndex(chart.x, max) + 1)];
}

/** From least to greatest value of each bucket, as one area for each run of buckets without a gap. */
function drawBands(plot: uPlot, { chart, theme }: PlotModel, limits: { min: number; max: number }): void {
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
      dashed: series.faint,
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
  { colour, dashed }: { readonly colour: string; readonly dashed: boolean },
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
  ctx.setLineDash(dashed ? [5 * devicePixelRatio, 4 * devicePixelRatio] : []);
  ctx.stroke(path);
}

/** The range of the lines, widened to what their bands hold. */
function withBands(chart: DrawnChart, limits: { min: number; max: number }, range: [number | null, number | null]) {
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

function alpha(colour: string, share: number): string {
  return colour.replace("rgb(", "rgba(").replace(")", `, ${share})`);
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

const rangeOf = ({ min, max }: { min: number; max: number }): [number, number] => [min, max];

function linearRange(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null || !Number.isFinite(min) || !Number.isFinite(max)) return [0, 1];
  if (min === max) {
    const room = Math.abs(min) * 0.1 || 0.5;
    return [min - room, max + room];
  }
  const room = (max - min) * 0.06;
  // A quantity that is never negative does not get an axis that is.
  return [min >= 0 && min - room < 0 ? 0 : min - room, max + room];
}

function logarithmicRange(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null || !(min > 0) || !Number.isFinite(max)) return [0.1, 10];
  return [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max * 1.0001))];
}

/** Where attempts resumed, and where values are that cannot be drawn. */
function drawMarks(plot: uPlot, { chart, marks, theme }: PlotModel): void {
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
