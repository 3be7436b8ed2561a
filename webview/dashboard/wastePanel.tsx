// Where sampled tokens went: a stacked bar a step, the whole run beside them, and the same numbers as a table.
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { type Waterfall, wasteStages } from "../../protocol/runView.ts";
import { TableIcon } from "../shared/chart.tsx";
import type { StepRange } from "../shared/chartPlot.ts";
import { Button } from "../shared/controls.tsx";
import { countText, percentText } from "../shared/text.ts";
import { theme } from "../shared/theme.ts";
import { type TableColumn, VirtualTable } from "../shared/virtualTable.tsx";
import { sharedWords } from "../shared/words.ts";
import type { DashboardPage } from "./page.ts";
import { barSteps } from "./wasteSteps.ts";
import { dashboardWords } from "./words.ts";

/** More bars than this are too thin to tell apart; every n-th step is shown then. */
const mostBars = 40;
/** Zooming and new steps rest this long before bars are read. */
const quietMilliseconds = 1500;

interface WastePanelProps {
  readonly page: DashboardPage;
  readonly folder: string;
  readonly lastStep: number;
  readonly settled: ReadonlySignal<StepRange | null>;
}

/** How often the first bars are drawn while they are read. */
const drawMilliseconds = 300;
/** How often the sums are read again while the run goes on: they are the most that the page asks of the daemon. */
const readMilliseconds = 5000;

/** The value as it was a moment ago, so that what is read by it is not read at every step; the first one counts at once. */
function usePaced(value: number, milliseconds: number): number {
  const [shown, setShown] = useState(value);
  const latest = useRef(value);
  latest.current = value;
  useEffect(() => {
    const timer = window.setInterval(() => setShown(latest.current), milliseconds);
    return () => window.clearInterval(timer);
  }, [milliseconds]);
  return shown === 0 ? value : Math.min(shown, value);
}

export function WastePanel({ page, folder, lastStep: newestStep, settled }: WastePanelProps) {
  const lastStep = usePaced(newestStep, readMilliseconds);
  const words = dashboardWords();
  const id = useId();
  const asTable = useSignal(false);
  const total = useSignal<Waterfall | null>(null);
  /** What was read, also by readings that were broken off; what is drawn of it. */
  const found = useRef(new Map<number, Waterfall>());
  const known = useSignal<ReadonlyMap<number, Waterfall>>(new Map());
  const failure = useSignal(false);
  const range = settled.value;
  const steps = useMemo(
    () => barSteps(range?.from ?? 1, Math.min(lastStep, range?.to ?? lastStep), mostBars),
    [range, lastStep],
  );

  useEffect(() => {
    found.current = new Map();
    known.value = new Map();
  }, [folder]);
  useEffect(() => {
    const abort = new AbortController();
    const read = async () => {
      total.value = await page.client.call("run/waterfall", { folder, step: null }, { signal: abort.signal });
      // One after the other, and drawn together: these are the least urgent numbers of the page. The first ones are seen to come.
      const first = known.peek().size === 0;
      let drawn = performance.now();
      for (const step of steps) {
        if (found.current.has(step)) continue;
        const bar = await page.client.call("run/waterfall", { folder, step }, { signal: abort.signal });
        found.current.set(step, bar);
        if (!first || performance.now() - drawn < drawMilliseconds) continue;
        known.value = new Map(found.current);
        drawn = performance.now();
      }
      known.value = new Map(found.current);
      failure.value = false;
    };
    const timer = window.setTimeout(
      () => {
        read().catch(() => {
          if (!abort.signal.aborted) failure.value = true;
        });
      },
      total.peek() === null ? 0 : quietMilliseconds,
    );
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [folder, steps, page.client.epoch.value]);

  const all = total.value;
  if (all === null || all.sampled === 0) {
    return (
      <figure class="chart" aria-labelledby={`${id}-title`}>
        <figcaption class="chart-head">
          <h3 id={`${id}-title`}>{words.waste}</h3>
        </figcaption>
        <p class="chart-empty muted">
          {failure.value ? words.notInRun : all === null ? words.loadingChart : words.noSteps}
        </p>
      </figure>
    );
  }
  const bars = steps.map((step) => known.value.get(step) ?? null);
  const barsThere = bars.filter((bar) => bar !== null);
  const share = percentText((all.stages.contributing ?? 0) / all.sampled);
  const summary = words.wasteTotal(share, countText(all.sampled));
  const causes = wasteStages.filter((stage) => (all.stages[stage] ?? 0) > 0 || stage === "contributing");
  return (
    <figure class="chart" aria-labelledby={`${id}-title`}>
      <figcaption class="chart-head">
        <h3 id={`${id}-title`} title={words.wasteHint}>
          {words.waste}
        </h3>
        <span class="chart-readout muted">{summary}</span>
        <Button
          look="icon"
          label={asTable.value ? sharedWords().showChart(words.waste) : sharedWords().showTable(words.waste)}
          pressed={asTable.value}
          onPress={() => {
            asTable.value = !asTable.value;
          }}
        >
          <TableIcon />
        </Button>
      </figcaption>
      {asTable.value ? (
        <WasteTable
          label={words.waste}
          rows={[all, ...[...barsThere].reverse()]}
          onOpen={(step) => page.change({ step })}
        />
      ) : (
        <WasteBars
          summary={`${words.waste}: ${summary}`}
          total={all}
          steps={steps}
          bars={bars}
          onOpen={(step) => page.change({ step })}
        />
      )}
      <ul class="chart-legend">
        {causes.map((stage) => (
          <li key={stage} title={words.wasteMeaning[stage]}>
            <span class="swatch square" style={{ background: colourOf(stage) }} />
            <span class="chart-legend-label">{words.wasteStages[stage]}</span>
            <span class="chart-legend-value">{percentText((all.stages[stage] ?? 0) / all.sampled)}</span>
            <span class="note">{countText(all.stages[stage] ?? 0)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

type Stage = (typeof wasteStages)[number];

/** Places in the theme's colours: blue, orange, green, purple, red, yellow, then their neighbours. */
const places: Readonly<Record<Exclude<Stage, "contributing">, number>> = {
  notCaptured: 6,
  masked: 3,
  truncated: 1,
  stale: 8,
  zeroVariance: 5,
  filtered: 2,
  clipped: 4,
};

/** What contributes is the calm ground; causes of waste stand out from it. */
function colourOf(stage: Stage): string {
  const { series, rest } = theme().value;
  return stage === "contributing" ? rest : series[places[stage]]!;
}

interface BarsProps {
  readonly summary: string;
  readonly total: Waterfall;
  readonly steps: readonly number[];
  /** One a step; null: not read yet, its place stays free. */
  readonly bars: readonly (Waterfall | null)[];
  readonly onOpen: (step: number) => void;
}

const [width, height, gap, totalWidth] = [400, 132, 12, 36];

function WasteBars({ summary, total, steps, bars, onOpen }: BarsProps) {
  const words = dashboardWords();
  const room = (width - totalWidth - gap) / Math.max(1, bars.length);
  const bar = (waterfall: Waterfall, x: number, w: number) => {
    let y = 0;
    return wasteStages.map((stage) => {
      const h = waterfall.sampled === 0 ? 0 : ((waterfall.stages[stage] ?? 0) / waterfall.sampled) * height;
      const top = y;
      y += h;
      if (h === 0) return null;
      return <rect key={stage} x={x} y={top} width={w} height={h} fill={colourOf(stage)} />;
    });
  };
  return (
    <div class="waste-bars">
      <p class="waste-scale muted small" aria-hidden="true">
        <span>{percentText(1, 0)}</span>
        <span>{percentText(0.5, 0)}</span>
        <span>0</span>
      </p>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={summary}>
        {bars.map((waterfall, index) =>
          waterfall === null ? null : (
            // biome-ignore lint/a11y/noStaticElementInteractions: a shortcut for the pointer; the table's rows do it by keyboard
            <g key={waterfall.step} class="waste-bar" onClick={() => onOpen(waterfall.step!)}>
              <title>{tooltip(waterfall)}</title>
              {bar(waterfall, index * room, Math.max(1, room - 1.5))}
            </g>
          ),
        )}
        <g>
          <title>{tooltip(total)}</title>
          {bar(total, width - totalWidth, totalWidth)}
        </g>
      </svg>
      <p class="waste-axis muted small" aria-hidden="true">
        <span>{sharedWords().stepAxis}</span>
        <span>{steps[0] === undefined ? "" : countText(steps[0])}</span>
        <span>{steps.length < 2 ? "" : countText(steps.at(-1)!)}</span>
        <span>{words.wasteRun}</span>
      </p>
    </div>
  );
}

function tooltip(waterfall: Waterfall): string {
  const words = dashboardWords();
  const title = waterfall.step === null ? words.wasteRun : words.stepTitle(countText(waterfall.step));
  const stages = wasteStages
    .filter((stage) => (waterfall.stages[stage] ?? 0) > 0)
    .map((stage) => `${words.wasteStages[stage]} ${countText(waterfall.stages[stage] ?? 0)}`);
  return [title, `${words.sampled} ${countText(waterfall.sampled)}`, ...stages].join("\n");
}

interface WasteTableProps {
  readonly label: string;
  readonly rows: readonly Waterfall[];
  readonly onOpen: (step: number) => void;
}

function WasteTable({ label, rows, onOpen }: WasteTableProps) {
  const words = dashboardWords();
  const columns: readonly TableColumn<Waterfall>[] = [
    {
      key: "step",
      title: words.step,
      numeric: true,
      width: "6em",
      cell: (row) => (row.step === null ? words.wasteRun : countText(row.step)),
    },
    { key: "sampled", title: words.sampled, numeric: true, width: "6em", cell: (row) => countText(row.sampled) },
    ...wasteStages.map((stage) => ({
      key: stage,
      title: words.wasteStages[stage],
      numeric: true,
      width: "7em",
      cell: (row: Waterfall) => countText(row.stages[stage] ?? 0),
    })),
  ];
  return (
    <VirtualTable
      className="chart-table"
      label={label}
      rows={rows}
      columns={columns}
      keyOf={(row) => row.step ?? "run"}
      onOpen={({ step }) => {
        if (step !== null) onOpen(step);
      }}
    />
  );
}
