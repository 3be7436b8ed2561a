// Tables for a terminal: columns as wide as their contents, numbers to the right, the last column cut to the width there is.
import { padEnd, padStart, truncate, widthOf } from "./text.ts";

export interface TableColumn {
  readonly title: string;
  readonly align?: "left" | "right";
}

const gap = "  ";

/**
 * @param rows uncoloured, one line a cell
 * @param width of the terminal; null = no limit
 * @returns the header and one line a row
 */
export function renderTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width: number | null,
): string[] {
  const widths = columns.map((column, index) =>
    rows.reduce((widest, row) => Math.max(widest, widthOf(row[index] ?? "")), widthOf(column.title)),
  );
  const last = columns.length - 1;
  const before = widths.slice(0, last).reduce((sum, each) => sum + each + gap.length, 0);
  const room = width === null ? Number.POSITIVE_INFINITY : Math.max(8, width - before);
  const line = (cells: readonly string[]) =>
    columns
      .map((column, index) => {
        const cell = cells[index] ?? "";
        if (index === last && column.align !== "right") return truncate(cell, room);
        return column.align === "right" ? padStart(cell, widths[index] ?? 0) : padEnd(cell, widths[index] ?? 0);
      })
      .join(gap)
      .trimEnd();
  return [line(columns.map((column) => column.title)), ...rows.map(line)];
}
