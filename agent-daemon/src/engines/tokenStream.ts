// The chunks of one request on their way from the engine to whoever reads them. The engine never waits for the reader.
import type { TokenChunk } from "./interface.ts";

type Ending = { readonly kind: "done" } | { readonly kind: "failed"; readonly error: unknown };

export class TokenStream implements AsyncIterableIterator<TokenChunk> {
  private readonly chunks: TokenChunk[] = [];
  private ending: Ending | undefined;
  private wake: (() => void) | undefined;
  private readonly onAbandoned: () => void;

  /** `onAbandoned` is called when the reader leaves before the end. */
  constructor(onAbandoned: () => void) {
    this.onAbandoned = onAbandoned;
  }

  push(chunk: TokenChunk): void {
    this.chunks.push(chunk);
    if (chunk.finishReason !== undefined) this.ending = { kind: "done" };
    this.signal();
  }

  fail(error: unknown): void {
    this.ending = { kind: "failed", error };
    this.signal();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<TokenChunk>> {
    for (;;) {
      const chunk = this.chunks.shift();
      if (chunk !== undefined) return { done: false, value: chunk };
      if (this.ending?.kind === "done") return { done: true, value: undefined };
      if (this.ending?.kind === "failed") {
        const { error } = this.ending;
        this.ending = { kind: "done" };
        throw error;
      }
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  async return(): Promise<IteratorResult<TokenChunk>> {
    if (this.ending === undefined) this.onAbandoned();
    this.ending = { kind: "done" };
    this.chunks.length = 0;
    return { done: true, value: undefined };
  }

  private signal(): void {
    const wake = this.wake;
    this.wake = undefined;
    wake?.();
  }
}
