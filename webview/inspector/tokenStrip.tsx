// biome-ignore-all lint/a11y/useSemanticElements: a cell wraps like text, which a button element cannot
// The strip of the chosen turn: its images and sampled tokens, one cell each, coloured by a column; beside it all numbers of the cell
// under the pointer, else of the chosen one. Rows of sixteen, so that any number of tokens scrolls.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type TurnView, tokenColumns } from "../../protocol/trajectoryView.ts";
import { Button, Checkbox, Dropdown } from "../shared/controls.tsx";
import { countText, numberText } from "../shared/text.ts";
import { theme } from "../shared/theme.ts";
import { VirtualList, type VirtualListHandle } from "../shared/virtualList.tsx";
import type { InspectorPage } from "./page.ts";
import { colouringColumns, type Paint, painter, type TokenScale, tokenScale } from "./tokenScale.ts";
import type { Token } from "./tokenStore.ts";
import { storedNumber, visibleText } from "./tokenText.ts";
import { inspectorWords } from "./words.ts";
import { type ColumnRange, columnRange, jumpToWorst } from "./worst.ts";

interface PageProps {
  readonly page: InspectorPage;
}

const rowCells = 16;

export function TokenStrip({ page }: PageProps) {
  const words = inspectorWords();
  page.turns.value.version.value;
  const turn = page.turns.value.get(page.view.value.turn);
  const images = turn?.parts.filter((part) => part.kind === "image") ?? [];
  if (page.outline.value?.tokenCount === null && images.length === 0)
    return <p class="strip-none muted">{words.stripNone}</p>;
  if (turn === undefined) return null;
  if ((turn.tokens?.length ?? 0) + images.length === 0) return <p class="strip-none muted">{words.stripEmpty}</p>;
  return <Strip page={page} turn={turn} />;
}

function useScale(page: InspectorPage): TokenScale | null {
  const range = useSignal<{ readonly key: string; readonly range: ColumnRange } | null>(null);
  const column = page.column.value;
  const { row } = page.view.value;
  const tokenCount = page.outline.value?.tokenCount ?? 0;
  const key = JSON.stringify([column, row, tokenCount, page.source.value]);
  useEffect(() => {
    if (column === null) return;
    let current = true;
    columnRange(page, column, row).then(
      (found) => {
        if (current) range.value = { key, range: found };
      },
      (error: unknown) => {
        if (current) page.report(error);
      },
    );
    return () => {
      current = false;
    };
  }, [key]);
  const found = range.value?.key === key ? range.value.range : null;
  return useMemo(() => {
    if (column === null || found?.least == null || found.greatest === null) return null;
    return tokenScale(column, found.least.value, found.greatest.value);
  }, [column, found]);
}

function Strip({ page, turn }: PageProps & { readonly turn: TurnView }) {
  const words = inspectorWords();
  const { tokens, late } = page.tokens.value;
  tokens.version.value;
  late.value;
  const column = page.column.value;
  const scale = useScale(page);
  const paintIn = useMemo(() => painter(theme().value), [theme().value]);
  const images = turn.parts.filter((part) => part.kind === "image");
  const first = turn.tokens?.first ?? 0;
  const count = images.length + (turn.tokens?.length ?? 0);
  const cell = Math.min(page.view.value.cell, count - 1);
  const tokenOf = (at: number) => (at < images.length ? null : first + at - images.length);

  const list = useRef<VirtualListHandle>(null);
  const frame = useRef<HTMLDivElement>(null);
  /** The strip had the focus when the chosen row left the document. */
  const lastHeld = useRef(false);
  const range = useRef<[number, number]>([0, 8]);
  const want = () => {
    const [from, to] = [range.current[0] * rowCells, (range.current[1] + 1) * rowCells];
    const start = Math.max(0, from - images.length);
    const end = Math.min(count - images.length, to - images.length);
    if (turn.tokens !== null && end > start) void page.tokens.value.want(first + start, first + end);
  };
  useEffect(() => {
    range.current = [0, 8];
    want();
  }, [page.tokens.value, turn.turn]);
  useEffect(want, [turn.tokens?.length]);
  // Rows grow when their texts come: the chosen one is brought into sight again until its own has come.
  const unsettled = useRef(true);
  useEffect(() => {
    unsettled.current = true;
  }, [cell, turn.turn]);
  const chosenToken = tokenOf(cell);
  const chosenHere = chosenToken === null || tokens.get(chosenToken) !== undefined;
  useEffect(() => {
    if (!unsettled.current) return;
    const held = frame.current?.contains(document.activeElement) === true || lastHeld.current;
    lastHeld.current = held;
    const show = () => {
      list.current?.scrollToIndex(Math.floor(cell / rowCells));
      if (held) frame.current?.querySelector<HTMLElement>(`[data-cell="${cell}"]`)?.focus({ preventScroll: true });
    };
    show();
    let wait = requestAnimationFrame(() => {
      show();
      wait = requestAnimationFrame(() => {
        show();
        if (!chosenHere) return;
        unsettled.current = false;
        lastHeld.current = false;
      });
    });
    return () => cancelAnimationFrame(wait);
  }, [cell, turn.turn, chosenHere, tokens.version.value]);

  const cellOf = (target: EventTarget | null) => {
    const found = target instanceof Element ? target.closest<HTMLElement>("[data-cell]") : null;
    return found === null ? null : Number(found.dataset["cell"]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || cellOf(event.target) === null) return;
    const steps: Readonly<Record<string, number>> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: rowCells,
      ArrowUp: -rowCells,
    };
    const to =
      event.key === "Home"
        ? 0
        : event.key === "End"
          ? count - 1
          : steps[event.key] === undefined
            ? null
            : cell + steps[event.key]!;
    if (to === null) return;
    event.preventDefault();
    page.hover.value = null;
    page.change({ cell: Math.max(0, Math.min(count - 1, to)) });
  };
  return (
    <section class="strip-area" aria-label={words.strip(countText(turn.turn + 1), countText(count))}>
      <StripBar page={page} scale={scale} paint={paintIn} />
      <div class="strip-body">
        {/* biome-ignore lint/a11y/noStaticElementInteractions: cells have the focus; the frame hears for them all */}
        {/* biome-ignore lint/a11y/useKeyWithMouseEvents: focus chooses a cell, which shows the same numbers */}
        <div
          ref={frame}
          class="strip-frame"
          onKeyDown={onKeyDown}
          onMouseOver={(event) => {
            page.hover.value = cellOf(event.target);
          }}
          onMouseLeave={() => {
            page.hover.value = null;
          }}
          onClick={(event) => {
            const at = cellOf(event.target);
            if (at === null) return;
            page.change({ cell: at });
            frame.current?.querySelector<HTMLElement>(`[data-cell="${at}"]`)?.focus({ preventScroll: true });
          }}
        >
          <VirtualList
            key={`${turn.turn} ${page.view.value.row}`}
            className="strip mono"
            label={words.strip(countText(turn.turn + 1), countText(count))}
            count={Math.ceil(count / rowCells)}
            estimate={() => 20}
            overscan={1}
            handle={list}
            onRange={(from, to) => {
              range.current = [from, to];
              want();
            }}
            render={(row) => (
              <div class="strip-row">
                <span class="strip-number muted" aria-hidden="true">
                  {countText(tokenOf(row * rowCells) ?? first)}
                </span>
                <span class="strip-cells">
                  {Array.from({ length: Math.min(rowCells, count - row * rowCells) }, (_, offset) => {
                    const at = row * rowCells + offset;
                    const number = tokenOf(at);
                    return (
                      <Cell
                        key={at}
                        at={at}
                        chosen={at === cell}
                        token={number === null ? null : tokens.get(number)}
                        number={number}
                        column={column}
                        scale={scale}
                        paint={paintIn}
                      />
                    );
                  })}
                </span>
              </div>
            )}
          />
        </div>
        <TokenNumbers page={page} count={count} images={images} first={first} />
      </div>
    </section>
  );
}

interface CellProps {
  readonly at: number;
  readonly chosen: boolean;
  /** null: an image; undefined: on its way. */
  readonly token: Token | undefined | null;
  readonly number: number | null;
  readonly column: string | null;
  readonly scale: TokenScale | null;
  readonly paint: (position: number) => Paint | null;
}

function Cell({ at, chosen, token, number, column, scale, paint }: CellProps) {
  const words = inspectorWords();
  const value = token == null || column === null ? undefined : token.number(column);
  const look = value === undefined || scale === null ? null : paint(scale.position(value));
  const off = scale?.kind === "binary" && value === 0;
  const shown = token === null ? "▣" : token === undefined ? "…" : visibleText(token.text);
  const name = number === null ? words.image : `${words.token(countText(number))} ${token?.text ?? ""}`;
  return (
    <span
      role="button"
      data-cell={at}
      tabIndex={chosen ? 0 : -1}
      aria-current={chosen ? "true" : undefined}
      aria-label={
        value === undefined || Number.isNaN(value)
          ? name
          : `${name}, ${words.columns[column!]} ${storedNumber(value, false)}`
      }
      class={`cell${chosen ? " chosen" : ""}${look === null && number !== null ? " bare" : ""}${off ? " off" : ""}`}
      {...(look === null || off ? {} : { style: { backgroundColor: look.background, color: look.color } })}
    >
      {shown === "" ? "∅" : shown}
    </span>
  );
}

interface BarProps extends PageProps {
  readonly scale: TokenScale | null;
  readonly paint: (position: number) => Paint | null;
}

function StripBar({ page, scale, paint }: BarProps) {
  const words = inspectorWords();
  const { columns, trained, tokenCount } = page.outline.value!;
  const offered = colouringColumns.filter((name) => columns.includes(name));
  const column = page.column.value;
  if (column === null) return tokenCount === null ? null : <p class="strip-bar muted">{words.noColumns}</p>;
  const name = words.columns[column] ?? column;
  return (
    <div class="strip-bar">
      <Dropdown
        label={words.colourBy}
        value={column}
        options={offered.map((value) => ({ value, label: words.columns[value] ?? value }))}
        onChange={(chosen) => page.change({ column: chosen })}
      />
      {trained.length > 0 && (
        <Dropdown
          label={words.numbersOf}
          value={page.view.value.row ?? trained.at(-1)!.row}
          options={trained.map(({ step, attempt, pass, row }) => ({
            value: row,
            label: words.step(countText(step), attempt, pass),
          }))}
          onChange={(row) => page.change({ row })}
        />
      )}
      <Button label={`${words.worstHint(name)} (w)`} onPress={() => void jumpToWorst(page)}>
        {words.worst}
      </Button>
      {scale !== null && <Legend name={name} scale={scale} paint={paint} />}
    </div>
  );
}

function Legend({
  name,
  scale,
  paint,
}: { readonly name: string } & Omit<BarProps, "page"> & { readonly scale: TokenScale }) {
  const words = inspectorWords();
  return (
    <span
      class="legend"
      role="img"
      aria-label={`${words.legend(name)}: ${scale.stops.map((stop) => numberText(stop, 3)).join(", ")}`}
    >
      {scale.stops.map((stop) => {
        const look = paint(scale.position(stop));
        const off = scale.kind === "binary" && stop === 0;
        return (
          <span
            key={stop}
            class={`legend-stop${off ? " off" : ""}`}
            {...(look === null || off ? {} : { style: { backgroundColor: look.background, color: look.color } })}
          >
            {scale.kind === "binary" ? (stop === 0 ? words.notTrainedMask : words.trainedMask) : numberText(stop, 3)}
          </span>
        );
      })}
      <span class="legend-stop bare">{words.noNumber}</span>
    </span>
  );
}

interface NumbersProps extends PageProps {
  readonly count: number;
  readonly first: number;
  readonly images: readonly {
    readonly mediaType: string;
    readonly width: number | null;
    readonly height: number | null;
  }[];
}

function TokenNumbers({ page, count, images, first }: NumbersProps) {
  const words = inspectorWords();
  const at = useComputed(() => page.hover.value ?? page.view.value.cell).value;
  const { exact } = page.view.value;
  const cell = Math.max(0, Math.min(count - 1, at));
  const image = images[cell];
  if (image !== undefined) {
    return (
      <div class="numbers">
        <p class="numbers-title">{words.image}</p>
        <p class="muted">
          {image.mediaType} {image.width !== null && image.height !== null && `${image.width} × ${image.height}`}
        </p>
      </div>
    );
  }
  const number = first + cell - images.length;
  const token = page.tokens.value.tokens.get(number);
  const columns = page.outline.value!.columns;
  return (
    <div class="numbers">
      <p class="numbers-title">
        {words.token(countText(number))}{" "}
        <code class="token-text">{token === undefined ? "…" : visibleText(token.text)}</code>
        {token !== undefined && (
          <Button look="icon" label={words.copyHint} onPress={() => page.copy(token.text)}>
            {words.copy}
          </Button>
        )}
      </p>
      <dl class="number-list">
        {token !== undefined &&
          columns.map((name) => {
            const value = token.number(name);
            const known = value !== undefined && !Number.isNaN(value);
            return (
              <div key={name} title={tokenColumns[name as keyof typeof tokenColumns]?.description}>
                <dt class="muted">{words.columns[name] ?? name}</dt>
                <dd class="number" data-column={name}>
                  {known ? storedNumber(value, exact) : value === undefined ? words.onTheWay : "–"}
                </dd>
              </div>
            );
          })}
      </dl>
      <Checkbox checked={exact} onChange={(now) => page.change({ exact: now })}>
        {words.exact}
      </Checkbox>
    </div>
  );
}
