// Bounds what one client can have open: so many requests are at work or have answers that the client has not taken, later ones wait
// their turn, and past a limit the client is not listened to until it has taken answers. It holds up nobody else.

export interface TurnstileLimits {
  /** Requests that are at work, or whose answers wait to be taken. */
  readonly open: number;
  /** Requests that wait for their turn; with more nothing is read from the client. */
  readonly waiting: number;
}

export const turnstileLimits: TurnstileLimits = { open: 64, waiting: 256 };

export interface Turnstile {
  /** Resolves when it is the request's turn; in order. */
  enter(): Promise<void>;
  /** An answer was taken. */
  leave(): void;
}

/** @param onCrowded told when too many requests wait, and when they do no longer */
export function createTurnstile(limits: TurnstileLimits, onCrowded: (isCrowded: boolean) => void): Turnstile {
  let open = 0;
  const waiting: (() => void)[] = [];
  return {
    enter() {
      if (open < limits.open) {
        open += 1;
        return Promise.resolve();
      }
      return new Promise((resolve) => {
        waiting.push(resolve);
        if (waiting.length === limits.waiting) onCrowded(true);
      });
    },
    leave() {
      const next = waiting.shift();
      if (next === undefined) open -= 1;
      else next();
      if (waiting.length === limits.waiting - 1 && next !== undefined) onCrowded(false);
    },
  };
}
