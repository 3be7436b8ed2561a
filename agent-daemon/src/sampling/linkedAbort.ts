// An abort controller that follows another signal. Many rollouts listen to one such signal, so it has no limit of listeners,
// and it stops following when it is no longer needed.
import { setMaxListeners } from "node:events";

export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Stops following the parent; the signal stays as it is. */
  dispose(): void;
}

export function linkedAbort(parent: AbortSignal): LinkedAbort {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  const follow = () => controller.abort(parent.reason);
  if (parent.aborted) follow();
  else parent.addEventListener("abort", follow, { once: true });
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    dispose: () => parent.removeEventListener("abort", follow),
  };
}
