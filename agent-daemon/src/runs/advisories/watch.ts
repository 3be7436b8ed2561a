// The advisories of one run while its events come in: what the daemon tells its clients and what a terminal shows are made here, so
// that both say the same at the same time. It starts no timer: who shows them asks again.
import type { Advisory } from "../../../../protocol/advisory.ts";
import type { JournalEvent } from "../../../../protocol/journal.ts";
import type { Clock } from "../../sampling/clock.ts";
import { detectAdvisories } from "./detect.ts";
import { readHistory } from "./history.ts";

/** How long an answer stays good while nothing happens: a phase that lasts too long is noticed so much later at most. */
export const advisoryMilliseconds = 30_000;

export interface AdvisoryWatch {
  /** Takes each event of the journal once, in order. */
  read(event: JournalEvent): void;
  /**
   * Those in force now, worst and newest first.
   *
   * @param isGoing whether a process is at work: without one no phase is too long
   */
  inForce(isGoing: boolean): readonly Advisory[];
}

/** Events after which the answer may be another. */
const telling: ReadonlySet<JournalEvent["type"]> = new Set(["started", "phase", "step", "ended"]);

export function watchAdvisories(clock: Pick<Clock, "now">): AdvisoryWatch {
  const history = readHistory();
  let read = 0;
  let answer: { readonly key: string; readonly value: readonly Advisory[] } | null = null;
  return {
    read(event) {
      history.read(event);
      if (telling.has(event.type)) read += 1;
    },
    inForce(isGoing) {
      const now = clock.now();
      const key = `${read} ${isGoing ? Math.floor(now / advisoryMilliseconds) : ""}`;
      if (answer?.key !== key) {
        const known = history.history();
        const looked = isGoing ? known : { ...known, phase: null };
        answer = { key, value: detectAdvisories(looked, now).filter(({ inForce }) => inForce) };
      }
      return answer.value;
    },
  };
}
