// The time-outs of one rollout: until its first call, between two calls, in total, and of evaluate. Each has its own code.
// Whatever overruns is given up at once; what it still does afterwards is nobody's business and is ignored.
import { type ErrorCode, RollscopeError } from "../../../protocol/errors.ts";
import type { Clock } from "./clock.ts";

/** Milliseconds; null = no limit. */
export interface RolloutLimits {
  readonly start: number | null;
  readonly callGap: number | null;
  readonly total: number;
  readonly evaluate: number;
}

export type Ended<T> =
  | { readonly kind: "returned"; readonly value: T }
  | { readonly kind: "threw"; readonly error: unknown }
  | { readonly kind: "overran"; readonly error: RollscopeError }
  | { readonly kind: "cancelled"; readonly error: RollscopeError };

export interface Watch {
  /** Tells the watch that a call began or ended. */
  onCall(moment: "begun" | "ended"): void;
  /** Runs `work` under the limits. Never rejects. */
  run<T>(work: () => T | Promise<T>): Promise<Ended<T>>;
}

function overrun(code: ErrorCode, sentence: string, next: string): RollscopeError {
  return new RollscopeError(code, sentence, { next });
}

const seconds = (milliseconds: number) => `${milliseconds / 1000} s`;

/** @param cancel aborted with a RollscopeError as its reason when the rollout is no longer wanted */
export function watchRollout(limits: RolloutLimits, clock: Clock, cancel: AbortSignal): Watch {
  let inFlight = 0;
  let stopGap: (() => void) | null = null;
  let give: (error: RollscopeError) => void = () => {};

  const arm = (limit: number | null, error: () => RollscopeError) => {
    stopGap?.();
    stopGap = limit === null ? null : clock.after(limit, () => give(error()));
  };
  return {
    onCall(moment) {
      inFlight += moment === "begun" ? 1 : -1;
      if (inFlight > 0) {
        stopGap?.();
        stopGap = null;
        return;
      }
      arm(limits.callGap, () =>
        overrun(
          "SAMPLING_CALL_GAP_TIMEOUT",
          `The rollout made no further call within ${seconds(limits.callGap ?? 0)}.`,
          "Look at what it does between its calls, or raise sampling.callGapTimeout.",
        ),
      );
    },
    async run<T>(work: () => T | Promise<T>) {
      arm(limits.start, () =>
        overrun(
          "SAMPLING_START_TIMEOUT",
          `The rollout made no call within ${seconds(limits.start ?? 0)}.`,
          "Look at what it does before its first call, or raise sampling.startTimeout.",
        ),
      );
      const ended = await race(work, limits.total, clock, cancel, (fail) => {
        give = fail;
        return overrun(
          "SAMPLING_ROLLOUT_TIMEOUT",
          `The rollout was not over after ${seconds(limits.total)}.`,
          "Let it pass agent.signal to whatever it waits for, or raise sampling.rolloutTimeout.",
        );
      });
      give = () => {};
      stopGap?.();
      stopGap = null;
      return ended;
    },
  };
}

/** Runs a recipe's evaluate under its time-out. Never rejects. */
export function runEvaluate<T>(
  work: () => T | Promise<T>,
  limits: RolloutLimits,
  clock: Clock,
  cancel: AbortSignal,
): Promise<Ended<T>> {
  return race(work, limits.evaluate, clock, cancel, () =>
    overrun(
      "SAMPLING_EVALUATE_TIMEOUT",
      `evaluate was not done after ${seconds(limits.evaluate)}.`,
      "Make evaluate quicker, or raise sampling.evaluateTimeout.",
    ),
  );
}

function race<T>(
  work: () => T | Promise<T>,
  limit: number,
  clock: Clock,
  cancel: AbortSignal,
  begin: (fail: (error: RollscopeError) => void) => RollscopeError,
): Promise<Ended<T>> {
  return new Promise<Ended<T>>((resolve) => {
    const end = (ended: Ended<T>) => {
      stopTimer();
      cancel.removeEventListener("abort", onCancel);
      resolve(ended);
    };
    const onCancel = () => end({ kind: "cancelled", error: cancel.reason as RollscopeError });
    const tooLong = begin((error) => end({ kind: "overran", error }));
    const stopTimer = clock.after(limit, () => end({ kind: "overran", error: tooLong }));
    if (cancel.aborted) {
      onCancel();
      return;
    }
    cancel.addEventListener("abort", onCancel, { once: true });
    // An async wrapper, so that a function that throws at once is treated like one that rejects.
    (async () => await work())().then(
      (value) => end({ kind: "returned", value }),
      (error: unknown) => end({ kind: "threw", error }),
    );
  });
}
