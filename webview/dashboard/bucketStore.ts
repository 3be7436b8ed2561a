// Metric values of one run, as buckets in chunks of equal width: fetched once, grown by the run's events, and merged into coarser
// chunks when the view widens. It asks for a chunk only while it has none, and holds a bounded number of them.
import type { BulkFrame } from "../../protocol/bulkFrame.ts";
import type { JournalEventOf } from "../../protocol/journal.ts";

/** One attempt's buckets within a chunk; steps rise. */
export interface Buckets {
  readonly step: number[];
  readonly min: number[];
  readonly max: number[];
  readonly last: number[];
  readonly bad: number[];
}

interface Piece {
  readonly name: string;
  readonly width: number;
  readonly chunk: number;
  /** Events up to this one are in it. */
  cursor: number;
  readonly attempts: Map<number, Buckets>;
}

export interface SeriesRequest {
  readonly names: string[];
  readonly from: number;
  readonly to: number;
  readonly buckets: number;
  readonly after: number | null;
}

export interface Window {
  readonly width: number;
  readonly firstChunk: number;
  readonly lastChunk: number;
}

export const chunkBuckets = 128;
const namesPerRequest = 64;
const mostPieces = 8000;
/** Step events kept to bring an answer up to date that was made before they came. */
const keptEvents = 4000;

/** Least power of two steps with which the range needs at most so many buckets aligned at 0: as the daemon counts. */
export function bucketWidth(from: number, to: number, buckets: number): number {
  let width = 1;
  while (Math.floor(to / width) - Math.floor(from / width) + 1 > buckets) width *= 2;
  return width;
}

/** Chunks that show a range, and one more on either side where there is something. */
export function windowOf(
  range: { from: number; to: number },
  bounds: { from: number; to: number },
  buckets: number,
): Window {
  const from = Math.max(0, Math.floor(range.from));
  const to = Math.max(from, Math.ceil(range.to));
  const width = bucketWidth(from, to, buckets);
  const chunk = (step: number) => Math.floor(Math.max(0, step) / (width * chunkBuckets));
  return {
    width,
    firstChunk: Math.max(chunk(bounds.from), chunk(from) - 1),
    lastChunk: Math.max(chunk(from), Math.min(chunk(bounds.to), chunk(to) + 1)),
  };
}

export class BucketStore {
  readonly #fetch: (request: SeriesRequest) => Promise<BulkFrame>;
  readonly #changed: () => void;
  /** By name, width and chunk; the one used last is last. */
  readonly #pieces = new Map<string, Piece>();
  readonly #wanted = new Set<string>();
  #recent: JournalEventOf<"step">[] = [];
  /** Events before this one may be missing from #recent. */
  #recentFrom = 0;
  #generation = 0;

  /** @param changed there is something new to draw */
  constructor(fetch: (request: SeriesRequest) => Promise<BulkFrame>, changed: () => void) {
    this.#fetch = fetch;
    this.#changed = changed;
  }

  /** Starts to follow at this event: pieces that lack something since are asked for what is newer. */
  begin(cursor: number): void {
    this.#recent = [];
    this.#recentFrom = cursor;
    this.#generation += 1;
    this.#wanted.clear();
  }

  /** Steps in order, each once. */
  addSteps(events: readonly JournalEventOf<"step">[], cursor: number): void {
    for (const event of events) {
      this.#recent.push(event);
      for (const piece of this.#pieces.values()) {
        if (event.n > piece.cursor && piece.cursor >= this.#recentFrom) addEvent(piece, event);
      }
    }
    const surplus = this.#recent.length - keptEvents;
    if (surplus > 0) this.#recentFrom = this.#recent.splice(0, surplus).at(-1)!.n;
    for (const piece of this.#pieces.values())
      if (piece.cursor >= this.#recentFrom) piece.cursor = Math.max(piece.cursor, cursor);
    if (events.length > 0) this.#changed();
  }

  /** Buckets of a metric within the window, by attempt, as far as they are here. */
  read(name: string, window: Window): Map<number, Buckets> {
    const joined = new Map<number, Buckets>();
    for (let chunk = window.firstChunk; chunk <= window.lastChunk; chunk++) {
      const key = keyOf(name, window.width, chunk);
      const piece = this.#pieces.get(key);
      if (piece === undefined) continue;
      this.#pieces.delete(key);
      this.#pieces.set(key, piece);
      for (const [attempt, buckets] of piece.attempts) {
        const own = joined.get(attempt) ?? emptyBuckets();
        joined.set(attempt, own);
        for (const part of parts) own[part].push(...buckets[part]);
      }
    }
    return joined;
  }

  /** True when every chunk of the window is here. */
  has(name: string, window: Window): boolean {
    for (let chunk = window.firstChunk; chunk <= window.lastChunk; chunk++) {
      if (!this.#pieces.has(keyOf(name, window.width, chunk))) return false;
    }
    return true;
  }

  /** Sees that the window's chunks come: from finer ones where those are whole, else by asking. @throws what asking throws */
  async want(names: readonly string[], window: Window, lastStep: number): Promise<void> {
    const requests = this.#requests(names, window, lastStep);
    await Promise.all(requests.map((request) => this.#ask(request)));
  }

  /** Runs of chunks that are missing, or old in the same way, with the names that lack them. */
  #requests(names: readonly string[], window: Window, lastStep: number): Request[] {
    const byRange = new Map<string, Request>();
    for (const name of names) {
      let run: { first: number; after: number | null } | null = null;
      const close = (next: number) => {
        if (run === null) return;
        const key = `${run.first} ${next - 1} ${run.after}`;
        const request = byRange.get(key) ?? {
          names: [],
          width: window.width,
          first: run.first,
          last: next - 1,
          after: run.after,
        };
        byRange.set(key, request);
        request.names.push(name);
        run = null;
      };
      for (let chunk = window.firstChunk; chunk <= window.lastChunk; chunk++) {
        const key = keyOf(name, window.width, chunk);
        const piece = this.#pieces.get(key) ?? this.#derived(name, window.width, chunk, lastStep);
        const current = piece !== undefined && piece.cursor >= this.#recentFrom;
        if (current || this.#wanted.has(key)) {
          close(chunk);
          continue;
        }
        const after = piece?.cursor ?? null;
        if (run !== null && (run as { after: number | null }).after !== after) close(chunk);
        run ??= { first: chunk, after };
        this.#wanted.add(key);
      }
      close(window.lastChunk + 1);
    }
    return [...byRange.values()].flatMap((request) =>
      Array.from({ length: Math.ceil(request.names.length / namesPerRequest) }, (_, at) => ({
        ...request,
        names: request.names.slice(at * namesPerRequest, (at + 1) * namesPerRequest),
      })),
    );
  }

  /** A chunk made of the two that are half as wide, where both are here and up to date. */
  #derived(name: string, width: number, chunk: number, lastStep: number): Piece | undefined {
    if (width === 1) return undefined;
    const halves = [2 * chunk, 2 * chunk + 1].map((half) => {
      const piece = this.#pieces.get(keyOf(name, width / 2, half));
      if (piece !== undefined) return piece.cursor >= this.#recentFrom ? piece : undefined;
      return half * chunkBuckets * (width / 2) > lastStep ? null : undefined;
    });
    if (halves.includes(undefined) || halves[0] === null) return undefined;
    const attempts = new Map<number, Buckets>();
    for (const half of halves) {
      for (const [attempt, fine] of half?.attempts ?? []) {
        const coarse = attempts.get(attempt) ?? emptyBuckets();
        attempts.set(attempt, coarse);
        for (let at = 0; at < fine.step.length; at++) {
          const one = { min: fine.min[at]!, max: fine.max[at]!, last: fine.last[at]!, bad: fine.bad[at]! };
          addBucket(coarse, Math.floor(fine.step[at]! / width) * width, one);
        }
      }
    }
    const cursors = halves.flatMap((half) => (half === null || half === undefined ? [] : [half.cursor]));
    const piece = { name, width, chunk, cursor: Math.min(...cursors), attempts };
    this.#pieces.set(keyOf(name, width, chunk), piece);
    return piece;
  }

  async #ask({ names, width, first, last, after }: Request): Promise<void> {
    const generation = this.#generation;
    const keys = names.flatMap((name) =>
      Array.from({ length: last - first + 1 }, (_, at) => ({
        name,
        chunk: first + at,
        key: keyOf(name, width, first + at),
      })),
    );
    try {
      const frame = await this.#fetch({
        names,
        from: first * width * chunkBuckets,
        to: (last + 1) * width * chunkBuckets - 1,
        buckets: (last - first + 1) * chunkBuckets,
        after,
      });
      if (generation !== this.#generation) return;
      const { cursor, series } = frame.extra as { cursor: number; series: { name: string; attempt: number }[] };
      for (const { name, chunk, key } of keys) {
        if (after !== null && this.#pieces.has(key)) continue;
        this.#pieces.set(key, { name, width, chunk, cursor, attempts: new Map() });
      }
      series.forEach(({ name, attempt }, k) => {
        const read = (part: keyof Buckets) => frame.arrays.get(`${k}.${part}`) ?? [];
        const columns = {
          step: read("step"),
          min: read("min"),
          max: read("max"),
          last: read("last"),
          bad: read("bad"),
        };
        for (let at = 0; at < columns.step.length; at++) {
          const step = columns.step[at]!;
          const piece = this.#pieces.get(keyOf(name, width, Math.floor(step / (width * chunkBuckets))));
          if (piece === undefined) continue;
          const own = piece.attempts.get(attempt) ?? emptyBuckets();
          piece.attempts.set(attempt, own);
          putBucket(own, step, {
            min: columns.min[at]!,
            max: columns.max[at]!,
            last: columns.last[at]!,
            bad: columns.bad[at]!,
          });
        }
      });
      for (const { key } of keys) {
        const piece = this.#pieces.get(key)!;
        piece.cursor = cursor;
        if (cursor < this.#recentFrom) continue;
        for (const event of this.#recent) if (event.n > cursor) addEvent(piece, event);
        piece.cursor = Math.max(cursor, this.#recent.at(-1)?.n ?? 0);
      }
      for (const key of this.#pieces.keys()) {
        if (this.#pieces.size <= mostPieces) break;
        this.#pieces.delete(key);
      }
      this.#changed();
    } finally {
      if (generation === this.#generation) for (const { key } of keys) this.#wanted.delete(key);
    }
  }
}

interface Request {
  readonly names: string[];
  readonly width: number;
  readonly first: number;
  readonly last: number;
  readonly after: number | null;
}

const parts = ["step", "min", "max", "last", "bad"] as const;
const emptyBuckets = (): Buckets => ({ step: [], min: [], max: [], last: [], bad: [] });

function keyOf(name: string, width: number, chunk: number): string {
  return `${width} ${chunk} ${name}`;
}

function addEvent(piece: Piece, event: JournalEventOf<"step">): void {
  const { name, width, chunk } = piece;
  if (Math.floor(event.step / (width * chunkBuckets)) !== chunk) return;
  const value = event.metrics[name] ?? event.timings[name];
  if (value === undefined) return;
  const own = piece.attempts.get(event.attempt) ?? emptyBuckets();
  piece.attempts.set(event.attempt, own);
  const finite = Number.isFinite(value);
  const shown = finite ? value : Number.NaN;
  addBucket(own, Math.floor(event.step / width) * width, { min: shown, max: shown, last: shown, bad: finite ? 0 : 1 });
}

interface Bucket {
  readonly min: number;
  readonly max: number;
  readonly last: number;
  readonly bad: number;
}

/** Where the step is, or belongs. */
function place(buckets: Buckets, step: number): { at: number; found: boolean } {
  let at = buckets.step.length;
  while (at > 0 && buckets.step[at - 1]! > step) at -= 1;
  return buckets.step[at - 1] === step ? { at: at - 1, found: true } : { at, found: false };
}

/** Adds values that came after those of the bucket. */
function addBucket(buckets: Buckets, step: number, { min, max, last, bad }: Bucket): void {
  const { at, found } = place(buckets, step);
  if (!found) {
    insert(buckets, at, step, { min, max, last, bad });
    return;
  }
  if (!(buckets.min[at]! <= min) && !Number.isNaN(min)) buckets.min[at] = min;
  if (!(buckets.max[at]! >= max) && !Number.isNaN(max)) buckets.max[at] = max;
  if (!Number.isNaN(last)) buckets.last[at] = last;
  buckets.bad[at]! += bad;
}

/** Replaces the bucket. */
function putBucket(buckets: Buckets, step: number, bucket: Bucket): void {
  const { at, found } = place(buckets, step);
  if (!found) {
    insert(buckets, at, step, bucket);
    return;
  }
  buckets.min[at] = bucket.min;
  buckets.max[at] = bucket.max;
  buckets.last[at] = bucket.last;
  buckets.bad[at] = bucket.bad;
}

function insert(buckets: Buckets, at: number, step: number, { min, max, last, bad }: Bucket): void {
  buckets.step.splice(at, 0, step);
  buckets.min.splice(at, 0, min);
  buckets.max.splice(at, 0, max);
  buckets.last.splice(at, 0, last);
  buckets.bad.splice(at, 0, bad);
}
