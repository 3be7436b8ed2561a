// A chart of metrics over steps, with everything that it takes to read one: values at the crosshair, a summary in words, keys for
// all that a pointer does, and the same numbers as a table.
import { type Signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import "./chart.css";
import { bucketAt, type ChartSeries, drawChart, extent, latestValue, nearestIndex } from "./chartData.ts";
import type { ChartMark } from "./chartDrawing.ts";
import { type ChartMove, chartKeys } from "./chartKeys.ts";
import { ChartPlot, type StepRange } from "./chartPlot.ts";
import { ChartTable } from "./chartTable.tsx";
import { Button } from "./controls.tsx";
import { countText, numberText } from "./text.ts";
import { theme } from "./theme.ts";
import { sharedWords } from "./words.ts";

export interface ChartProps {
  readonly title: string;
  /** What the metric means; its tooltip. */
  readonly description?: string;
  readonly unit?: string;
  readonly series: readonly ChartSeries[];
  readonly marks?: readonly ChartMark[];
  readonly logarithmic: boolean;
  readonly smoothing: number;
  /** Steps in sight, shared by charts that move together; null: all. */
  readonly range: Signal<StepRange | null>;
  /** Step under the crosshair, likewise. */
  readonly cursor: Signal<number | null>;
  /** First and last step that there is. */
  readonly bounds: StepRange;
  readonly onPick: (step: number) => void;
  /** In place of the plot while there is nothing to draw. */
  readonly message?: string;
}

/** Moves a range into the bounds; null when it is all of them. At least one step stays in sight. */
export function boundedRange(range: StepRange, bounds: StepRange): StepRange | null {
  const whole = Math.max(1, bounds.to - bounds.from);
  const span = Math.max(1, range.to - range.from);
  if (span >= whole) return null;
  const from = Math.min(Math.max(range.from, bounds.from), bounds.to - span);
  return { from, to: from + span };
}

export function Chart(props: ChartProps) {
  const { title, series, range, cursor, bounds } = props;
  const words = sharedWords();
  const id = useId();
  const asTable = useSignal(false);
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<ChartPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;

  const chart = useMemo(
    () => drawChart(series, { logarithmic: props.logarithmic, smoothing: props.smoothing }),
    [series, props.logarithmic, props.smoothing],
  );
  const drawn = useRef(chart);
  drawn.current = chart;
  const empty = chart.x.length === 0;
  const plotted = !asTable.value && !empty;

  const move = (next: StepRange) => {
    range.value = boundedRange(next, latest.current.bounds);
  };
  const pick = (index: number) => {
    const step = Math.min(drawn.current.to[index] ?? 0, latest.current.bounds.to);
    if (drawn.current.x.length > 0) latest.current.onPick(step);
  };

  useEffect(() => {
    if (!plotted || host.current === null) return;
    const made = new ChartPlot(host.current, {
      onRange: move,
      onPointer: (index) => {
        cursor.value = index === null ? null : (drawn.current.x[index] ?? null);
      },
      onClick: pick,
    });
    plot.current = made;
    made.setRange(range.peek());
    return () => {
      plot.current = null;
      made.dispose();
    };
  }, [plotted]);

  const look = theme();
  useEffect(
    () =>
      plot.current?.update({
        chart,
        marks: props.marks ?? [],
        logarithmic: props.logarithmic,
        theme: look.value,
        bounds: latest.current.bounds,
      }),
    [chart, props.marks, props.logarithmic, look.value, plotted],
  );
  useSignalEffect(() => {
    const next = range.value;
    plot.current?.setRange(next);
  });
  const speak = () => {
    const at = cursor.peek();
    const slider = host.current;
    if (slider === null || at === null) return;
    slider.setAttribute("aria-valuenow", String(Math.round(at)));
    if (document.activeElement === slider) slider.setAttribute("aria-valuetext", spoken(latest.current.series, at));
  };
  useSignalEffect(() => {
    // Read before anything can be left out, or the effect would not hear of it again.
    const at = cursor.value;
    plot.current?.showAt(at);
    speak();
  });
  // New numbers change what stands at the crosshair, and drawing the element anew writes the summary there.
  useEffect(speak);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const sight = range.peek() ?? bounds;
    const { x } = drawn.current;
    const at = nearestIndex(x, cursor.peek() ?? sight.to);
    const go = (index: number) => {
      const to = x[Math.max(0, Math.min(x.length - 1, index))]!;
      cursor.value = to;
      if (range.peek() === null || (to >= sight.from && to <= sight.to)) return;
      const half = (sight.to - sight.from) / 2;
      move({ from: to - half, to: to + half });
    };
    const zoom = (factor: number) => {
      const centre = cursor.peek() ?? (sight.from + sight.to) / 2;
      move({ from: centre - (centre - sight.from) * factor, to: centre + (sight.to - centre) * factor });
    };
    const pan = (share: number) => {
      const shift = (sight.to - sight.from) * share;
      move({ from: sight.from + shift, to: sight.to + shift });
    };
    const moves: Readonly<Record<ChartMove, () => void>> = {
      back: () => (event.shiftKey ? pan(-0.2) : go(at - 1)),
      on: () => (event.shiftKey ? pan(0.2) : go(at + 1)),
      farBack: () => go(at - 10),
      farOn: () => go(at + 10),
      first: () => go(0),
      last: () => go(x.length - 1),
      nearer: () => zoom(0.6),
      farther: () => zoom(1 / 0.6),
      whole: () => {
        range.value = null;
      },
      leave: () => {
        cursor.value = null;
      },
      open: () => pick(at),
    };
    const wanted = chartKeys[event.key];
    if (wanted === undefined || x.length === 0) return;
    event.preventDefault();
    moves[wanted]();
  };

  const span = extent(series, bounds.from, bounds.to);
  const summary =
    span === null
      ? `${title}: ${words.noValues}`
      : words.summary(
          title,
          words.seriesCount(series.length),
          countText(bounds.from),
          countText(bounds.to),
          numberText(span.min),
          numberText(span.max),
        );
  return (
    <figure class="chart" aria-labelledby={`${id}-title`}>
      <figcaption class="chart-head">
        <h3 id={`${id}-title`} title={props.description}>
          {title}
          {props.unit !== undefined && props.unit !== "" && <span class="chart-unit"> {props.unit}</span>}
        </h3>
        {chart.badCount > 0 && (
          <span class="chart-note error-text" title={words.notFiniteHint}>
            ▲ {words.notFinite(countText(chart.badCount))}
          </span>
        )}
        {chart.notPositive > 0 && (
          <span class="chart-note" title={words.notPositiveHint}>
            {words.notPositive(countText(chart.notPositive))}
          </span>
        )}
        <HeadReadout series={series} cursor={cursor} />
        {!empty && (
          <Button
            look="icon"
            label={asTable.value ? words.showChart(title) : words.showTable(title)}
            pressed={asTable.value}
            onPress={() => {
              asTable.value = !asTable.value;
            }}
          >
            <TableIcon />
          </Button>
        )}
      </figcaption>
      {empty ? (
        <p class="chart-empty muted">{props.message ?? words.noValues}</p>
      ) : asTable.value ? (
        <ChartTable label={title} series={series} onOpen={props.onPick} />
      ) : (
        <div
          ref={host}
          class="chart-plot"
          role="slider"
          tabIndex={0}
          aria-label={`${title}. ${words.step}`}
          aria-describedby={`${id}-summary`}
          aria-valuemin={bounds.from}
          aria-valuemax={bounds.to}
          aria-valuenow={bounds.to}
          aria-valuetext={summary}
          onKeyDown={onKeyDown}
        />
      )}
      <p id={`${id}-summary`} class="visually-hidden">
        {summary} {words.keys}
      </p>
      {series.length > 1 && <Legend series={series} cursor={cursor} />}
    </figure>
  );
}

/** "0.0123", of the bucket that holds the step; "0.01 … 0.02" where it holds several. */
function valueAt(series: ChartSeries, at: number): string {
  const index = bucketAt(series, at);
  if (index < 0) return "";
  const [min, max, last] = [series.min[index]!, series.max[index]!, series.last[index]!];
  if (!Number.isFinite(min)) return series.bad[index]! > 0 ? sharedWords().oneNotFinite : "";
  return series.width === 1 || min === max ? numberText(last) : `${numberText(min, 3)} … ${numberText(max, 3)}`;
}

function placeText(series: readonly ChartSeries[], at: number): string {
  const words = sharedWords();
  const width = series.reduce((most, one) => Math.max(most, one.width), 1);
  const first = Math.round(at - (width - 1) / 2);
  return width === 1 ? words.atStep(countText(first)) : words.stepRange(countText(first), countText(first + width - 1));
}

function spoken(series: readonly ChartSeries[], at: number): string {
  const values = series
    .map((one) => [one.label, valueAt(one, at)] as const)
    .filter(([, value]) => value !== "")
    .map(([label, value]) => (series.length === 1 ? value : `${label} ${value}`));
  return `${placeText(series, at)}: ${values.join(", ") || sharedWords().noNumber}`;
}

/** The step at the crosshair and, when there is one line only, its value; else the newest value. */
function HeadReadout({ series, cursor }: { series: readonly ChartSeries[]; cursor: Signal<number | null> }) {
  const at = cursor.value;
  const current = series.filter((one) => !one.faint);
  const single = current.length === 1 ? current[0]! : null;
  if (series.length === 0) return <span class="chart-readout" />;
  if (at === null) {
    const value = single === null ? null : latestValue(single);
    return <span class="chart-readout">{value !== null && <b>{numberText(value)}</b>}</span>;
  }
  return (
    <span class="chart-readout">
      <span class="muted">{placeText(series, at)}</span>
      {single !== null && <b>{valueAt(single, at)}</b>}
    </span>
  );
}

function Legend({ series, cursor }: { series: readonly ChartSeries[]; cursor: Signal<number | null> }) {
  const colours = useComputed(() => theme().value.series).value;
  const at = cursor.value;
  return (
    <ul class="chart-legend">
      {series.map((one) => (
        <li key={one.key} class={one.faint ? "faint" : ""}>
          <span
            class={`swatch ${one.faint ? "dashed" : one.dotted && one.shape === "line" ? "dotted" : one.shape}`}
            style={{ borderColor: colours[one.colour % colours.length] }}
          />
          <span class="chart-legend-label" title={one.label}>
            {one.label}
          </span>
          <span class="chart-legend-value">{at === null ? numberText(latestValue(one)) : valueAt(one, at)}</span>
        </li>
      ))}
    </ul>
  );
}

export function TableIcon() {
  return (
    <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
      <path
        fill="none"
        stroke="currentColor"
        d="M2.5 3.5h11v9h-11zM2.5 6.5h11M2.5 9.5h11M6.5 6.5v6"
        stroke-linejoin="round"
      />
    </svg>
  );
}
