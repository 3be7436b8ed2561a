// Text search in the turns of a trajectory, from a turn on, a page at a time.
import { textFinder } from "../findText.ts";
import type { TurnSequence } from "./turns.ts";

export interface SearchOptions {
  /** First turn to look at. */
  readonly from?: number;
  /** Hits after which it stops, at the end of a turn; default 100. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

export interface SearchHit {
  readonly turn: number;
  /** What of the turn: a part, or the arguments of a tool call, by number. */
  readonly in: "part" | "toolCall";
  readonly number: number;
  /** Character in it. */
  readonly at: number;
  readonly excerpt: string;
}

export interface SearchPage {
  readonly hits: readonly SearchHit[];
  /** Turn to go on from; null when all were looked at. */
  readonly next: number | null;
}

const turnsAtOnce = 64;
/** Hits of one turn. */
const mostPerTurn = 1000;

export async function searchTurns(
  turns: TurnSequence,
  text: string,
  { from = 0, limit = 100, signal }: SearchOptions,
): Promise<SearchPage> {
  const hits: SearchHit[] = [];
  if (text === "") return { hits, next: null };
  const find = textFinder(text);
  for (let first = Math.max(0, from); first < turns.count; first += turnsAtOnce) {
    signal?.throwIfAborted();
    const read = await turns.read(first, Math.min(turns.count, first + turnsAtOnce));
    for (const [offset, each] of read.entries()) {
      const turn = first + offset;
      const before = hits.length;
      const look = (within: string, where: SearchHit["in"], number: number) => {
        const left = mostPerTurn - (hits.length - before);
        for (const hit of find(within, left)) hits.push({ turn, in: where, number, ...hit });
      };
      each.parts.forEach((part, number) => {
        if (part.kind !== "image") look(part.text, "part", number);
      });
      each.toolCalls.forEach((call, number) => {
        look(call.arguments, "toolCall", number);
      });
      if (hits.length >= limit && turn + 1 < turns.count) return { hits, next: turn + 1 };
    }
  }
  return { hits, next: null };
}
