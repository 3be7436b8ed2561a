// Where the turns and tokens of a record lie: one small entry a call, in the order the calls were made, without their text. Built
// page by page, so that the first turns can be shown before the last call was read.
import type { CallDocument, Drift } from "../../../../protocol/call.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { TrajectoryOutline } from "../../../../protocol/trajectoryView.ts";

export interface CallEntry {
  readonly id: string;
  readonly parent: string | null;
  readonly keptMessages: number;
  readonly keptTokens: number;
  /** Turns [firstTurn, firstTurn + messages) were put in; the one after them, if any, was sampled. */
  readonly firstTurn: number;
  readonly messages: number;
  readonly answered: boolean;
  /** Sampled tokens [firstToken, firstToken + tokens) of the record. */
  readonly firstToken: number;
  readonly tokens: number;
  readonly drift: Drift;
}

const turnsOf = ({ messages, answered }: CallEntry) => messages + (answered ? 1 : 0);

export class RecordIndex {
  readonly entries: CallEntry[] = [];
  private readonly byId = new Map<string, CallEntry>();
  private readonly parents = new Set<string>();
  turnCount = 0;
  tokenCount = 0;

  add(call: CallDocument): void {
    if (this.byId.has(call.id)) return;
    const entry: CallEntry = {
      id: call.id,
      parent: call.parent,
      keptMessages: call.keptMessages,
      keptTokens: call.keptTokens,
      firstTurn: this.turnCount,
      messages: call.request.messages.length,
      answered: call.message !== null,
      firstToken: this.tokenCount,
      tokens: call.output.length,
      drift: call.drift,
    };
    this.entries.push(entry);
    this.byId.set(entry.id, entry);
    if (entry.parent !== null) this.parents.add(entry.parent);
    this.turnCount += turnsOf(entry);
    this.tokenCount += entry.tokens;
  }

  entry(id: string): CallEntry | undefined {
    return this.byId.get(id);
  }

  /** The call that turn belongs to. */
  ofTurn(turn: number): CallEntry {
    const entry = last(this.entries, ({ firstTurn }) => firstTurn <= turn);
    if (entry !== undefined && turn < entry.firstTurn + turnsOf(entry)) return entry;
    throw new RollscopeError(
      "TRAJECTORY_TURN_UNKNOWN",
      `There is no turn ${turn}; turns go from 0 to ${this.turnCount - 1}.`,
      {
        next: "Open the trajectory again: it may have changed.",
      },
    );
  }

  /** Calls that hold a turn of [from, to), and likewise for tokens. */
  withTurns(from: number, to: number): CallEntry[] {
    return between(this.entries, from, to, ({ firstTurn }) => firstTurn, turnsOf);
  }

  withTokens(from: number, to: number): CallEntry[] {
    return between(
      this.entries,
      from,
      to,
      ({ firstToken }) => firstToken,
      ({ tokens }) => tokens,
    );
  }

  /** From the root to the call, with the entry itself. */
  path(id: string): CallEntry[] {
    const path: CallEntry[] = [];
    for (let entry = this.byId.get(id); entry !== undefined; ) {
      path.push(entry);
      entry = entry.parent === null ? undefined : this.byId.get(entry.parent);
    }
    return path.reverse();
  }

  /** One for each call that no other continues, in order. */
  branches(): TrajectoryOutline["branches"] {
    return this.entries
      .filter(({ id }) => !this.parents.has(id))
      .map(({ id }, index) => {
        const turns: [number, number][] = [];
        for (const entry of this.path(id)) {
          keep(turns, entry.keptMessages);
          append(turns, entry.firstTurn, entry.firstTurn + turnsOf(entry));
        }
        return { leaf: id, turns, drift: index === 0 ? null : this.byId.get(id)!.drift };
      });
  }
}

/** Cuts ranges of turns to their first `count`. */
function keep(turns: [number, number][], count: number): void {
  let left = count;
  for (const [index, range] of turns.entries()) {
    const length = range[1] - range[0];
    if (length <= left) {
      left -= length;
      continue;
    }
    if (left > 0) range[1] = range[0] + left;
    turns.length = left > 0 ? index + 1 : index;
    return;
  }
}

function append(turns: [number, number][], from: number, to: number): void {
  const end = turns.at(-1);
  if (from === to) return;
  if (end !== undefined && end[1] === from) end[1] = to;
  else turns.push([from, to]);
}

/** The last of ascending items for which `holds`, by halving. */
function last<T>(items: readonly T[], holds: (item: T) => boolean): T | undefined {
  return items[firstNot(items, holds) - 1];
}

function firstNot<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(items[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function between<T>(
  items: readonly T[],
  from: number,
  to: number,
  start: (item: T) => number,
  size: (item: T) => number,
): T[] {
  const begin = firstNot(items, (item) => start(item) + size(item) <= from);
  const found: T[] = [];
  for (let at = begin; at < items.length && start(items[at]!) < to; at++)
    if (size(items[at]!) > 0) found.push(items[at]!);
  return found;
}
