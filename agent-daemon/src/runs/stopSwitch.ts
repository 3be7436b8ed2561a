// Holds what people have asked a run to do: stop at the next safe point, stop at once, pause, go on. The loop asks at its
// safe points; only "at once" interrupts what is going on.
import { setMaxListeners } from "node:events";
import { RollscopeError } from "../../../protocol/errors.ts";

export interface StopSwitch {
  /** Aborted by the second request to stop, or by stopNow; its reason is RUN_STOPPED. */
  readonly now: AbortSignal;
  readonly stopping: boolean;
  /** What ended the run from outside of its loop; null when nothing did. */
  readonly failure: { readonly error: unknown } | null;
  readonly pausing: boolean;
  /** First call: stop at the next safe point. Second call: at once. */
  stop(): void;
  stopNow(): void;
  /** Ends the run at once as failed: something broke that the loop does not see. */
  fail(error: unknown): void;
  pause(): void;
  resume(): void;
  /** Waits while paused; false when the run shall end here. `onPaused` is called once if it has to wait. */
  safePoint(onPaused: () => void): Promise<boolean>;
}

export function createStopSwitch(): StopSwitch {
  const now = new AbortController();
  // Every group of a wave listens to it.
  setMaxListeners(0, now.signal);
  let stopping = false;
  let pausing = false;
  let failure: StopSwitch["failure"] = null;
  const wake: (() => void)[] = [];
  const changed = () => {
    for (const each of wake.splice(0)) each();
  };
  const stopNow = () => {
    stopping = true;
    now.abort(
      new RollscopeError("RUN_STOPPED", "The run was stopped at once.", {
        next: "`rollscope resume` goes on from its last whole checkpoint.",
      }),
    );
    changed();
  };
  return {
    now: now.signal,
    get stopping() {
      return stopping;
    },
    get pausing() {
      return pausing;
    },
    stop() {
      if (stopping) {
        stopNow();
        return;
      }
      stopping = true;
      changed();
    },
    stopNow,
    get failure() {
      return failure;
    },
    fail(error) {
      failure ??= { error };
      stopNow();
    },
    pause() {
      if (stopping) return;
      pausing = true;
      changed();
    },
    resume() {
      pausing = false;
      changed();
    },
    async safePoint(onPaused) {
      if (pausing && !stopping) {
        onPaused();
        while (pausing && !stopping) await new Promise<void>((resolve) => wake.push(resolve));
      }
      return !stopping;
    },
  };
}
