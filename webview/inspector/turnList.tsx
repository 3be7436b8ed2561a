// The turns of the chosen branch, any number of them: who spoke, how it begins, how many tokens were sampled.
import { useEffect, useRef } from "preact/hooks";
import type { TurnView } from "../../protocol/trajectoryView.ts";
import { ansiReader } from "../shared/ansi.ts";
import { countText } from "../shared/text.ts";
import { VirtualList, type VirtualListHandle } from "../shared/virtualList.tsx";
import type { InspectorPage } from "./page.ts";
import { inspectorWords } from "./words.ts";

const rowHeight = 42;
const settleMilliseconds = 50;

export function TurnList({ page }: { readonly page: InspectorPage }) {
  const words = inspectorWords();
  const order = page.order.value;
  const turns = page.turns.value;
  turns.version.value;
  const handle = useRef<VirtualListHandle>(null);
  const range = useRef<[number, number]>([0, 30]);
  const timer = useRef<number | undefined>(undefined);
  const place = order.placeOf(page.view.value.turn);

  const want = () => {
    const [first, last] = range.current;
    const places = [first, last].map((at) => Math.max(0, Math.min(order.count - 1, at)));
    const [from, to] = places.map((at) => order.turnAt(at)) as [number, number];
    if (order.count > 0) void turns.want(Math.min(from, to), Math.max(from, to) + 1);
  };
  useEffect(want, [turns, order]);
  useEffect(() => {
    if (place >= 0) handle.current?.scrollToIndex(place);
  }, [place, turns]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  if (order.count === 0) return <p class="notice muted">{words.noTurns}</p>;
  return (
    <VirtualList
      className="turn-list"
      kind="listbox"
      label={words.turns}
      count={order.count}
      estimate={() => rowHeight}
      fixed
      overscan={2}
      active={place}
      onActive={(index) => page.chooseTurn(order.turnAt(index))}
      onRange={(first, last) => {
        const begins = range.current[1] === 30 && last <= 60;
        range.current = [first, last];
        window.clearTimeout(timer.current);
        // Turns that a fast scroll passes by are not read.
        if (begins) want();
        else timer.current = window.setTimeout(want, settleMilliseconds);
      }}
      handle={handle}
      render={(index) => {
        const number = order.turnAt(index);
        return <TurnLine number={number} turn={turns.get(number)} />;
      }}
    />
  );
}

function TurnLine({ number, turn }: { readonly number: number; readonly turn: TurnView | undefined }) {
  const words = inspectorWords();
  const flags = turn === undefined ? [] : flagsOf(turn);
  return (
    <div class={`turn-line role-${turn?.role ?? "none"}`}>
      <span class="turn-role">
        {countText(number + 1)} {turn === undefined ? "…" : (turn.result?.name ?? words.roles[turn.role])}
      </span>
      <span class="number muted">
        {flags.join(" ")}
        {turn?.tokens != null && ` ${words.tokensOf(countText(turn.tokens.length))}`}
      </span>
      <span class="turn-snippet muted">{turn === undefined ? "" : snippetOf(turn)}</span>
    </div>
  );
}

function flagsOf(turn: TurnView): string[] {
  const words = inspectorWords();
  return [
    ...(turn.error !== null || turn.result?.error != null ? [words.failed] : []),
    ...(turn.drift !== null ? [turn.drift.kind] : []),
    ...(turn.demonstration ? [words.demonstration] : []),
  ];
}

/** How a turn begins, on one line. */
function snippetOf(turn: TurnView): string {
  const words = inspectorWords();
  const [call] = turn.toolCalls;
  const said = turn.parts.find((part) => part.kind === "text" && part.text.trim() !== "");
  if (said?.kind === "text") {
    const reader = ansiReader();
    reader.write(said.text.slice(0, 400));
    const plain = reader.lines.map((line) => line.map((run) => run.text).join("")).join(" ");
    return plain.slice(0, 160).trim().replace(/\s+/g, " ");
  }
  if (call !== undefined) return `${call.name}(${call.arguments.slice(0, 120)})`;
  if (turn.parts.some((part) => part.kind === "image")) return words.image;
  const reasoning = turn.parts.find((part) => part.kind === "reasoning");
  return reasoning?.kind === "reasoning" ? reasoning.text.slice(0, 160).trim() : "";
}
