// Runs something soon, but not more often than a pace, and never while it still runs: for views that follow fast changes.

export interface Pacer {
  /** Whatever changed until the work begins is covered by it. */
  readonly ask: () => void;
  readonly dispose: () => void;
}

/** @param later calls back after so many milliseconds; returns how to forget it */
export function createPacer(
  milliseconds: number,
  work: () => Promise<void> | void,
  later: (milliseconds: number, then: () => void) => () => void = (pause, then) => {
    const timer = setTimeout(then, pause);
    return () => clearTimeout(timer);
  },
): Pacer {
  let state: "idle" | "resting" | "asked" = "idle";
  let forget = () => {};
  const run = async () => {
    state = "resting";
    await Promise.resolve(work()).catch(() => {});
    forget = later(milliseconds, () => {
      if (state === "asked") void run();
      else state = "idle";
    });
  };
  return {
    ask: () => {
      if (state === "idle") void run();
      else state = "asked";
    },
    dispose: () => forget(),
  };
}
