// Finds stop strings in text that arrives in pieces, and shows a piece only when it cannot be the beginning of one.

export class StopScanner {
  private readonly stops: readonly string[];
  private waiting = "";
  private found: string | null = null;

  constructor(stops: readonly string[]) {
    this.stops = stops.filter((stop) => stop !== "");
  }

  /** The stop string that ended the text; null while none has. */
  get stoppedBy(): string | null {
    return this.found;
  }

  /** Text that is safe to show. After a stop string was found there is none. */
  push(piece: string): string {
    if (this.found !== null) return "";
    this.waiting += piece;
    // Of several, the one that begins first ends the text.
    let first = -1;
    for (const stop of this.stops) {
      const at = this.waiting.indexOf(stop);
      if (at < 0 || (first >= 0 && at >= first)) continue;
      first = at;
      this.found = stop;
    }
    if (first >= 0) {
      const shown = this.waiting.slice(0, first);
      this.waiting = "";
      return shown;
    }
    const held = this.longestBeginning();
    const shown = this.waiting.slice(0, this.waiting.length - held);
    this.waiting = this.waiting.slice(this.waiting.length - held);
    return shown;
  }

  /** What was held back, once nothing more comes. */
  flush(): string {
    const rest = this.waiting;
    this.waiting = "";
    return rest;
  }

  /** Length of the longest end of the waiting text that begins a stop string. */
  private longestBeginning(): number {
    let longest = 0;
    for (const stop of this.stops) {
      for (let length = Math.min(stop.length - 1, this.waiting.length); length > longest; length--) {
        if (this.waiting.endsWith(stop.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}
