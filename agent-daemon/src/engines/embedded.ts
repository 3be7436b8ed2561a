// Opens a model on the embedded engine and makes its engines. Translates the model on disk into what the addon loads.
import { totalmem } from "node:os";
import type { NativeConfig } from "../../../native/binding/index.d.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { answered, cancellable, nativeAddon } from "./embeddedAddon.ts";
import { EmbeddedInferenceEngine, type InferenceOptions } from "./embeddedInference.ts";
import { EmbeddedModel, elements, tensorSources } from "./embeddedModel.ts";
import { EmbeddedTrainingEngine } from "./embeddedTraining.ts";
import type { DecoderConfig } from "./modelConfig.ts";
import { findModel, matchTensors } from "./modelFiles.ts";

export interface EmbeddedOptions {
  /** Threads of the process's compute pool; the first model of a process decides. Default: every processor it may use. */
  readonly threads?: number;
  /** Adds a value head; its weights come from the folder or start at zero. */
  readonly valueHead?: boolean;
  /** Bytes for weights, gradient, moments, snapshots and activations. Default: 85 % of what the process may have. */
  readonly memoryLimit?: number;
  /** Bytes of logits kept from a batch's forward to its backward pass, which then need no second computation. Default: 400 MB. */
  readonly keptLogits?: number;
  readonly signal?: AbortSignal;
}

const defaultKeptLogits = 400_000_000;

/**
 * `path`: a Hugging Face folder or a GGUF file; see findModel.
 * Errors: those of findModel and matchTensors, ENGINE_LIBRARY_MISSING, ENGINE_OUT_OF_MEMORY, ENGINE_NON_FINITE, ENGINE_CANCELLED.
 */
export async function openEmbeddedModel(path: string, options: EmbeddedOptions = {}): Promise<EmbeddedModel> {
  const addon = nativeAddon();
  const files = findModel(path);
  const config = nativeConfig(files.config, options.valueHead ?? false);
  const memoryBytes = options.memoryLimit ?? defaultMemoryLimit();
  const expected = answered(() => addon.describe(config));
  refuseTooLarge(expected, memoryBytes, path);
  const { paths, sources } = tensorSources(matchTensors(expected, files));
  const native = await cancellable(options.signal, (cancel) =>
    addon.loadModel({
      config,
      files: paths,
      tensors: sources,
      version: files.version,
      threads: options.threads ?? 0,
      cancel,
    }),
  );
  const trainer = new addon.NativeTrainer(native, {
    memoryBytes,
    keptLogitsBytes: options.keptLogits ?? defaultKeptLogits,
  });
  return new EmbeddedModel(files, config, native, trainer);
}

/** A model has one gradient and one optimizer: training engines of one model share them. */
export function embeddedTrainingEngine(model: EmbeddedModel): EmbeddedTrainingEngine {
  return new EmbeddedTrainingEngine(model);
}

/** Generates with the weights as they were at its last updateWeights. Errors: see EmbeddedInferenceEngine.open. */
export function embeddedInferenceEngine(
  model: EmbeddedModel,
  options: InferenceOptions = {},
): Promise<EmbeddedInferenceEngine> {
  return EmbeddedInferenceEngine.open(
    {
      generator: nativeAddon().NativeGenerator,
      model: model.native,
      info: () => model.info(),
      reload: (dir) => model.reload(dir),
    },
    options,
  );
}

function nativeConfig(config: DecoderConfig, valueHead: boolean): NativeConfig {
  const { rope, mixture, ...shape } = config;
  return {
    ...shape,
    valueHead,
    inverseFrequencies: rope.inverseFrequencies,
    ropeAttentionScale: rope.attentionScale,
    mixture: { ...mixture, isMixture: Uint8Array.from(mixture.isMixture, Number) },
  };
}

function refuseTooLarge(tensors: readonly { readonly shape: readonly number[] }[], limit: number, path: string): void {
  const bytes = 4 * tensors.reduce((sum, tensor) => sum + elements(tensor.shape), 0);
  if (bytes <= limit) return;
  const mebibytes = (value: number) => `${Math.ceil(value / 2 ** 20)} MiB`;
  throw new RollscopeError(
    "ENGINE_OUT_OF_MEMORY",
    `The weights of ${path} take ${mebibytes(bytes)}; the limit is ${mebibytes(limit)}.`,
    { next: "Use a smaller model, raise the memory limit, or train on a cluster.", at: { bytes, limit } },
  );
}

function defaultMemoryLimit(): number {
  const constrained = process.constrainedMemory();
  const all = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return Math.floor(0.85 * all);
}
