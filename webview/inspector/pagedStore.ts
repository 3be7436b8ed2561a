// Things with a number, read page by page as they are looked at: nothing that is there is read again, and only so many pages are
// kept. Readers read `version` and are drawn again when a page came.
import { type ReadonlySignal, signal } from "@preact/signals";

export interface PagedStore<T> {
  readonly version: ReadonlySignal<number>;
  get(index: number): T | undefined;
  /** Reads what of [from, to) is not there. */
  want(from: number, to: number): Promise<void>;
  /** More can be read now: pages that were not full are read again when they are wanted. */
  grow(): void;
  readonly pageCount: number;
  dispose(): void;
}

export function pagedStore<T>(
  pageSize: number,
  keep: number,
  read: (from: number, to: number, signal: AbortSignal) => Promise<readonly T[]>,
  onError: (error: unknown) => void,
): PagedStore<T> {
  const pages = new Map<number, readonly T[]>();
  const stale = new Set<number>();
  const pending = new Map<number, Promise<void>>();
  const version = signal(0);
  const ended = new AbortController();

  const load = (page: number): Promise<void> => {
    const known = pending.get(page);
    if (known !== undefined) return known;
    const loading = read(page * pageSize, (page + 1) * pageSize, ended.signal).then(
      (items) => {
        pending.delete(page);
        if (ended.signal.aborted) return;
        pages.delete(page);
        pages.set(page, items);
        for (const old of pages.keys()) {
          if (pages.size <= keep) break;
          if (old !== page) pages.delete(old);
        }
        version.value += 1;
      },
      (error: unknown) => {
        pending.delete(page);
        if (!ended.signal.aborted) onError(error);
      },
    );
    pending.set(page, loading);
    return loading;
  };

  return {
    version,
    get: (index) => pages.get(Math.floor(index / pageSize))?.[index % pageSize],
    want: async (from, to) => {
      const waits: Promise<void>[] = [];
      for (let page = Math.floor(Math.max(0, from) / pageSize); page * pageSize < to; page++) {
        const known = pages.get(page);
        if (known !== undefined && !stale.has(page)) {
          // The newest are at the end: the first are forgotten first.
          pages.delete(page);
          pages.set(page, known);
        } else {
          stale.delete(page);
          waits.push(load(page));
        }
      }
      await Promise.all(waits);
    },
    grow: () => {
      for (const [page, items] of pages) if (items.length < pageSize) stale.add(page);
    },
    get pageCount() {
      return pages.size;
    },
    dispose: () => {
      ended.abort(new DOMException("The trajectory was closed.", "AbortError"));
      pages.clear();
    },
  };
}
