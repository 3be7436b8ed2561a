// Adds up the wall time of a step's phases. Times never influence what is computed.
import type { StepTimingName, StepTimings } from "../../../protocol/metrics.ts";

export type PhaseName = Extract<StepTimingName, `time_${string}`>;

export class StepTimer {
  readonly #now: () => number;
  readonly #started: number;
  readonly #times: StepTimings = {};

  constructor(now: () => number) {
    this.#now = now;
    this.#started = now();
  }

  /** Runs `work` and adds its time to the phase, also when it throws. */
  readonly timed = async <T>(name: PhaseName, work: () => T | Promise<T>): Promise<T> => {
    const started = this.#now();
    try {
      return await work();
    } finally {
      this.#times[name] = (this.#times[name] ?? 0) + this.#now() - started;
    }
  };

  finish(tokens: { readonly packed: number; readonly flat: number }): StepTimings {
    const total = this.#now() - this.#started;
    const rate = (count: number) => (total > 0 ? { perSecond: (1000 * count) / total } : null);
    const packed = rate(tokens.packed);
    const flat = rate(tokens.flat);
    return {
      ...this.#times,
      time_step: total,
      ...(packed === null ? {} : { tokens_per_second: packed.perSecond }),
      ...(flat === null ? {} : { flat_tokens_per_second: flat.perSecond }),
    };
  }
}
