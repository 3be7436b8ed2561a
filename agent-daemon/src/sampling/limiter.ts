// How many rollouts may be in flight at once. First come, first served, so that tasks start in data order; and one in each turn
// of the event loop, so that a hundred beginnings (templates, tokenizer, store) do not hold up everything else.
import type { RollscopeError } from "../../../protocol/errors.ts";

export interface Limiter {
  /** Waits for a place; the returned function gives it back. Rejects with the signal's reason when it aborts while waiting. */
  enter(signal: AbortSignal): Promise<() => void>;
}

/** @param places how many may be inside; Infinity = no limit */
export function createLimiter(places: number): Limiter {
  let free = places;
  const waiting: (() => void)[] = [];
  const leave = () => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  const pass = () => {
    let inside = true;
    return () => {
      if (inside) leave();
      inside = false;
    };
  };
  let last = Promise.resolve();
  const ownTurn = () => {
    last = last.then(() => new Promise<void>((resolve) => setImmediate(resolve)));
    return last;
  };
  return {
    async enter(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        await ownTurn();
        return pass();
      }
      const given = await new Promise<() => void>((resolve, reject) => {
        const admit = () => {
          signal.removeEventListener("abort", giveUp);
          resolve(pass());
        };
        const giveUp = () => {
          waiting.splice(waiting.indexOf(admit), 1);
          reject(signal.reason as RollscopeError);
        };
        waiting.push(admit);
        signal.addEventListener("abort", giveUp, { once: true });
      });
      await ownTurn();
      return given;
    },
  };
}
