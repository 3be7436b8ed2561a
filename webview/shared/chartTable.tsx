// The numbers of a chart as a table: a row a step (or bucket), a column a line. Enter or a double click opens the step.
import { useMemo } from "preact/hooks";
import { bucketAt, type ChartSeries } from "./chartData.ts";
import { countText, numberText } from "./text.ts";
import { type TableColumn, VirtualTable } from "./virtualTable.tsx";
import { sharedWords } from "./words.ts";

interface ChartTableProps {
  readonly label: string;
  readonly series: readonly ChartSeries[];
  readonly onOpen: (step: number) => void;
}

interface StepRow {
  readonly from: number;
  readonly to: number;
}

export function ChartTable({ label, series, onOpen }: ChartTableProps) {
  const words = sharedWords();
  const rows = useMemo(() => rowsOf(series), [series]);
  const columns: readonly TableColumn<StepRow>[] = [
    {
      key: "step",
      title: words.step,
      numeric: true,
      width: "minmax(5em, max-content)",
      cell: ({ from, to }) => (from === to ? countText(from) : `${countText(from)}–${countText(to)}`),
    },
    ...series.map((one) => ({
      key: one.key,
      title: one.label,
      numeric: true,
      width: "minmax(6em, 1fr)",
      cell: ({ from, to }: StepRow) => cellText(one, (from + to) / 2),
    })),
  ];
  return (
    <VirtualTable
      className="chart-table"
      label={label}
      rows={rows}
      columns={columns}
      keyOf={({ from, to }) => `${from} ${to}`}
      onOpen={({ to }) => onOpen(to)}
    />
  );
}

/** Newest first. */
function rowsOf(series: readonly ChartSeries[]): StepRow[] {
  const rows = new Map<string, StepRow>();
  for (const { step, width } of series) {
    for (let at = 0; at < step.length; at++) {
      const row = { from: step[at]!, to: step[at]! + width - 1 };
      rows.set(`${row.from} ${row.to}`, row);
    }
  }
  return [...rows.values()].sort((a, b) => b.from - a.from);
}

function cellText(series: ChartSeries, at: number): string {
  const index = bucketAt(series, at);
  if (index < 0) return "";
  const [min, max, last, bad] = [series.min[index]!, series.max[index]!, series.last[index]!, series.bad[index]!];
  if (series.width === 1) return bad > 0 ? sharedWords().oneNotFinite : numberText(last, 6);
  const range = Number.isFinite(min) ? `${numberText(min, 4)} … ${numberText(max, 4)}` : "";
  return bad > 0 ? `${range} ${sharedWords().notFinite(countText(bad))}`.trim() : range;
}
