// The contract between the algorithm (TypeScript) and whatever multiplies matrices. An engine does four things: forward,
// backward from per-token cotangents, optimizer step, generate. It must never know an objective, a reward or a recipe.

/** What an engine can do; code asks here instead of asking which engine it is. */
export interface EngineCapabilities {
  /** Accepts batches whose nodes have parents; without it every path travels as a row of its own. */
  readonly forest: boolean;
  readonly value: boolean;
  readonly lora: boolean;
  readonly routingReplay: boolean;
  readonly media: boolean;
  /** Upper bound of tokens in one PackedBatch, from the memory plan. */
  readonly maxTokensPerBatch: number;
  /** A row's logits do not depend on what else is in the batch, bit for bit. */
  readonly deterministic: boolean;
}

export interface ModelInfo {
  readonly architecture: string;
  readonly vocabularySize: number;
  readonly layers: number;
  readonly hiddenSize: number;
  readonly parameters: number;
  readonly maxPositions: number;
  /** Data-parallel replicas that share the micro-batches of a step. */
  readonly replicas: number;
  readonly dtype: "f32" | "bf16";
  readonly threads: number;
  /** CPU or GPU type: bitwise identity is promised for one type only, so the run records it. */
  readonly device: string;
  readonly capabilities: EngineCapabilities;
}

/** A node of the forest: tokens [start, end) of the batch; `parent` is the index of an earlier node or −1 for a root. */
export interface BatchNode {
  readonly start: number;
  readonly end: number;
  readonly parent: number;
}

/**
 * One micro-batch: a forest. A token attends to all tokens of its ancestor nodes and causally inside its own node.
 * Parents come before children, nodes cover [0, n) in order without gaps.
 */
export interface PackedBatch {
  /** [n] token ids. */
  readonly tokens: Int32Array;
  /** [axes][n] rotary positions; one axis for text. */
  readonly positions: readonly Int32Array[];
  readonly nodes: readonly BatchNode[];
  /** [n] temperature under which token i is predicted: log-softmax(logits / T). T = 0 is read as 1. */
  readonly temperature: Float32Array;
  /** [n] 1 where an output is wanted for token i; tokens without it get no logits and NaN in every scalar. */
  readonly wanted: Uint8Array;
  /** Forced experts [layer][n][k] as int16, −1 = free; for engines with `routingReplay`. */
  readonly routing?: Int16Array;
}

export interface Outputs {
  readonly logprob: boolean;
  readonly entropy: boolean;
  readonly value: boolean;
}

/** f32 arrays aligned with `tokens`: index i is about predicting tokens[i] from its path. A root's first token has none (NaN). */
export interface Scalars {
  readonly logprob?: Float32Array;
  readonly entropy?: Float32Array;
  /** Read from the state that predicts token i (the hidden state of its predecessor). */
  readonly value?: Float32Array;
}

/** d loss / d scalar, aligned with `tokens`; absent arrays are zero, entries at unwanted tokens must be 0. */
export interface Cotangents {
  readonly logprob?: Float32Array;
  readonly entropy?: Float32Array;
  readonly value?: Float32Array;
}

export type WeightsRef =
  | { readonly kind: "policy" }
  | { readonly kind: "base" }
  | { readonly kind: "snapshot"; readonly id: string }
  | { readonly kind: "engine"; readonly role: "reference" | "critic" | "teacher" };

export interface OptimizerStep {
  readonly lr: number;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weightDecay: number;
  /** Which tensors decay: those with two or more axes, or all. */
  readonly decayed: "matrices" | "all";
  /** null: no clipping. Clipping multiplies by min(1, maxGradNorm / (norm + 1e-6)). */
  readonly maxGradNorm: number | null;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Tokens done of the tokens in this call. */
  readonly onProgress?: (progress: Progress) => void;
}

export interface TrainingEngine {
  info(): ModelInfo;
  /** Scalars of each batch, in any order, with its index; keeps no gradient. */
  forward(
    batches: readonly PackedBatch[],
    want: Outputs,
    weights: WeightsRef,
    options?: CallOptions,
  ): AsyncIterable<{ readonly index: number; readonly scalars: Scalars }>;
  /**
   * Forward with gradient over all micro-batches of a step; calls `cotangents` once a batch, in any order, and adds the
   * gradient of Σ c·scalar to the accumulated one. Gradients are summed, never averaged.
   */
  accumulate(
    batches: readonly PackedBatch[],
    want: Outputs,
    cotangents: (index: number, scalars: Scalars) => Cotangents | Promise<Cotangents>,
    options?: CallOptions,
  ): Promise<void>;
  /** Global norm of the accumulated gradient before clipping. A tied matrix counts once. */
  gradient(): Promise<{ readonly norm: number; readonly finite: boolean }>;
  /** AdamW with the accumulated gradient, which is cleared afterwards. The version is the number of steps behind the weights. */
  step(options: OptimizerStep): Promise<{ readonly version: number }>;
  /** Drop the accumulated gradient. */
  discard(): Promise<void>;
  /** Keep a copy of the current weights under `id` for WeightsRef snapshot; `release` frees it. */
  snapshot(id: string): Promise<void>;
  release(id: string): Promise<void>;
  /** "weights": a Hugging Face folder; "full": that and the optimizer state and version. The folder appears whole or not at all. */
  save(dir: string, what: "weights" | "full"): Promise<void>;
  load(dir: string): Promise<void>;
  dispose(): Promise<void>;
}

export type FinishReason = "stop" | "length" | "abort" | "error";

/** Names the random stream of a call: a number is drawn per (seed, record, call, position), whatever runs beside it. */
export interface SamplingKey {
  readonly seed: number;
  /** 53-bit hash of the record's id. */
  readonly record: number;
  readonly call: number;
}

export interface GenerateRequest {
  /** The exact prompt. */
  readonly tokens: Int32Array;
  readonly maxNewTokens: number;
  /** 0: argmax. */
  readonly temperature: number;
  /** 1 = off. */
  readonly topP: number;
  /** 0 = off. */
  readonly topK: number;
  /** 0 = off. */
  readonly minP: number;
  readonly stopIds: readonly number[];
  /** Byte strings; generation ends with the token that completes one. What of it is shown is the caller's business. */
  readonly stopStrings: readonly string[];
  readonly key: SamplingKey;
  /** Scripted mode: these ids are emitted in order, with the model's real log-probabilities, instead of sampled ones. */
  readonly forced?: Int32Array;
  /** How many alternatives to report per token; 0 = none. */
  readonly topAlternatives: number;
}

export interface TokenChunk {
  readonly ids: Int32Array;
  /** log-softmax(logits / T) of each id, before truncation by top-p, top-k, min-p; at T = 0 those of T = 1. */
  readonly logprobs: Float32Array;
  /** Log-probability after truncation; present only when truncation is on. */
  readonly sampledLogprobs?: Float32Array;
  /** Policy version of each token. */
  readonly versions: Int32Array;
  /** [token][alternative], most probable first. */
  readonly alternatives?: { readonly ids: Int32Array; readonly logprobs: Float32Array; readonly count: number };
  /** Set on the last chunk only. */
  readonly finishReason?: FinishReason;
  /** The stop id or string that ended generation. */
  readonly stoppedBy?: number | string;
  /** Prompt tokens found in the prefix cache; on the first chunk. */
  readonly cachedTokens?: number;
}

export interface ScoreRequest {
  readonly tokens: Int32Array;
  readonly temperature: number;
  /** Score tokens [from, n). */
  readonly from: number;
}

export interface Scored {
  /** [n − from] */
  readonly logprobs: Float32Array;
  readonly entropy: Float32Array;
  readonly version: number;
}

/** Where new weights come from: an engine in this process that shares them, or a folder. */
export type WeightSource = { readonly kind: "shared" } | { readonly kind: "folder"; readonly dir: string };

export interface EngineHealth {
  readonly ok: boolean;
  readonly running: number;
  readonly queued: number;
  readonly version: number;
  readonly paused: boolean;
  readonly cachedTokens: number;
}

export interface InferenceEngine {
  info(): ModelInfo;
  /** Chunks in order; aborting ends the stream with finish reason "abort" and keeps what was sampled. */
  generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<TokenChunk>;
  score(request: ScoreRequest): Promise<Scored>;
  /** Take new weights; the prefix cache of the old ones is dropped. Returns the policy version now served. */
  updateWeights(from: WeightSource): Promise<number>;
  /** "wait": finish what runs; "hold": stop between tokens and go on after resume; "abort": end all with finish reason abort. */
  pause(mode: "wait" | "hold" | "abort"): Promise<void>;
  resume(): Promise<void>;
  releaseMemory(): Promise<void>;
  restoreMemory(): Promise<void>;
  health(): EngineHealth;
  dispose(): Promise<void>;
}
