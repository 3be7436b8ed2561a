// What the suites of all stores are handed: a pair of empty stores whose clock the suite moves.
import type { BlobStore, RecordStore } from "../../agent-daemon/src/store/interface.ts";

export interface OpenedStores {
  readonly store: RecordStore;
  readonly blobs: BlobStore;
  /** Moves the store's clock on. */
  advance(milliseconds: number): void;
  dispose(): Promise<void>;
}

/** Gives empty stores whose leases may be as short as 1000 ms. */
export type OpenStores = () => Promise<OpenedStores>;

/** The code of the error that a promise is rejected with; "none" when it is not. */
export function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "none",
    (error: { code: string }) => error.code,
  );
}
