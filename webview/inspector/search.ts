// A search through the trajectory: hits in order, page by page, and which of them is in sight. A new text ends the search before.
import { type ReadonlySignal, signal } from "@preact/signals";
import type { DaemonResult } from "../../protocol/daemonMethods.ts";

type Found = DaemonResult<"trajectory/search">;
export type Hit = Found["hits"][number];

export interface SearchState {
  readonly text: string;
  readonly hits: readonly Hit[];
  /** Turn to go on from; null: searched to the end. */
  readonly next: number | null;
  /** A turn has more places than are listed. */
  readonly cut: boolean;
  readonly running: boolean;
  readonly current: number;
}

export interface Search {
  readonly state: ReadonlySignal<SearchState>;
  run(text: string): Promise<void>;
  more(): Promise<void>;
  choose(index: number): void;
  /** On to the next hit, or back. */
  step(by: 1 | -1): Promise<void>;
  forget(): void;
}

interface SearchParts {
  readonly find: (text: string, fromTurn: number, limit: number, signal: AbortSignal) => Promise<Found>;
  readonly onError: (error: unknown) => void;
  readonly onChoose: (hit: Hit, length: number) => void;
}

const pageHits = 200;
const mostHits = 5000;
const none: SearchState = { text: "", hits: [], next: null, cut: false, running: false, current: -1 };

export function openSearch({ find, onError, onChoose }: SearchParts): Search {
  const state = signal<SearchState>(none);
  let running = new AbortController();

  const read = async (fromTurn: number) => {
    running = new AbortController();
    const { signal: abort } = running;
    const before = state.peek();
    state.value = { ...before, running: true };
    try {
      const { hits, next, cut } = await find(before.text, fromTurn, pageHits, abort);
      if (abort.aborted) return;
      const all = [...state.peek().hits, ...hits];
      const full = all.length >= mostHits && next !== null;
      state.value = {
        ...state.peek(),
        hits: all,
        next: full ? null : next,
        cut: state.peek().cut || cut || full,
        running: false,
      };
    } catch (error) {
      if (abort.aborted) return;
      state.value = { ...state.peek(), running: false };
      onError(error);
    }
  };
  const choose = (index: number) => {
    const hit = state.peek().hits[index];
    if (hit === undefined) return;
    state.value = { ...state.peek(), current: index };
    onChoose(hit, state.peek().text.length);
  };
  const more = async () => {
    const { next, running: busy } = state.peek();
    if (next !== null && !busy) await read(next);
  };
  return {
    state,
    run: async (text) => {
      running.abort();
      state.value = { ...none, text };
      if (text !== "") await read(0);
    },
    more,
    choose,
    step: async (by) => {
      const { current, hits } = state.peek();
      if (current + by >= hits.length) await more();
      const { length } = state.peek().hits;
      if (length > 0) choose((current + by + length) % length);
    },
    forget: () => {
      running.abort();
      state.value = none;
    },
  };
}
