// What a view can ask of an open trajectory, wherever it comes from: a record of a run, or a file of another tool. Everything is
// read piece by piece; nothing here may need the whole trajectory in memory.
import type { BulkArray } from "../../../../protocol/bulkFrame.ts";
import type { DaemonResult } from "../../../../protocol/daemonMethods.ts";
import type {
  TokenColumnName,
  TrajectoryOutline,
  TrajectoryRow,
  TurnView,
} from "../../../../protocol/trajectoryView.ts";

/** Arrays and what is small beside them, for one bulk frame. */
export interface BulkAnswer {
  readonly arrays: ReadonlyMap<string, BulkArray>;
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface TokenRequest {
  /** Sampled tokens [from, to) of the trajectory. */
  readonly from: number;
  readonly to: number;
  readonly columns: readonly TokenColumnName[];
  /** Training row whose numbers are wanted; null: the last one. */
  readonly row: string | null;
}

export type Extreme = DaemonResult<"trajectory/extreme">;
export type ExtremeKind = "least" | "greatest" | "absolute";
export type SearchResult = DaemonResult<"trajectory/search">;

export interface OpenTrajectory {
  outline(): TrajectoryOutline;
  /** Resolves when all that is stored of it now can be read, however large it is; what comes later is not waited for. */
  indexed(): Promise<void>;
  /** Turns [from, to) of those that are there. */
  turns(from: number, to: number): Promise<TurnView[]>;
  /** Characters [from, to) of a part that a turn shows cut. */
  part(turn: number, part: number, from: number, to: number): Promise<{ text: string; characters: number }>;
  raw(turn: number): Promise<string>;
  tokens(request: TokenRequest): Promise<BulkAnswer>;
  extreme(column: TokenColumnName, row: string | null, most: ExtremeKind): Promise<Extreme>;
  search(text: string, fromTurn: number, limit: number): Promise<SearchResult>;
  /** The other trajectories of its group. */
  siblings(): Promise<TrajectoryRow[]>;
  image(handle: string): Promise<BulkAnswer>;
  dispose(): Promise<void>;
}

/** Characters of a part that a turn shows at once; the rest is announced and read on request. */
export const shownCharacters = 20_000;

/** The token with the least, the greatest or the largest absolute number; null when there is no number. */
export function extremeOf(values: ArrayLike<number>, most: ExtremeKind): Extreme {
  let found: { token: number; value: number } | null = null;
  const key = (value: number) => (most === "least" ? -value : most === "greatest" ? value : Math.abs(value));
  for (let token = 0; token < values.length; token++) {
    const value = values[token]!;
    if (Number.isNaN(value) || (found !== null && key(value) <= key(found.value))) continue;
    found = { token, value };
  }
  return found;
}
