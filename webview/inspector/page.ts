// The inspector's state in one place: which trajectory, what of it is here, what was chosen. Components read its signals and call it.
import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { SearchPlace } from "../../protocol/daemonMethods.ts";
import type { PageState } from "../../protocol/pageHost.ts";
import type { TrajectoryOutline, TrajectorySource, TurnView } from "../../protocol/trajectoryView.ts";
import { beginHostSession } from "../shared/hostSession.ts";
import { type Opening, type Problem, problemOf } from "../shared/problem.ts";
import { type PageClient, PageError } from "../shared/rpc.ts";
import { countText } from "../shared/text.ts";
import type { Transport } from "../shared/transport.ts";
import { branchTurns, type TurnOrder } from "./branchTurns.ts";
import { type PagedStore, pagedStore } from "./pagedStore.ts";
import { openSearch, type Search } from "./search.ts";
import { colouringColumns } from "./tokenScale.ts";
import { type TokenStore, tokenStore } from "./tokenStore.ts";
import { readView, type View } from "./view.ts";
import { inspectorWords } from "./words.ts";

/** Place of a text that is to be seen: a hit of a search. */
export interface Mark {
  readonly turn: number;
  readonly in: SearchPlace;
  /** Number of the part, or of the tool call. */
  readonly part: number;
  readonly at: number;
  readonly length: number;
}

export interface InspectorPage {
  readonly client: PageClient;
  readonly opening: ReadonlySignal<Opening>;
  readonly source: ReadonlySignal<TrajectorySource>;
  readonly outline: ReadonlySignal<TrajectoryOutline | null>;
  readonly view: Signal<View>;
  readonly turns: ReadonlySignal<PagedStore<TurnView>>;
  readonly tokens: ReadonlySignal<TokenStore>;
  /** Turns of the chosen branch. */
  readonly order: ReadonlySignal<TurnOrder>;
  readonly column: ReadonlySignal<string | null>;
  readonly search: Search;
  readonly mark: Signal<Mark | null>;
  /** Cell under the pointer. */
  readonly hover: Signal<number | null>;
  readonly dialog: Signal<"help" | "go" | null>;
  readonly said: ReadonlySignal<string>;
  readonly problem: Signal<Problem | null>;
  change(part: Partial<View>): void;
  chooseTurn(turn: number, cell?: number): void;
  /** Another trajectory of the same file, by its place before or behind this one. */
  stepTrajectory(by: 1 | -1): void;
  /** By number in the trajectory; finds its turn. */
  chooseToken(token: number): Promise<void>;
  copy(text: string): void;
  report(error: unknown): void;
  say(text: string): void;
}

const pageTurns = 50;
const keptTurnPages = 16;

/** Turns that are looked through for the first sampled one. */
const mostSought = 32;

export function openPage(client: PageClient, transport: Transport): InspectorPage {
  const opening = signal<Opening>({ state: "opening" });
  const source = signal<TrajectorySource>({ kind: "file", path: "-", index: 0 });
  const outline = signal<TrajectoryOutline | null>(null);
  const view = signal<View>(readView({}));
  const said = signal("");
  const problem = signal<Problem | null>(null);
  const pageState = computed<PageState>(() => ({ page: "inspector", source: source.value, view: view.value }));
  const report = (error: unknown) => {
    if (error instanceof PageError && error.code === "CONNECTION_LOST") return;
    problem.value = problemOf(error);
  };

  const storeOfTurns = () => {
    const from = source.peek();
    return pagedStore<TurnView>(
      pageTurns,
      keptTurnPages,
      async (first, to, abort) =>
        (await client.call("trajectory/turns", { source: from, from: first, to }, { signal: abort })).turns,
      report,
    );
  };
  const turns = signal(storeOfTurns());
  const order = computed(() => branchTurns(outline.value, view.value.branch));
  const columnNames = computed(() => outline.value?.columns.join(" ") ?? "");
  const row = computed(() => view.value.row);
  const tokens = signal(tokenStore(client, source.peek(), [], null, report));
  effect(() => {
    const columns = columnNames.value.split(" ").filter((name) => name !== "");
    const next = tokenStore(client, source.value, columns, row.value, report);
    tokens.peek().dispose();
    tokens.value = next;
  });
  const column = computed(() => {
    const offered = colouringColumns.filter((name) => columnNames.value.split(" ").includes(name));
    const { column: chosen } = view.value;
    return chosen !== null && offered.includes(chosen) ? chosen : (offered[0] ?? null);
  });

  const sameSource = (other: TrajectorySource) => JSON.stringify(other) === JSON.stringify(source.peek());
  const takeOutline = (next: TrajectoryOutline) => {
    const before = outline.peek();
    if (before !== null && (before.turnCount !== next.turnCount || before.tokenCount !== next.tokenCount)) {
      turns.peek().grow();
      tokens.peek().tokens.grow();
    }
    outline.value = next;
    document.title = next.row.taskName ?? next.row.id;
  };
  /** @param leaving closed afterwards: two of one file would else have it read anew */
  const openTrajectory = async (leaving: TrajectorySource | null = null) => {
    const wanted = source.peek();
    try {
      const next = await client.call("trajectory/open", { source: wanted });
      if (!sameSource(wanted)) return;
      takeOutline(next);
      opening.value = { state: "open" };
      if (view.peek().turn >= next.turnCount && next.complete) chooseTurn(Math.max(0, next.turnCount - 1));
      if (view.peek().sampled && next.turnCount > 0) await beginAtSampled(wanted, next.turnCount);
    } catch (error) {
      if (!sameSource(wanted) || (error instanceof PageError && error.code === "CONNECTION_LOST")) return;
      opening.value = { state: "failed", ...problemOf(error) };
    } finally {
      if (leaving !== null && !sameSource(leaving))
        client.call("trajectory/close", { source: leaving }).catch(() => {});
    }
  };
  /** Whoever comes from a step or a list wants the tokens. */
  const beginAtSampled = async (wanted: TrajectorySource, turnCount: number) => {
    const found = await sampledFrom(0, Math.min(turnCount, mostSought)).catch(() => null);
    if (!sameSource(wanted)) return;
    const untouched = view.peek().turn === 0;
    change({ sampled: false });
    if (found !== null && untouched) chooseTurn(found.turn);
  };
  const show = (state: PageState) => {
    if (state.page !== "inspector") return;
    const leaving = outline.peek() === null || sameSource(state.source) ? null : source.peek();
    if (!sameSource(state.source)) {
      opening.value = { state: "opening" };
      outline.value = null;
      source.value = state.source;
      turns.peek().dispose();
      turns.value = storeOfTurns();
      search.forget();
      mark.value = null;
      problem.value = null;
    }
    view.value = readView(state.view);
    void openTrajectory(leaving);
  };

  beginHostSession(client, transport, {
    state: pageState,
    show,
    again: () => void openTrajectory(),
    failed: (why) => {
      opening.value = { state: "failed", ...why };
    },
  });
  client.on("trajectory/changed", (changed) => {
    if (sameSource(changed.source)) takeOutline(changed.outline);
  });

  const change = (part: Partial<View>) => {
    view.value = { ...view.peek(), ...part };
  };
  const mark = signal<Mark | null>(null);
  const hover = signal<number | null>(null);
  const chooseTurn = (turn: number, cell = 0) => {
    hover.value = null;
    if (mark.peek()?.turn !== turn) mark.value = null;
    const branches = outline.peek()?.branches ?? [];
    const within = (branch: number) => branches[branch]?.turns.some(([from, to]) => turn >= from && turn < to) === true;
    const other = within(view.peek().branch) ? view.peek().branch : branches.findIndex((_, branch) => within(branch));
    change({ turn, cell, branch: Math.max(0, other) });
  };
  const stepTrajectory = (by: 1 | -1) => {
    const from = source.peek();
    const count = outline.peek()?.inFile ?? 0;
    if (from.kind !== "file" || from.index + by < 0 || from.index + by >= count) return;
    const { column, mode, exact } = view.peek();
    show({ page: "inspector", source: { ...from, index: from.index + by }, view: { column, mode, exact } });
  };
  const turnAt = async (turn: number) => {
    await turns.peek().want(turn, turn + 1);
    return turns.peek().get(turn);
  };
  /** First turn with tokens at or behind one. */
  const sampledFrom = async (turn: number, end: number) => {
    for (let at = turn; at < end; at++) {
      const found = await turnAt(at);
      if (found !== undefined && found.tokens !== null) return found;
    }
    return null;
  };
  const chooseToken = async (token: number) => {
    let low = 0;
    let high = outline.peek()?.turnCount ?? 0;
    // Tokens are in order of turns.
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const found = await sampledFrom(middle, high);
      if (found?.tokens == null || token < found.tokens.first) high = middle;
      else if (token >= found.tokens.first + found.tokens.length) low = found.turn + 1;
      else {
        const images = found.parts.filter((part) => part.kind === "image").length;
        return chooseTurn(found.turn, images + token - found.tokens.first);
      }
    }
    say(inspectorWords().noToken(countText(token)));
  };
  const say = (text: string) => {
    said.value = text;
  };
  const search = openSearch({
    find: (text, fromTurn, limit, abort) =>
      client.call("trajectory/search", { source: source.peek(), text, fromTurn, limit }, { signal: abort }),
    onError: report,
    onChoose: (hit, length) => {
      mark.value = { turn: hit.turn, in: hit.in, part: hit.part, at: hit.at, length };
      chooseTurn(hit.turn);
      change({ mode: "chat" });
    },
  });

  return {
    client,
    opening,
    source,
    outline,
    view,
    turns,
    tokens,
    order,
    column,
    search,
    mark,
    hover,
    dialog: signal<"help" | "go" | null>(null),
    said,
    problem,
    change,
    chooseTurn,
    stepTrajectory,
    chooseToken,
    copy: (text) => {
      client.call("host/copy", { text }).then(() => say(inspectorWords().copied), report);
    },
    report,
    say,
  };
}
