// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus and names its active row
// biome-ignore-all lint/a11y/useSemanticElements: rows out of sight are not in the document, which a table element forbids
// A table of any length: header in sight, rows of one height, arrow keys choose a row, Enter or a double click opens it.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { VirtualList } from "./virtualList.tsx";

export interface TableColumn<Row> {
  readonly key: string;
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly numeric?: boolean;
  /** A CSS track size. */
  readonly width: string;
}

interface VirtualTableProps<Row> {
  readonly label: string;
  readonly columns: readonly TableColumn<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf?: (row: Row) => string | number;
  readonly onOpen?: (row: Row) => void;
  /** A single click opens too. */
  readonly opensOnClick?: boolean;
  readonly className?: string;
}

export const tableRowHeight = 22;

export function VirtualTable<Row>({
  label,
  columns,
  rows,
  keyOf,
  onOpen,
  opensOnClick,
  className,
}: VirtualTableProps<Row>) {
  const active = useSignal(0);
  const style = useMemo(
    () => ({ gridTemplateColumns: columns.map((column) => column.width).join(" ") }),
    [columns.map((column) => column.width).join(" ")],
  );
  const kind = (column: TableColumn<Row>) => (column.numeric === true ? "number" : "");
  return (
    <VirtualList
      className={`virtual-table ${className ?? ""}`}
      kind="grid"
      label={label}
      count={rows.length}
      estimate={() => tableRowHeight}
      fixed
      overscan={8}
      active={Math.min(active.value, rows.length - 1)}
      onActive={(index, byPointer) => {
        active.value = index;
        if (byPointer && opensOnClick === true) onOpen?.(rows[index]!);
      }}
      onOpen={(index) => onOpen?.(rows[index]!)}
      {...(keyOf === undefined ? {} : { keyOf: (index: number) => keyOf(rows[index]!) })}
      header={
        <div class="virtual-table-row" role="presentation" style={style}>
          {columns.map((column) => (
            <span key={column.key} role="columnheader" class={kind(column)} title={column.title}>
              {column.title}
            </span>
          ))}
        </div>
      }
      render={(index) => (
        <div class="virtual-table-row" role="presentation" style={style}>
          {columns.map((column) => (
            <span key={column.key} role="gridcell" class={kind(column)}>
              {column.cell(rows[index]!)}
            </span>
          ))}
        </div>
      )}
    />
  );
}
