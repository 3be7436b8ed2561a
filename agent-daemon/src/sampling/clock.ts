// Time as the scheduler sees it. Time-outs go through a Clock, so that a test decides when an hour has passed.

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
