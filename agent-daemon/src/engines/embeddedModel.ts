// A model that the embedded engine holds: weights in the addon, files it came from. Shared by the engines made from it; it
// must never read weights in JavaScript but one tensor at a time, for checks.
import { cpus } from "node:os";
import type { NativeConfig, NativeModel, NativeTensorSource, NativeTrainer } from "../../../native/binding/index.d.ts";
import { answered, cancellable, nativeAddon, settled } from "./embeddedAddon.ts";
import type { ModelInfo } from "./interface.ts";
import { findModel, matchTensors } from "./modelFiles.ts";
import type { ModelFiles, ModelTensor } from "./storedModel.ts";

export class EmbeddedModel {
  readonly files: ModelFiles;
  readonly native: NativeModel;
  private readonly config: NativeConfig;
  readonly trainer: NativeTrainer;
  private readonly parameters: number;
  private readonly maxTokens: number;
  private isDisposed = false;

  /** Models come from openEmbeddedModel. */
  constructor(files: ModelFiles, config: NativeConfig, native: NativeModel, trainer: NativeTrainer) {
    this.files = files;
    this.config = config;
    this.native = native;
    this.trainer = trainer;
    this.maxTokens = answered(() => trainer.maxTokens());
    this.parameters = native.tensors().reduce((sum, tensor) => sum + elements(tensor.shape), 0);
  }

  get hasValueHead(): boolean {
    return this.config.valueHead;
  }

  info(): ModelInfo {
    const { config } = this.files;
    return {
      architecture: config.architecture,
      vocabularySize: config.vocabulary,
      layers: config.layers,
      hiddenSize: config.hidden,
      parameters: this.parameters,
      maxPositions: config.maxPositions,
      replicas: 1,
      dtype: "f32",
      threads: answered(() => this.native.threads()),
      device: `${cpus()[0]?.model ?? "CPU"} (${nativeAddon().cpu().kernels})`,
      capabilities: {
        forest: true,
        value: this.config.valueHead,
        lora: false,
        routingReplay: config.mixture.experts > 0,
        media: false,
        maxTokensPerBatch: this.maxTokens,
        deterministic: true,
      },
    };
  }

  /**
   * Replaces the weights by those of a folder of the same shape; on failure the old ones stay.
   * Errors: as openEmbeddedModel, and ENGINE_SHAPE_MISMATCH for another model.
   */
  async reload(dir: string, signal?: AbortSignal): Promise<void> {
    const files = findModel(dir);
    const { paths, sources } = tensorSources(
      matchTensors(
        answered(() => this.native.tensors()),
        files,
      ),
    );
    await cancellable(signal, (cancel) => this.native.reload(paths, sources, files.version, cancel));
  }

  /** The current weights of one tensor, by its Hugging Face name. Errors: ENGINE_TENSOR_MISSING. */
  readTensor(name: string): Promise<Float32Array> {
    return settled(() => this.native.readTensor(name));
  }

  /** Errors: ENGINE_TENSOR_MISSING, ENGINE_SHAPE_MISMATCH. */
  writeTensor(name: string, values: Float32Array): Promise<void> {
    return settled(() => this.native.writeTensor(name, values));
  }

  /** Ends the training engine too; memory is freed when running work has ended. */
  dispose(): void {
    if (this.isDisposed) return;
    this.isDisposed = true;
    this.trainer.dispose();
    this.native.dispose();
  }
}

/** Every tensor's place, with the list of files that they index. */
export function tensorSources(tensors: readonly (ModelTensor & { name: string })[]): {
  paths: string[];
  sources: NativeTensorSource[];
} {
  const paths = [...new Set(tensors.map((tensor) => tensor.file))];
  const indexOf = new Map(paths.map((path, index) => [path, index]));
  const sources = tensors.map(({ name, file, offset, bytes, type, interleavedHeads }) => ({
    tensor: name,
    file: indexOf.get(file) ?? 0,
    offset,
    bytes,
    type,
    interleavedHeads,
  }));
  return { paths, sources };
}

export function elements(shape: readonly number[]): number {
  return shape.reduce((product, axis) => product * axis, 1);
}
