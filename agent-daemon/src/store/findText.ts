// Finds a text as it was typed, whatever its case, and shows what stands around it. Every search in trajectories is by this.

import type { SearchPlace } from "../../../protocol/daemonMethods.ts";

export interface TextHit {
  /** Character at which it begins. */
  readonly at: number;
  readonly excerpt: string;
}

/** Characters around a hit. */
const margin = 40;

/** `most`: hits after which it stops; a single letter in megabytes of text has no end of them. */
export function textFinder(text: string): (within: string, most?: number) => TextHit[] {
  const pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "giu");
  const lower = text.toLowerCase();
  return (within, most = Number.POSITIVE_INFINITY) => {
    const hits: TextHit[] = [];
    // Many times faster than the pattern where there is nothing to find.
    if (!within.toLowerCase().includes(lower)) return hits;
    for (const { index, 0: hit } of within.matchAll(pattern)) {
      if (hits.length >= most) break;
      hits.push({ at: index, excerpt: within.slice(Math.max(0, index - margin), index + hit.length + margin) });
    }
    return hits;
  };
}

export interface TurnHit extends TextHit {
  readonly turn: number;
  readonly in: SearchPlace;
  /** Number of the part, or of the tool call. */
  readonly part: number;
}

/** What of a turn is searched: its parts by number, an empty text where one has none, and its tool calls. */
export interface TurnTexts {
  readonly parts: readonly string[];
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
}

/** Hits that are given of one turn: a single letter in megabytes of text has no end of them. */
const mostPerTurn = 1000;

/** Hits in a turn, in the order in which it is shown; `cut`: it has more. */
export function findInTurn(
  find: ReturnType<typeof textFinder>,
  turn: number,
  { parts, toolCalls }: TurnTexts,
): { readonly hits: TurnHit[]; readonly cut: boolean } {
  const hits: TurnHit[] = [];
  const look = (place: SearchPlace, part: number, text: string) => {
    for (const hit of find(text, mostPerTurn + 1 - hits.length)) hits.push({ turn, in: place, part, ...hit });
  };
  parts.forEach((text, part) => void look("part", part, text));
  toolCalls.forEach((call, part) => {
    look("toolName", part, call.name);
    look("toolCall", part, call.arguments);
  });
  return { hits: hits.slice(0, mostPerTurn), cut: hits.length > mostPerTurn };
}
