// A clock that stands still until the test moves it.
import type { Clock } from "../../agent-daemon/src/sampling/clock.ts";

export interface ManualClock extends Clock {
  /** Moves time on and calls what became due, in order, letting promises settle after each. */
  advance(milliseconds: number): Promise<void>;
  /** Timers that wait. */
  readonly waiting: number;
}

/** Lets everything that is ready to run do so. */
async function settle(): Promise<void> {
  for (let round = 0; round < 20; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}

export function manualClock(start = 1_000_000): ManualClock {
  let now = start;
  const timers = new Set<{ at: number; run: () => void }>();
  return {
    now: () => now,
    after(milliseconds, run) {
      const timer = { at: now + milliseconds, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    get waiting() {
      return timers.size;
    },
    async advance(milliseconds) {
      await settle();
      const end = now + milliseconds;
      for (;;) {
        const due = [...timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        timers.delete(due);
        now = due.at;
        due.run();
        await settle();
      }
      now = end;
      await settle();
    },
  };
}
