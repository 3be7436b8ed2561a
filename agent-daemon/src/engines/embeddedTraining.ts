// Training on the embedded engine: the TrainingEngine over one native trainer. Orders calls and hands batches over; all
// mathematics is in C++ and in the caller's cotangents.
import type { NativeBatch, NativeTrainer } from "../../../native/binding/index.d.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { cancellable, settled } from "./embeddedAddon.ts";
import type { EmbeddedModel } from "./embeddedModel.ts";
import { loadEmbedded, saveEmbedded } from "./embeddedSave.ts";
import type {
  CallOptions,
  Cotangents,
  ModelInfo,
  OptimizerStep,
  Outputs,
  PackedBatch,
  Scalars,
  TrainingEngine,
  WeightsRef,
} from "./interface.ts";

/** Experts that the router chose, for checks: [layer][n][k], −1 in dense layers. */
export interface RecordedRouting {
  readonly experts: Int16Array;
  readonly weights: Float32Array;
}

/** Share of a gradient pass that its forward is, for progress. */
const forwardShare = 1 / 3;

export class EmbeddedTrainingEngine implements TrainingEngine {
  private readonly model: EmbeddedModel;
  private readonly native: NativeTrainer;
  /** Calls that change gradient or weights run one after the other. */
  private last: Promise<unknown> = Promise.resolve();
  /** A failed accumulate leaves a part of a gradient behind, which no step may use. */
  private gradientIsPartial = false;

  constructor(model: EmbeddedModel) {
    this.model = model;
    this.native = model.trainer;
  }

  info(): ModelInfo {
    return this.model.info();
  }

  /** May be called from a cotangents callback. Errors: ENGINE_REQUEST_INVALID, ENGINE_NON_FINITE, ENGINE_OUT_OF_MEMORY, ENGINE_CANCELLED. */
  async *forward(
    batches: readonly PackedBatch[],
    want: Outputs,
    weights: WeightsRef,
    options: CallOptions = {},
  ): AsyncIterable<{ readonly index: number; readonly scalars: Scalars }> {
    const which = snapshotOf(weights);
    this.refuseMissingValueHead(want);
    const total = tokensIn(batches);
    let done = 0;
    for (const [index, batch] of batches.entries()) {
      const scalars = await cancellable(options.signal, (cancel) =>
        this.native.forward(nativeBatch(batch), want, which, cancel),
      );
      done += batch.tokens.length;
      options.onProgress?.({ done, total });
      yield { index, scalars };
    }
  }

  /**
   * The callback may call forward, nothing else of this engine. After a failure the gradient is partial: discard it.
   * Errors: as forward, and those the callback throws.
   */
  accumulate(
    batches: readonly PackedBatch[],
    want: Outputs,
    cotangents: (index: number, scalars: Scalars) => Cotangents | Promise<Cotangents>,
    options: CallOptions = {},
  ): Promise<void> {
    return this.inTurn(async () => {
      this.refuseMissingValueHead(want);
      const total = tokensIn(batches);
      let done = 0;
      const report = (part: number) => options.onProgress?.({ done: Math.round(done + part), total });
      this.gradientIsPartial = true;
      for (const [index, batch] of batches.entries()) {
        const size = batch.tokens.length;
        const scalars = await cancellable(options.signal, (cancel) =>
          this.native.forwardForGradient(nativeBatch(batch), want, cancel),
        );
        report(size * forwardShare);
        const given = await cotangents(index, scalars);
        await cancellable(options.signal, (cancel) => this.native.backward(given, cancel));
        done += size;
        report(0);
      }
      this.gradientIsPartial = false;
    });
  }

  gradient(): Promise<{ readonly norm: number; readonly finite: boolean }> {
    return this.inTurn(() => {
      this.refusePartialGradient();
      return settled(() => this.native.gradient());
    });
  }

  /** Errors: ENGINE_NON_FINITE when the gradient is not finite; the weights stay as they were. */
  step(options: OptimizerStep): Promise<{ readonly version: number }> {
    return this.inTurn(async () => {
      this.refusePartialGradient();
      refuseUnusable(options);
      const version = await settled(() =>
        this.native.step({
          lr: options.lr,
          beta1: options.betas[0],
          beta2: options.betas[1],
          eps: options.eps,
          weightDecay: options.weightDecay,
          decayAll: options.decayed === "all",
          ...(options.maxGradNorm === null ? {} : { maxGradNorm: options.maxGradNorm }),
        }),
      );
      return { version };
    });
  }

  discard(): Promise<void> {
    return this.inTurn(async () => {
      await settled(() => this.native.discard());
      this.gradientIsPartial = false;
    });
  }

  snapshot(id: string): Promise<void> {
    return this.inTurn(() => settled(() => this.model.native.snapshot(id)));
  }

  release(id: string): Promise<void> {
    return this.inTurn(() => settled(() => this.model.native.release(id)));
  }

  /** Errors: ENGINE_SAVE_FAILED. */
  save(dir: string, what: "weights" | "full"): Promise<void> {
    return this.inTurn(() => saveEmbedded(this.model, dir, what));
  }

  /** Drops the accumulated gradient; the optimizer starts anew unless the folder holds its state. Errors: as openEmbeddedModel. */
  load(dir: string): Promise<void> {
    return this.inTurn(async () => {
      await loadEmbedded(this.model, dir);
      await settled(() => this.native.discard());
      this.gradientIsPartial = false;
    });
  }

  /** Waits for running work; the model is shared and stays. */
  async dispose(): Promise<void> {
    await this.inTurn(() => settled(() => this.native.discard()));
  }

  /** The accumulated gradient or a moment of one tensor, by its Hugging Face name. Errors: ENGINE_TENSOR_MISSING. */
  readTensor(name: string, which: "gradient" | "firstMoment" | "secondMoment"): Promise<Float32Array> {
    return settled(() => this.native.readTensor(name, which));
  }

  /** The router's choices for a batch under the current weights; for models with experts. */
  async routing(batch: PackedBatch): Promise<RecordedRouting> {
    const nothing = { logprob: false, entropy: false, value: false };
    const result = await cancellable(undefined, (cancel) =>
      this.native.forward(nativeBatch(batch), nothing, { recordRouting: true }, cancel),
    );
    return { experts: result.experts ?? new Int16Array(0), weights: result.mix ?? new Float32Array(0) };
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.last.then(work, work);
    this.last = result.catch(() => undefined);
    return result;
  }

  private refusePartialGradient(): void {
    if (!this.gradientIsPartial) return;
    throw new RollscopeError(
      "ENGINE_REQUEST_INVALID",
      "The accumulated gradient is incomplete: a pass over its batches failed.",
      {
        next: "Call discard and accumulate the whole step again.",
      },
    );
  }

  private refuseMissingValueHead(want: Outputs): void {
    if (!want.value || this.model.hasValueHead) return;
    throw new RollscopeError("ENGINE_UNSUPPORTED", "The model was opened without a value head.", {
      next: "Open it with valueHead, or use an objective without values.",
    });
  }
}

function snapshotOf(weights: WeightsRef): { snapshot?: string } {
  switch (weights.kind) {
    case "policy":
      return {};
    case "snapshot":
      return { snapshot: weights.id };
    case "base":
      throw new RollscopeError(
        "ENGINE_UNSUPPORTED",
        "Without adapters there are no base weights beside the policy's.",
        {
          next: "Take a snapshot before training and name it as the reference.",
        },
      );
    case "engine":
      throw new RollscopeError("ENGINE_REQUEST_INVALID", `The ${weights.role} is an engine of its own.`, {
        next: "Ask that engine with the weights of its policy.",
      });
  }
}

function nativeBatch(batch: PackedBatch): NativeBatch {
  const positions = batch.positions[0];
  if (positions === undefined || batch.positions.length !== 1) {
    throw new RollscopeError(
      "ENGINE_MEDIA_UNSUPPORTED",
      `The embedded engine reads one axis of positions, not ${batch.positions.length}.`,
      {
        next: "Use the torch engine for models with several position axes.",
      },
    );
  }
  const nodes = new Int32Array(batch.nodes.length * 3);
  for (const [index, node] of batch.nodes.entries()) nodes.set([node.start, node.end, node.parent], 3 * index);
  return {
    tokens: batch.tokens,
    positions,
    nodes,
    temperature: batch.temperature,
    wanted: batch.wanted,
    ...(batch.routing === undefined ? {} : { routing: batch.routing }),
  };
}

function refuseUnusable(options: OptimizerStep): void {
  const { lr, betas, eps, weightDecay, maxGradNorm } = options;
  const usable =
    [lr, ...betas, eps, weightDecay, maxGradNorm ?? 1].every((value) => Number.isFinite(value) && value >= 0) &&
    betas.every((beta) => beta < 1) &&
    (maxGradNorm === null || maxGradNorm > 0);
  if (usable) return;
  throw new RollscopeError("ENGINE_REQUEST_INVALID", "The optimizer's numbers are unusable.", {
    next: "Use finite, non-negative numbers, betas below 1 and a positive maxGradNorm.",
    at: { lr, beta1: betas[0], beta2: betas[1], eps, weightDecay, maxGradNorm: maxGradNorm ?? "null" },
  });
}

function tokensIn(batches: readonly PackedBatch[]): number {
  return batches.reduce((sum, batch) => sum + batch.tokens.length, 0);
}
