// What is known of a model on disk before a byte of its weights is read, the same for every format.
import type { DecoderConfig } from "./modelConfig.ts";
import type { StoredTensor } from "./safetensors.ts";

export interface ModelTensor extends StoredTensor {
  /** > 0: rows of each of so many heads are stored in interleaved pairs, as llama.cpp keeps q and k. */
  readonly interleavedHeads: number;
}

export interface ModelFiles {
  /** The folder or file the model was found at. */
  readonly path: string;
  readonly kind: "folder" | "gguf";
  readonly config: DecoderConfig;
  /** config.json as it stands, or what it would be. */
  readonly configJson: Readonly<Record<string, unknown>>;
  readonly generationConfig: Readonly<Record<string, unknown>> | null;
  /** By Hugging Face name. */
  readonly tensors: ReadonlyMap<string, ModelTensor>;
  /** Optimizer steps behind the weights, where the folder says so. */
  readonly version: number;
}
