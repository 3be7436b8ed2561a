// Text search in the turns of a trajectory, from a turn on, a page at a time.
import { findInTurn, type TurnHit, textFinder } from "../findText.ts";
import type { TurnSequence } from "./turns.ts";

export interface SearchOptions {
  /** First turn to look at. */
  readonly from?: number;
  /** Hits after which it stops, at the end of a turn; default 100. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

export interface SearchPage {
  readonly hits: readonly TurnHit[];
  /** Turn to go on from; null when all were looked at. */
  readonly next: number | null;
  /** A turn has more hits than are given of one turn. */
  readonly cut: boolean;
}

const turnsAtOnce = 64;

export async function searchTurns(
  turns: TurnSequence,
  text: string,
  { from = 0, limit = 100, signal }: SearchOptions,
): Promise<SearchPage> {
  const hits: TurnHit[] = [];
  let cut = false;
  if (text === "") return { hits, next: null, cut };
  const find = textFinder(text);
  for (let first = Math.max(0, from); first < turns.count; first += turnsAtOnce) {
    signal?.throwIfAborted();
    const read = await turns.read(first, Math.min(turns.count, first + turnsAtOnce));
    for (const [offset, { parts, toolCalls }] of read.entries()) {
      const turn = first + offset;
      const texts = parts.map((part) => (part.kind === "image" ? "" : part.text));
      const found = findInTurn(find, turn, { parts: texts, toolCalls });
      hits.push(...found.hits);
      cut ||= found.cut;
      if (hits.length >= limit && turn + 1 < turns.count) return { hits, next: turn + 1, cut };
    }
  }
  return { hits, next: null, cut };
}
