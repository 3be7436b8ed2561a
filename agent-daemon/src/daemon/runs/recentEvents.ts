// The newest events of a run, for followers who are a little behind: bounded, without gaps.
import type { JournalEvent } from "../../../../protocol/journal.ts";

export class RecentEvents {
  readonly #most: number;
  #events: JournalEvent[] = [];
  /** Number before that of the first one. */
  #before = 0;

  constructor(most: number) {
    this.#most = most;
  }

  push(event: JournalEvent): void {
    this.#events.push(event);
    // Dropped in halves, so that a push costs the same on average.
    if (this.#events.length > 2 * this.#most) {
      this.#events = this.#events.slice(-this.#most);
      this.#before = this.#events[0]!.n - 1;
    }
  }

  /** Forgets what it has; the next event has the number after this one. */
  beginAfter(number: number): void {
    this.#events = [];
    this.#before = number;
  }

  /** At most `limit` events after the cursor; null when they are not all here. */
  after(cursor: number, limit: number): readonly JournalEvent[] | null {
    if (cursor < this.#before || cursor > this.#before + this.#events.length) return null;
    const from = cursor - this.#before;
    return this.#events.slice(from, from + limit);
  }
}
