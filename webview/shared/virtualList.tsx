// biome-ignore-all lint/a11y/useFocusableInteractive: the list has the focus and names its active row
// biome-ignore-all lint/a11y/useSemanticElements: rows out of sight are not in the document, which a table element forbids
// biome-ignore-all lint/a11y/useAriaPropsSupportedByRole: the role is chosen with its properties, which the rule cannot see
// A list of any length of which only the rows in sight are in the document. Rows may have any height; they are measured.
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import type { ComponentChildren, Ref } from "preact";
import { useEffect, useImperativeHandle, useLayoutEffect, useReducer, useRef } from "preact/hooks";

export interface VirtualListHandle {
  scrollToIndex(index: number, align?: "start" | "center" | "end" | "auto"): void;
  focus(): void;
}

export interface VirtualListProps {
  readonly count: number;
  /** Height in pixels before a row was measured. */
  readonly estimate: (index: number) => number;
  readonly render: (index: number) => ComponentChildren;
  readonly keyOf?: (index: number) => string | number;
  readonly label: string;
  /**
   * `listbox` and `grid`: arrow keys choose a row, Enter opens it. `list`: rows hold controls of their own. `log`, `table`: to
   * read. Rows of a table or grid render elements of role cell or gridcell.
   */
  readonly kind?: "list" | "listbox" | "log" | "table" | "grid";
  /** Row of column headers, which stays in sight; for tables and grids. */
  readonly header?: ComponentChildren;
  readonly active?: number;
  readonly onActive?: (index: number, byPointer: boolean) => void;
  readonly onOpen?: (index: number) => void;
  readonly overscan?: number;
  readonly className?: string;
  /** Rows are as high as estimated: nothing is measured. */
  readonly fixed?: boolean;
  /** Keeps the end in sight while it is in sight. */
  readonly followEnd?: boolean;
  /** First and last row in the document; called when they change. */
  readonly onRange?: (first: number, last: number) => void;
  readonly handle?: Ref<VirtualListHandle>;
}

function rowOf(event: MouseEvent): number | null {
  const row = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-index]") : null;
  return row === null ? null : Number(row.dataset["index"]);
}

const keySteps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

export function VirtualList(props: VirtualListProps) {
  const { count, kind = "list", active = -1 } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [, repaint] = useReducer((n: number) => n + 1, 0);
  const id = useRef(`list-${Math.random().toString(36).slice(2)}`).current;

  const options: VirtualizerOptions<HTMLDivElement, HTMLDivElement> = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: props.estimate,
    overscan: props.overscan ?? 4,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => repaint(0),
    ...(props.keyOf === undefined ? {} : { getItemKey: props.keyOf }),
  };
  const held = useRef<Virtualizer<HTMLDivElement, HTMLDivElement>>(null);
  held.current ??= new Virtualizer(options);
  const virtualizer = held.current;
  virtualizer.setOptions(options);

  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());

  const scrollTo = (index: number, align: "start" | "center" | "end" | "auto" = "auto") =>
    virtualizer.scrollToIndex(index, { align });
  useImperativeHandle(
    props.handle ?? null,
    () => ({ scrollToIndex: scrollTo, focus: () => scroller.current?.focus() }),
    [],
  );

  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? -1;
  useEffect(() => props.onRange?.(first, last), [first, last]);

  const atEnd = useRef(true);
  useLayoutEffect(() => {
    if (props.followEnd === true && atEnd.current && count > 0) scrollTo(count - 1, "end");
  }, [count]);

  const choose = (index: number) => {
    const bounded = Math.max(0, Math.min(count - 1, index));
    props.onActive?.(bounded, false);
    scrollTo(bounded);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!chooses || event.target !== scroller.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = keySteps[event.key];
    if (step !== undefined) choose(active + step);
    else if (event.key === "Home") choose(0);
    else if (event.key === "End") choose(count - 1);
    else if (event.key === "Enter" && active >= 0) props.onOpen?.(active);
    else return;
    event.preventDefault();
  };

  const chooses = kind === "listbox" || kind === "grid";
  const tabular = kind === "table" || kind === "grid";
  const headers = props.header === undefined ? 0 : 1;
  const rowRole = ({ list: "listitem", listbox: "option", log: undefined, table: "row", grid: "row" } as const)[kind];
  const activeShown = active >= first && active <= last;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: its role is one of three, which the rule cannot see
    <div
      ref={scroller}
      class={`virtual-list ${props.className ?? ""}`}
      role={kind}
      aria-rowcount={tabular ? count + headers : undefined}
      aria-label={props.label}
      aria-activedescendant={chooses && activeShown ? `${id}-${active}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onClick={(event) => {
        const row = chooses ? rowOf(event) : null;
        if (row !== null) props.onActive?.(row, true);
      }}
      onDblClick={(event) => {
        const row = chooses ? rowOf(event) : null;
        if (row !== null) props.onOpen?.(row);
      }}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
      }}
    >
      {props.header !== undefined && (
        <div class="virtual-header" role="row" aria-rowindex={1}>
          {props.header}
        </div>
      )}
      <div
        class="virtual-list-space"
        role={tabular ? "rowgroup" : "presentation"}
        style={{ height: `${virtualizer.getTotalSize()}px` }}
      >
        {items.map((item) => (
          <div
            key={item.key}
            id={`${id}-${item.index}`}
            data-index={item.index}
            ref={props.fixed === true ? null : (element) => virtualizer.measureElement(element)}
            class={`virtual-row ${item.index === active ? "active" : ""}`}
            role={rowRole}
            aria-selected={chooses ? item.index === active : undefined}
            aria-setsize={rowRole === undefined || tabular ? undefined : count}
            aria-posinset={rowRole === undefined || tabular ? undefined : item.index + 1}
            aria-rowindex={tabular ? item.index + 1 + headers : undefined}
            style={{
              transform: `translateY(${item.start}px)`,
              ...(props.fixed === true ? { height: `${item.size}px` } : {}),
            }}
          >
            {props.render(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
