// The canvas of a chart: uPlot set up for metrics over steps, with bands, gaps, marks, zoom and pan. It holds no state of the page
// but what is drawn, and draws nothing while it is out of sight.
import uPlot from "uplot";
import type { DrawnChart } from "./chartData.ts";
import { type ChartMark, drawAxisName, drawBands, drawMarks } from "./chartDrawing.ts";
import { alignedData, seriesOptions } from "./chartLines.ts";
import { type Limits, linearRange, logarithmicGrid, logarithmicRange, withBands } from "./chartRange.ts";
import { drawInTurn, forget } from "./drawTurns.ts";
import { numberText } from "./text.ts";
import type { Theme } from "./theme.ts";

export interface StepRange {
  readonly from: number;
  readonly to: number;
}

export interface PlotModel {
  readonly chart: DrawnChart;
  readonly marks: readonly ChartMark[];
  readonly logarithmic: boolean;
  readonly theme: Theme;
  /** First and last step of all charts that move together: they share one axis, whatever each of them has. */
  readonly bounds: StepRange;
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

  #limits(): Limits {
    const x = this.#model?.chart.x ?? [];
    if (this.#range !== null) return { min: this.#range.from, max: this.#range.to };
    const { from, to } = this.#model?.bounds ?? { from: 0, to: 1 };
    const [min, max] = [Math.min(from, x[0] ?? from), Math.max(to, x.at(-1) ?? to)];
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
        series.dotted,
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
        x: {
          time: false,
          range: () => {
            const { min, max } = this.#limits();
            return [min, max];
          },
        },
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
          grid: { ...axis.grid, filter: (_, ticks) => (logarithmic ? logarithmicGrid(ticks) : ticks) },
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
        drawAxes: [
          (plot) => {
            drawAxisName(plot, theme);
            drawBands(plot, this.#model ?? model, this.#limits());
          },
        ],
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
