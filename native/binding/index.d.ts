// The native addon, as C++ implements it. Only engines/embedded*.ts uses it. Every promise is settled by the compute thread;
// failures are Error objects with `code` and `next`.
import type { NativeGeneratorConstructor } from "./generation.d.ts";

export interface NativeConfig {
  readonly architecture: string;
  readonly vocabulary: number;
  readonly layers: number;
  readonly hidden: number;
  readonly intermediate: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly maxPositions: number;
  readonly rmsEpsilon: number;
  readonly tiedHead: boolean;
  readonly attentionBias: boolean;
  readonly outputBias: boolean;
  readonly queryKeyNorm: boolean;
  readonly valueHead: boolean;
  /** [headDim / 2] */
  readonly inverseFrequencies: Float64Array;
  readonly ropeAttentionScale: number;
  readonly mixture: {
    readonly experts: number;
    readonly expertsPerToken: number;
    readonly intermediate: number;
    readonly normaliseTopK: boolean;
    /** [layers] */
    readonly isMixture: Uint8Array;
  };
}

export interface NativeTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** Two or more axes. */
  readonly matrix: boolean;
}

export interface NativeTensorSource {
  readonly tensor: string;
  /** Index into the list of files. */
  readonly file: number;
  readonly offset: number;
  readonly bytes: number;
  readonly type: string;
  readonly interleavedHeads: number;
}

export interface NativeModelSpec {
  readonly config: NativeConfig;
  readonly files: readonly string[];
  readonly tensors: readonly NativeTensorSource[];
  readonly version: number;
  /** For the process's first model; 0: all processors. */
  readonly threads: number;
  readonly cancel: NativeCancelToken;
}

export interface NativeCancelToken {
  cancel(): void;
}

export interface NativeModel {
  version(): number;
  threads(): number;
  tensors(): NativeTensor[];
  readTensor(name: string): Promise<Float32Array>;
  writeTensor(name: string, values: Float32Array): Promise<void>;
  /** All or nothing: on failure the old weights stay. */
  reload(
    files: readonly string[],
    tensors: readonly NativeTensorSource[],
    version: number,
    cancel: NativeCancelToken,
  ): Promise<void>;
  snapshot(id: string): Promise<void>;
  release(id: string): Promise<void>;
  /** A safetensors file: `header`, then the named tensors in that order. */
  writeWeights(path: string, header: Uint8Array, names: readonly string[], cancel: NativeCancelToken): Promise<void>;
  /** Memory is freed once running jobs, trainers and generators have let go as well. */
  dispose(): void;
}

export interface NativeBatch {
  readonly tokens: Int32Array;
  readonly positions: Int32Array;
  /** start, end, parent of each node. */
  readonly nodes: Int32Array;
  readonly temperature: Float32Array;
  readonly wanted: Uint8Array;
  readonly routing?: Int16Array;
}

export interface NativeOutputs {
  readonly logprob: boolean;
  readonly entropy: boolean;
  readonly value: boolean;
}

export interface NativeScalars {
  readonly logprob?: Float32Array;
  readonly entropy?: Float32Array;
  readonly value?: Float32Array;
}

export interface NativeMemoryPlan {
  readonly fixedBytes: number;
  readonly activationBytes: number;
  readonly checkpointedLayers: number;
  readonly keepsLogits: boolean;
}

export type NativeMoment = "firstMoment" | "secondMoment";

export interface NativeTrainer {
  forward(
    batch: NativeBatch,
    want: NativeOutputs,
    options: { readonly snapshot?: string; readonly recordRouting?: boolean },
    cancel: NativeCancelToken,
  ): Promise<NativeScalars & { readonly experts?: Int16Array; readonly mix?: Float32Array }>;
  /** Keeps what backward() needs; a second call replaces it. */
  forwardForGradient(batch: NativeBatch, want: NativeOutputs, cancel: NativeCancelToken): Promise<NativeScalars>;
  backward(cotangents: NativeScalars, cancel: NativeCancelToken): Promise<void>;
  gradient(): Promise<{ readonly norm: number; readonly finite: boolean }>;
  step(options: {
    readonly lr: number;
    readonly beta1: number;
    readonly beta2: number;
    readonly eps: number;
    readonly weightDecay: number;
    readonly decayAll: boolean;
    readonly maxGradNorm?: number;
  }): Promise<number>;
  discard(): Promise<void>;
  /** For a gradient pass over so many tokens, all wanted. */
  plan(tokens: number): Promise<NativeMemoryPlan>;
  maxTokens(): number;
  /** Zeros where nothing was accumulated yet. */
  readTensor(name: string, which: "gradient" | NativeMoment): Promise<Float32Array>;
  writeMoment(
    path: string,
    header: Uint8Array,
    names: readonly string[],
    which: NativeMoment,
    cancel: NativeCancelToken,
  ): Promise<void>;
  loadMoments(
    files: readonly string[],
    first: readonly NativeTensorSource[],
    second: readonly NativeTensorSource[],
    steps: number,
  ): Promise<void>;
  clearMoments(): Promise<void>;
  /** Steps behind the moments; 0 when there are none. */
  optimizerSteps(): Promise<number>;
  dispose(): void;
}

export interface NativeAddon {
  readonly CancelToken: new () => NativeCancelToken;
  readonly NativeTrainer: new (
    model: NativeModel,
    limits: { readonly memoryBytes: number; readonly keptLogitsBytes: number },
  ) => NativeTrainer;
  readonly NativeGenerator: NativeGeneratorConstructor<NativeModel>;
  cpu(): { readonly kernels: string; readonly processors: number };
  /** Tensors that a model of this configuration has, in the order of its arena. */
  describe(config: NativeConfig): NativeTensor[];
  loadModel(spec: NativeModelSpec): Promise<NativeModel>;
  /** Ends the process's compute thread, before the process does. What was waiting never settles. */
  stop(): void;
}
