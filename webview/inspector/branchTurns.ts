// The turns of a branch as one list: place in the list to turn number, and back. Pure.
import type { TrajectoryOutline } from "../../protocol/trajectoryView.ts";

export interface TurnOrder {
  readonly count: number;
  turnAt(place: number): number;
  /** −1: the branch does not have it. */
  placeOf(turn: number): number;
}

export function branchTurns(outline: TrajectoryOutline | null, branch: number): TurnOrder {
  const chosen = outline?.branches[branch] ?? outline?.branches[0];
  const ranges = chosen?.turns ?? (outline === null ? [] : [[0, outline.turnCount] as const]);
  return {
    count: ranges.reduce((sum, [from, to]) => sum + to - from, 0),
    turnAt: (place) => {
      let rest = place;
      for (const [from, to] of ranges) {
        if (rest < to - from) return from + rest;
        rest -= to - from;
      }
      return -1;
    },
    placeOf: (turn) => {
      let before = 0;
      for (const [from, to] of ranges) {
        if (turn >= from && turn < to) return before + turn - from;
        before += to - from;
      }
      return -1;
    },
  };
}
