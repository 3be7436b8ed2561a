// Sends one run to one client: a snapshot or nothing first, then events without gap or repetition. It holds no queue: it takes what
// is there when the client has taken the last message, and falls back to a snapshot when that is too far behind.
import { RollscopeError } from "../../../../protocol/errors.ts";
import { journalError } from "../../runs/runContext.ts";
import type { MethodSession } from "../methods/methodTypes.ts";
import type { KnownRun } from "./knownRun.ts";

export interface RunFollower {
  dispose(): void;
}

/** Events in one message, and how far behind a client may be before a snapshot is shorter. */
const mostEvents = 256;

/** @param cursor number of the last event that the client has; null: none */
export function followRun(run: KnownRun, session: Pick<MethodSession, "notify">, cursor: number | null): RunFollower {
  let at = cursor;
  let told = "";
  let disposed = false;
  let pumping = false;
  let again = false;

  const send = async () => {
    for (;;) {
      if (disposed) return;
      const events = at === null ? null : run.eventsAfter(at, mostEvents);
      if (events === null) {
        const snapshot = run.snapshot();
        at = snapshot.cursor;
        told = JSON.stringify(snapshot.summary);
        await session.notify("run/delta", { kind: "snapshot", folder: run.path, snapshot });
        continue;
      }
      const summary = run.summary();
      const shown = JSON.stringify(summary);
      if (events.length === 0 && shown === told) return;
      const last = events.at(-1)?.n ?? (at as number);
      at = last;
      told = shown;
      await session.notify("run/delta", {
        kind: "events",
        folder: run.path,
        cursor: last,
        events: [...events],
        summary,
      });
    }
  };

  const pump = async () => {
    if (pumping) {
      again = true;
      return;
    }
    pumping = true;
    try {
      do {
        again = false;
        await send();
      } while (again && !disposed);
    } finally {
      pumping = false;
    }
  };

  const off = run.onChange(() => void pump());
  void pump();
  return {
    dispose() {
      disposed = true;
      off();
    },
  };
}

export function goneError(path: string): ReturnType<typeof journalError> {
  return journalError(
    new RollscopeError("RUN_NOT_FOUND", `The folder ${path} was removed.`, { next: "Close the view." }),
  );
}
