// The generating half of the addon, as C++ implements it. Only engines/ uses it.

/** A request as the addon reads it; every property must be there except `forced`. */
export interface NativeRequest {
  readonly tokens: Int32Array;
  readonly maxNewTokens: number;
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly stopIds: Int32Array;
  readonly stopStrings: readonly string[];
  readonly seed: number;
  readonly record: number;
  readonly call: number;
  readonly forced?: Int32Array;
  readonly topAlternatives: number;
  /** −1: generate; else score tokens [scoreFrom, n). */
  readonly scoreFrom: number;
}

/** What one iteration yields: parallel arrays, one entry per event. */
export interface NativeBatch {
  readonly requests: Float64Array;
  /** −1: the event carries no token. */
  readonly tokens: Int32Array;
  readonly logprobs: Float32Array;
  readonly sampledLogprobs: Float32Array;
  /** 1 where sampledLogprobs means something. */
  readonly truncated: Uint8Array;
  readonly versions: Int32Array;
  /** ≥ 0 on the first event of a request. */
  readonly cachedTokens: Int32Array;
  /** −1 none, 0 stop, 1 length, 2 abort, 3 error. */
  readonly finishes: Int32Array;
  readonly stopIds: Int32Array;
  readonly stopStrings: Int32Array;
  readonly more: readonly {
    readonly index: number;
    readonly alternativeIds?: Int32Array;
    readonly alternativeLogprobs?: Float32Array;
    readonly scoreLogprobs?: Float32Array;
    readonly scoreEntropies?: Float32Array;
    readonly error?: Error & { readonly code: string; readonly next: string };
  }[];
}

export interface NativeGeneratorOptions {
  readonly cacheBytes: number;
  /** Most sequences computed together. */
  readonly running: number;
  readonly rowsPerIteration: number;
  /** Bytes of all tokens one behind the other; token i is [offsets[i], offsets[i + 1]). */
  readonly tokenBytes?: Uint8Array;
  readonly tokenOffsets?: Uint32Array;
}

export interface NativeGeneratorHealth {
  readonly running: number;
  readonly queued: number;
  readonly version: number;
  readonly paused: boolean;
  readonly released: boolean;
  readonly cachedTokens: number;
  readonly cacheBlocks: number;
  readonly cacheCapacity: number;
  readonly prefilledTokens: number;
  readonly decodedTokens: number;
  readonly evictedBlocks: number;
  readonly preemptions: number;
}

export interface NativeGenerator {
  /** Requests of one call start in one iteration. */
  submit(ids: readonly number[], requests: readonly NativeRequest[]): void;
  abort(id: number): void;
  pause(mode: "wait" | "hold" | "abort"): Promise<number>;
  resume(): Promise<number>;
  updateWeights(): Promise<number>;
  releaseMemory(): Promise<number>;
  restoreMemory(): Promise<number>;
  health(): NativeGeneratorHealth;
  dispose(): void;
}

export type NativeGeneratorConstructor<Model> = new (
  model: Model,
  options: NativeGeneratorOptions,
  deliver: (batch: NativeBatch) => void,
) => NativeGenerator;
