// Time as the scheduler sees it. Time-outs go through a Clock, so that a test decides when an hour has passed, and so that a
// person at a breakpoint has all the time there is.
import inspector from "node:inspector";

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` once after `milliseconds`, unless the returned function was called before. */
  after(milliseconds: number, run: () => void): () => void;
}

/** The longest delay that timers of the platform keep; longer ones would fire at once. */
const longestDelay = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(milliseconds, run) {
    const timer = setTimeout(run, Math.min(milliseconds, longestDelay));
    return () => clearTimeout(timer);
  },
};

/** At most this much of a limit passes while the thread stands still, each time that it does. */
const sliceMilliseconds = 100;

/** The system's clock, whose limits stand still while a debugger holds this thread. */
export const runClock: Clock = clockBesideDebugger(systemClock, () => inspector.url() !== undefined);

/**
 * A clock whose `after` counts only the time in which the thread ran: in slices, of which one that took longer was a stop at a
 * breakpoint. Without a debugger it is `clock` itself, and an endless loop uses its limit up.
 *
 * @param isOpen whether a debugger may be there, asked when a wait begins
 */
export function clockBesideDebugger(clock: Clock, isOpen: () => boolean): Clock {
  return {
    now: clock.now,
    after(milliseconds, run) {
      if (!isOpen()) return clock.after(milliseconds, run);
      let left = milliseconds;
      let stop = () => {};
      const wait = () => {
        const slice = Math.min(left, sliceMilliseconds);
        stop = clock.after(slice, () => {
          left -= slice;
          if (left > 0) wait();
          else run();
        });
      };
      wait();
      return () => stop();
    },
  };
}
