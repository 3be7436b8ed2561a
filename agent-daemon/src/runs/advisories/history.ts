// What advisories look at: the committed steps of a run in order, and how long its phases take, read from journal events one by
// one. It holds numbers only, and a bounded count of them; a step that a resume made void is gone from it.
import type { JournalEvent, RunPhase } from "../../../../protocol/journal.ts";

export interface StepPoint {
  readonly step: number;
  /** Metrics as written; values may be NaN or infinite. */
  readonly metrics: Readonly<Record<string, number>>;
}

export interface RunHistory {
  /** Ascending in step; of several attempts at a step, the one that counts. A long run lacks those between its first and its newest. */
  readonly steps: readonly StepPoint[];
  /** The phase now; null before the first and after the end. */
  readonly phase: { readonly phase: RunPhase; readonly step: number; readonly since: number } | null;
  /** Milliseconds that each phase took when it ended, newest last. */
  readonly durations: ReadonlyMap<RunPhase, readonly number[]>;
}

/** Durations kept of each phase. */
const keptDurations = 32;

/** Steps kept of a long run: the first ones, which others are compared with, and the newest, at least so many. */
const keptFirst = 64;
const keptNewest = 2000;

export interface HistoryReader {
  read(event: JournalEvent): void;
  history(): RunHistory;
}

export function readHistory(): HistoryReader {
  const steps: StepPoint[] = [];
  const durations = new Map<RunPhase, number[]>();
  let phase: RunHistory["phase"] = null;
  const endPhase = (at: number) => {
    if (phase === null) return;
    const own = durations.get(phase.phase) ?? [];
    own.push(at - phase.since);
    if (own.length > keptDurations) own.shift();
    durations.set(phase.phase, own);
    phase = null;
  };
  const forgetFrom = (step: number) => {
    while (steps.length > 0 && steps[steps.length - 1]!.step >= step) steps.pop();
  };
  return {
    read(event) {
      switch (event.type) {
        case "started":
          // The process that was in a phase is gone; how long it had been there says nothing.
          phase = null;
          if (event.resumed !== null) forgetFrom(event.resumed.step + 1);
          return;
        case "phase":
          endPhase(event.at);
          phase = { phase: event.phase, step: event.step, since: event.at };
          return;
        case "step":
          forgetFrom(event.step);
          steps.push({ step: event.step, metrics: event.metrics });
          // Many at once, so that what is seen begins at the same step for long.
          if (steps.length > keptFirst + 2 * keptNewest) steps.splice(keptFirst, steps.length - keptFirst - keptNewest);
          return;
        case "ended":
          phase = null;
          return;
        default:
          return;
      }
    },
    history: () => ({ steps, phase, durations }),
  };
}
