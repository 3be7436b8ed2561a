// The tokens of a trajectory for one training row: text and numbers, read in blocks. The gradient needs the step's whole batch, so it
// is asked for by itself and comes later than the rest.
import type { BulkArray, BulkFrame } from "../../protocol/bulkFrame.ts";
import { type TrajectorySource, tokenTextSchema } from "../../protocol/trajectoryView.ts";
import type { PageClient } from "../shared/rpc.ts";
import { type PagedStore, pagedStore } from "./pagedStore.ts";

const blockTokens = 256;
const keptBlocks = 64;

export interface Token {
  readonly text: string;
  /** NaN where the token has no such number; undefined while it is on its way. */
  number(column: string): number | undefined;
}

export interface TokenStore {
  readonly tokens: PagedStore<Token>;
  /** Changes when late columns came. */
  readonly late: PagedStore<Token>["version"];
  want(from: number, to: number): Promise<void>;
  dispose(): void;
}

export function tokenStore(
  client: PageClient,
  source: TrajectorySource,
  columns: readonly string[],
  row: string | null,
  onError: (error: unknown) => void,
): TokenStore {
  const quick = columns.filter((name) => name !== "gradient");
  const ask = (from: number, to: number, wanted: string[], signal: AbortSignal) =>
    client.callBulk("trajectory/tokens", { source, from, to, columns: wanted, row }, { signal });
  const gradients = pagedStore<number>(
    blockTokens,
    keptBlocks,
    async (from, to, signal) => [...((await ask(from, to, ["gradient"], signal)).arrays.get("gradient") ?? [])],
    onError,
  );
  const tokens = pagedStore<Token>(
    blockTokens,
    keptBlocks,
    async (from, to, signal) => tokensOf(await ask(from, to, quick, signal), from, gradients),
    onError,
  );
  return {
    tokens,
    late: gradients.version,
    want: async (from, to) => {
      await tokens.want(from, to);
      if (columns.includes("gradient")) void gradients.want(from, to);
    },
    dispose: () => {
      tokens.dispose();
      gradients.dispose();
    },
  };
}

function tokensOf(frame: BulkFrame, from: number, gradients: PagedStore<number>): Token[] {
  const { text, ends } = tokenTextSchema.parse(frame.extra);
  return ends.map((end, index) => ({
    text: text.slice(index === 0 ? 0 : ends[index - 1], end),
    number: (column) =>
      column === "gradient" ? gradients.get(from + index) : numberOf(frame.arrays.get(column), index, column),
  }));
}

/** Integer columns write "none" as −1. */
function numberOf(array: BulkArray | undefined, index: number, column: string): number {
  const value = array?.[index] ?? Number.NaN;
  return value === -1 && ["id", "version", "staleness"].includes(column) ? Number.NaN : value;
}
