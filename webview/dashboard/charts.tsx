// The charts tab: one chart a question, all on the same steps, with what they have in common above them.
import { batch, computed, signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Chart } from "../shared/chart.tsx";
import type { ChartSeries } from "../shared/chartData.ts";
import type { StepRange } from "../shared/chartPlot.ts";
import { Button, Checkbox } from "../shared/controls.tsx";
import { drawInTurn, forget } from "../shared/drawTurns.ts";
import { problemOf } from "../shared/problem.ts";
import type { Window } from "./bucketStore.ts";
import { windowOf } from "./bucketStore.ts";
import { type ChartDefinition, type ChartRun, chartSeries, chartsFor, resumeMarks } from "./chartSeries.ts";
import { MetricPicker } from "./metricPicker.tsx";
import type { DashboardPage } from "./page.ts";
import { runLabels } from "./runLabels.ts";
import { stepBounds } from "./runModel.ts";
import { modelIn } from "./runStore.ts";
import { WastePanel } from "./wastePanel.tsx";
import { dashboardWords } from "./words.ts";

/** About a chart's pixels: more could not be seen. */
const bucketsInSight = 320;
/** Time without zoom or pan after which finer buckets are asked for. */
const quietMilliseconds = 400;

export function Charts({ page }: { readonly page: DashboardPage }) {
  const words = dashboardWords();
  const shared = useMemo(() => sharedOf(page), [page]);
  const bounds = shared.bounds.value;
  const failure = useSignal<string | null>(null);
  const retry = useSignal(0);

  // Zoom is kept with the view, once it rests.
  useSignalEffect(() => {
    const range = shared.range.value;
    const timer = window.setTimeout(() => {
      batch(() => {
        shared.settled.value = range;
        page.change({ range });
      });
    }, quietMilliseconds);
    return () => window.clearTimeout(timer);
  });

  const evaluated = useComputed(() =>
    page.runs.value.some((run) => (modelIn(run.state.value)?.evaluations.length ?? 0) > 0),
  );
  // By what they are made of: zoom and new steps leave them, and so every chart, as they are.
  const parts = useComputed(() =>
    JSON.stringify([
      page.runs.value.flatMap((run) => modelIn(run.state.value)?.metricNames ?? []),
      page.view.value.picked,
    ]),
  );
  const definitions = useComputed(() => {
    const [there, picked] = JSON.parse(parts.value) as [string[], string[]];
    return chartsFor(new Set(there), picked);
  });
  // What the run does not write is named once, and takes no room.
  const written = useComputed(() => {
    const [there] = JSON.parse(parts.value) as [string[], string[]];
    const has = (chart: ChartDefinition) =>
      there.length === 0 ||
      chart.lines.some(({ name }) => there.includes(name)) ||
      (chart.evaluations && evaluated.value);
    return { shown: definitions.value.filter(has), missing: definitions.value.filter((chart) => !has(chart)) };
  });
  const names = useComputed(() =>
    JSON.stringify(definitions.value.flatMap(({ lines }) => lines.map(({ name }) => name))),
  );

  useSignalEffect(() => {
    retry.value;
    page.client.epoch.value;
    const { width, firstChunk, lastChunk } = shared.window.value;
    const wanted = JSON.parse(names.value) as string[];
    for (const run of page.runs.value) {
      const model = modelIn(run.state.value);
      if (model === null || model.attempts.every((attempt) => attempt.to === attempt.from)) continue;
      const there = new Set(model.metricNames);
      run.buckets
        .want(
          wanted.filter((name) => there.has(name)),
          { width, firstChunk, lastChunk },
          Math.max(...model.attempts.map((attempt) => attempt.to)),
        )
        .then(
          () => {
            failure.value = null;
          },
          (error: unknown) => {
            if (page.client.connection.peek().state === "connected") failure.value = problemOf(error).message;
          },
        );
    }
  });

  const main = page.runs.value[0]!;
  const model = modelIn(main.state.value)!;
  const marks = useMemo(() => resumeMarks(model), [model.attempts]);
  const ended = !["starting", "running", "paused", "stopping"].includes(model.summary.status);
  if (bounds === null) {
    return <p class="notice muted">{ended ? words.noStepsEnded : words.noSteps}</p>;
  }
  return (
    <>
      <Toolbar page={page} range={shared.range} />
      {failure.value !== null && (
        <p class="banner error" role="alert">
          <span>
            {words.seriesFailed} {failure.value}
          </span>
          <Button
            onPress={() => {
              retry.value += 1;
            }}
          >
            {words.tryAgain}
          </Button>
        </p>
      )}
      <div class="chart-grid">
        {written.value.shown.map((definition) => (
          <MetricChart
            key={definition.key}
            page={page}
            definition={definition}
            shared={shared}
            bounds={bounds}
            marks={marks}
          />
        ))}
        <WastePanel page={page} folder={main.folder} lastStep={model.summary.step} settled={shared.settled} />
      </div>
      {written.value.missing.length > 0 && (
        <p class="muted small not-written">
          {words.notWritten(written.value.missing.map(({ title }) => title).join(", "))}
        </p>
      )}
    </>
  );
}

/** What all charts have in common. */
function sharedOf(page: DashboardPage) {
  const range = signal<StepRange | null>(page.view.peek().range);
  /** The range once it rests: what data are read for. */
  const settled = signal<StepRange | null>(range.peek());
  const bounds = computed(() => {
    const found = stepBounds(page.runs.value.flatMap((run) => modelIn(run.state.value) ?? []));
    return found === null ? null : JSON.stringify(found);
  });
  const parsed = computed(() => (bounds.value === null ? null : (JSON.parse(bounds.value) as StepRange)));
  const windowKey = computed(() => {
    const all = parsed.value ?? { from: 0, to: 1 };
    const wanted = settled.value ?? all;
    return JSON.stringify(windowOf(wanted, all, bucketsInSight));
  });
  const window = computed(() => JSON.parse(windowKey.value) as Window);
  return { range, settled, bounds: parsed, window };
}
type Shared = ReturnType<typeof sharedOf>;

interface MetricChartProps {
  readonly page: DashboardPage;
  readonly definition: ChartDefinition;
  readonly shared: Shared;
  readonly bounds: StepRange;
  readonly marks: ReturnType<typeof resumeMarks>;
}

function MetricChart({ page, definition, shared, bounds, marks }: MetricChartProps) {
  const words = dashboardWords();
  const smoothing = useComputed(() => page.view.value.smoothing).value;
  const logarithmic = useComputed(() => page.view.value.logarithmic).value;
  const runs = page.runs.value.flatMap((run) => {
    const model = modelIn(run.state.value);
    return model === null ? [] : [{ run, model, version: run.version.value }];
  });
  const wanted = shared.window.value;
  // The last window stays until every line of the next one is there, so that zooming never blinks.
  const ready = runs.every(({ run, model }) =>
    definition.lines.every(({ name }) => !model.metricNames.includes(name) || run.buckets.has(name, wanted)),
  );
  const shown = useRef(wanted);
  if (ready) shown.current = wanted;
  const window = shown.current;

  // Twenty charts are not made anew in one frame: each in its turn.
  const series = useSignal<readonly ChartSeries[]>([]);
  const make = useRef(() => {});
  make.current = () => {
    const labels = runLabels(runs.map(({ run }) => run.folder));
    series.value = chartSeries(
      definition,
      runs.map(
        ({ run, model }): ChartRun => ({
          label: labels.get(run.folder) ?? run.folder,
          snapshot: model,
          read: (name) => run.buckets.read(name, window),
        }),
      ),
      window,
    );
  };
  const turn = useRef({ drawNow: () => make.current() });
  const state = useRef<unknown[]>([]);
  const now = [
    definition,
    window,
    ...runs.flatMap(({ version, model }) => [version, model.attempts, model.evaluations]),
  ];
  useEffect(() => {
    const before = state.current;
    state.current = now;
    if (now.length !== before.length || now.some((one, at) => one !== before[at])) drawInTurn(turn.current, false);
  });
  useEffect(() => () => forget(turn.current), []);
  const written = runs.some(({ model }) => definition.lines.some(({ name }) => model.metricNames.includes(name)));
  const stepped = runs.some(({ model }) => model.metricNames.length > 0);
  const message = !stepped || (written && ready) ? words.noSteps : written ? words.loadingChart : words.notInRun;
  const lines = series.value;
  // The same element again is not looked at again.
  return useMemo(
    () => (
      <div class="chart-cell" id={`chart ${definition.key}`}>
        <Chart
          title={definition.title}
          description={definition.description}
          unit={definition.unit}
          series={lines}
          marks={marks}
          logarithmic={logarithmic}
          smoothing={smoothing}
          range={shared.range}
          cursor={page.cursor}
          bounds={bounds}
          onPick={(step) => page.change({ step })}
          message={message}
        />
      </div>
    ),
    [definition, lines, marks, logarithmic, smoothing, bounds, message, words],
  );
}

function Toolbar({ page, range }: { readonly page: DashboardPage; readonly range: Shared["range"] }) {
  const words = dashboardWords();
  const { smoothing, logarithmic } = page.view.value;
  const zoomed = useComputed(() => range.value !== null).value;
  return (
    <div class="toolbar">
      <MetricPicker page={page} />
      <label class="slider">
        {words.smoothing}
        <input
          type="range"
          min="0"
          max="0.99"
          step="0.01"
          value={smoothing}
          onInput={(event) => page.change({ smoothing: Number(event.currentTarget.value) })}
        />
        <span class="number slider-value" aria-hidden="true">
          {smoothing.toFixed(2)}
        </span>
      </label>
      <Checkbox checked={logarithmic} onChange={(checked) => page.change({ logarithmic: checked })}>
        {words.logarithmic}
      </Checkbox>
      <Button
        disabled={!zoomed}
        hint={words.resetZoomHint}
        onPress={() => {
          range.value = null;
        }}
      >
        {words.resetZoom}
      </Button>
    </div>
  );
}
