// A line chart in braille dots, two by four a character. Gaps (NaN, infinities) stay empty and never spoil the scale.

export interface ChartSize {
  /** In characters. */
  readonly width: number;
  readonly height: number;
}

export interface Chart {
  /** Top line first; each is `width` characters. */
  readonly lines: readonly string[];
  /** Of the finite values; null when there is none. */
  readonly range: { readonly min: number; readonly max: number } | null;
  /** Values that are not finite. */
  readonly gaps: number;
}

/** Bit of the dot in column 0 or 1, row 0 (top) to 3. */
const dotBits: readonly (readonly number[])[] = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
];

/**
 * Draws the values from left to right. With more values than dot columns, neighbours are averaged; with fewer, the line
 * grows to the right up to `expected` values, so that a chart of a run in progress fills as the run does.
 */
export function drawChart(values: readonly number[], size: ChartSize, expected = values.length): Chart {
  const columns = size.width * 2;
  const rows = size.height * 4;
  const finite = values.filter(Number.isFinite);
  const cells = Array.from({ length: size.height }, () => new Uint8Array(size.width));
  const gaps = values.length - finite.length;
  if (finite.length === 0) return { lines: cells.map(brailleLine), range: null, gaps };
  const min = finite.reduce((a, b) => Math.min(a, b));
  const max = finite.reduce((a, b) => Math.max(a, b));
  const rowOf = (value: number) =>
    max === min ? Math.floor(rows / 2) : Math.round(((max - value) / (max - min)) * (rows - 1));

  let last: { column: number; row: number } | null = null;
  for (const [column, value] of resample(values, columns, Math.max(expected, values.length))) {
    if (value === null) {
      last = null;
      continue;
    }
    const row = rowOf(value);
    if (last === null) setDot(cells, column, row);
    else connect(cells, last.column, last.row, column, row);
    last = { column, row };
  }
  return { lines: cells.map(brailleLine), range: { min, max }, gaps };
}

/** Dot columns with their value, in order; null where every value of the column is a gap. */
function resample(values: readonly number[], columns: number, expected: number): [number, number | null][] {
  const place = (index: number) =>
    expected === 1 ? 0 : Math.min(columns - 1, Math.floor((index * (columns - 1)) / (expected - 1) + 0.5));
  const sums = new Map<number, { sum: number; count: number }>();
  for (const [index, value] of values.entries()) {
    const column = place(index);
    const cell = sums.get(column) ?? { sum: 0, count: 0 };
    sums.set(column, Number.isFinite(value) ? { sum: cell.sum + value, count: cell.count + 1 } : cell);
  }
  return [...sums].map(([column, { sum, count }]) => [column, count === 0 ? null : sum / count]);
}

function setDot(cells: readonly Uint8Array[], column: number, row: number): void {
  const line = cells[row >> 2];
  const cell = column >> 1;
  if (line === undefined || cell >= line.length) return;
  line[cell] = (line[cell] ?? 0) | (dotBits[column & 1]?.[row & 3] ?? 0);
}

/** A straight line of dots between two points. */
function connect(cells: readonly Uint8Array[], x0: number, y0: number, x1: number, y1: number): void {
  const steps = Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0), 1);
  for (let step = 0; step <= steps; step++) {
    setDot(cells, Math.round(x0 + ((x1 - x0) * step) / steps), Math.round(y0 + ((y1 - y0) * step) / steps));
  }
}

function brailleLine(cells: Uint8Array): string {
  return Array.from(cells, (bits) => String.fromCodePoint(0x2800 + bits)).join("");
}
