// A TrainingEngine of a few hundred float64 parameters, for proving what the loop does with an engine on true gradients. It is
// a test engine: it follows the interface to the letter, keeps what it was given, and can be told to go wrong.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type {
  Cotangents,
  ModelInfo,
  OptimizerStep,
  Outputs,
  PackedBatch,
  Scalars,
  TrainingEngine,
  WeightsRef,
} from "../../agent-daemon/src/engines/interface.ts";
import {
  type ModelInput,
  ModelPass,
  type ModelShape,
  newTensors,
  type Tensors,
  tensorSizes,
} from "./referenceModel.ts";

export interface ReferenceEngineOptions {
  readonly seed?: number;
  readonly shape?: ModelShape;
  readonly forest?: boolean;
  readonly value?: boolean;
  readonly replicas?: number;
  readonly maxTokensPerBatch?: number;
  /** The interface allows cotangents to be asked for in any order. */
  readonly lastBatchFirst?: boolean;
}

const defaultShape: ModelShape = { vocabulary: 11, hidden: 6, maxPositions: 512 };

export class ReferenceEngine implements TrainingEngine {
  readonly calls: { kind: "forward" | "accumulate"; batches: readonly PackedBatch[]; weights: WeightsRef }[] = [];
  readonly steps: OptimizerStep[] = [];
  weights: Tensors;
  gradients: Tensors;
  /** Changes what the engine reports, to show what the loop does with a broken one. */
  corrupt: ((scalars: Scalars, index: number) => void) | null = null;
  /** Added to every element of the next gradient. */
  gradientFault = 0;
  version = 0;
  readonly #shape: ModelShape;
  readonly #options: ReferenceEngineOptions;
  readonly #snapshots = new Map<string, Tensors>();
  #moments: { first: Tensors; second: Tensors; count: number };

  constructor(options: ReferenceEngineOptions = {}) {
    this.#options = options;
    this.#shape = options.shape ?? defaultShape;
    const random = randomNumbers(options.seed ?? 1);
    this.weights = newTensors(this.#shape, () => random() * 1.6 - 0.8);
    this.gradients = this.#zeros();
    this.#moments = { first: this.#zeros(), second: this.#zeros(), count: 0 };
  }

  info(): ModelInfo {
    const { vocabulary, hidden, maxPositions } = this.#shape;
    return {
      architecture: "reference",
      vocabularySize: vocabulary,
      layers: 1,
      hiddenSize: hidden,
      parameters: Object.values(tensorSizes(this.#shape)).reduce((sum, size) => sum + size, 0),
      maxPositions,
      replicas: this.#options.replicas ?? 1,
      dtype: "f32",
      threads: 1,
      device: "float64",
      capabilities: {
        forest: this.#options.forest ?? true,
        value: this.#options.value ?? true,
        lora: false,
        routingReplay: false,
        media: false,
        maxTokensPerBatch: this.#options.maxTokensPerBatch ?? 1_000_000,
        deterministic: true,
      },
    };
  }

  async *forward(batches: readonly PackedBatch[], want: Outputs, weights: WeightsRef) {
    this.calls.push({ kind: "forward", batches, weights });
    for (const index of this.#order(batches)) {
      yield { index, scalars: this.#scalars(this.#pass(batches[index]!, weights), batches[index]!, want, index) };
    }
  }

  async accumulate(
    batches: readonly PackedBatch[],
    want: Outputs,
    cotangents: (index: number, scalars: Scalars) => Cotangents | Promise<Cotangents>,
  ): Promise<void> {
    this.calls.push({ kind: "accumulate", batches, weights: { kind: "policy" } });
    for (const index of this.#order(batches)) {
      const batch = batches[index]!;
      const pass = this.#pass(batch, { kind: "policy" });
      const given = await cotangents(index, this.#scalars(pass, batch, want, index));
      const at = new Map(
        wantedTokens(batch).map((i) => [
          i,
          { logprob: given.logprob?.[i] ?? 0, entropy: given.entropy?.[i] ?? 0, value: given.value?.[i] ?? 0 },
        ]),
      );
      pass.backward(at, this.gradients);
    }
    if (this.gradientFault !== 0) this.gradients.head[0]! += this.gradientFault;
  }

  async gradient() {
    const norm = Math.sqrt(Object.values(this.gradients).reduce((sum, g) => sum + squares(g), 0));
    return { norm, finite: Number.isFinite(norm) };
  }

  async step(options: OptimizerStep) {
    this.steps.push(options);
    const { norm } = await this.gradient();
    const scale = options.maxGradNorm === null ? 1 : Math.min(1, options.maxGradNorm / (norm + 1e-6));
    const [b1, b2] = options.betas;
    const { first, second } = this.#moments;
    this.#moments.count += 1;
    const c1 = 1 - b1 ** this.#moments.count;
    const c2 = 1 - b2 ** this.#moments.count;
    for (const name of Object.keys(this.weights) as (keyof Tensors)[]) {
      const decays = options.decayed === "all" || name !== "valueHead";
      this.weights[name].forEach((w, i) => {
        const g = this.gradients[name][i]! * scale;
        const m = b1 * first[name][i]! + (1 - b1) * g;
        const s = b2 * second[name][i]! + (1 - b2) * g * g;
        first[name][i] = m;
        second[name][i] = s;
        const kept = decays ? w * (1 - options.lr * options.weightDecay) : w;
        this.weights[name][i] = kept - (options.lr * (m / c1)) / (Math.sqrt(s / c2) + options.eps);
      });
    }
    await this.discard();
    this.version += 1;
    return { version: this.version };
  }

  async discard(): Promise<void> {
    this.gradients = this.#zeros();
  }

  async snapshot(id: string): Promise<void> {
    this.#snapshots.set(id, copy(this.weights));
  }

  async release(id: string): Promise<void> {
    this.#snapshots.delete(id);
  }

  async save(dir: string, what: "weights" | "full"): Promise<void> {
    await mkdir(dir, { recursive: true });
    await writeFile(join(dir, "weights.json"), toJson(this.weights));
    if (what === "weights") return;
    const { first, second, count } = this.#moments;
    const state = { version: this.version, count, first: toJson(first), second: toJson(second) };
    await writeFile(join(dir, "optimizer.json"), JSON.stringify(state));
  }

  async load(dir: string): Promise<void> {
    this.weights = fromJson(await readFile(join(dir, "weights.json"), "utf8"));
    const state = JSON.parse(await readFile(join(dir, "optimizer.json"), "utf8"));
    this.version = state.version;
    this.#moments = { first: fromJson(state.first), second: fromJson(state.second), count: state.count };
    await this.discard();
  }

  async dispose(): Promise<void> {
    this.#snapshots.clear();
  }

  #zeros(): Tensors {
    return newTensors(this.#shape, () => 0);
  }

  #order(batches: readonly PackedBatch[]): number[] {
    const order = batches.map((_, index) => index);
    return this.#options.lastBatchFirst === true ? order.reverse() : order;
  }

  #pass(batch: PackedBatch, ref: WeightsRef): ModelPass {
    const limit = this.#options.maxTokensPerBatch;
    if (limit !== undefined && batch.tokens.length > limit) throw new Error(`${batch.tokens.length} tokens > ${limit}`);
    if (this.#options.forest === false && batch.nodes.some((node) => node.parent >= 0)) throw new Error("no forests");
    const weights = ref.kind === "snapshot" ? this.#snapshots.get(ref.id) : this.weights;
    if (weights === undefined) throw new Error("unknown snapshot");
    return new ModelPass(this.#shape, weights, modelInput(batch));
  }

  #scalars(pass: ModelPass, batch: PackedBatch, want: Outputs, index: number): Scalars {
    const blank = () => new Float32Array(batch.tokens.length).fill(Number.NaN);
    const scalars = {
      ...(want.logprob ? { logprob: blank() } : {}),
      ...(want.entropy ? { entropy: blank() } : {}),
      ...(want.value ? { value: blank() } : {}),
    };
    for (const i of wantedTokens(batch)) {
      const output = pass.output(i);
      for (const name of ["logprob", "entropy", "value"] as const) {
        const column = scalars[name];
        if (column !== undefined) column[i] = output[name];
      }
    }
    this.corrupt?.(scalars, index);
    return scalars;
  }
}

/** For a batch: what each token attends to, from its nodes alone. */
export function modelInput(batch: PackedBatch): ModelInput {
  const path: number[][] = [];
  const lastOf: number[] = [];
  batch.nodes.forEach(({ start, end, parent }, node) => {
    if (start !== path.length || parent >= node) throw new Error("nodes must cover the batch in order, parents first");
    let above = parent < 0 ? [] : path[lastOf[parent]!]!;
    for (let i = start; i < end; i++) {
      above = [...above, i];
      path.push(above);
    }
    lastOf.push(end - 1);
  });
  if (path.length !== batch.tokens.length) throw new Error("nodes must cover the batch");
  return { tokens: batch.tokens, positions: batch.positions[0]!, temperature: batch.temperature, path };
}

/** mulberry32: numbers in [0, 1) from a seed. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function wantedTokens(batch: PackedBatch): number[] {
  return [...batch.wanted.keys()].filter((i) => batch.wanted[i] === 1);
}

function squares(values: Float64Array): number {
  return values.reduce((sum, x) => sum + x * x, 0);
}

function copy(tensors: Tensors): Tensors {
  return Object.fromEntries(Object.entries(tensors).map(([name, values]) => [name, values.slice()])) as Tensors;
}

function toJson(tensors: Tensors): string {
  return JSON.stringify(Object.fromEntries(Object.entries(tensors).map(([name, values]) => [name, [...values]])));
}

function fromJson(text: string): Tensors {
  const parsed: Record<string, number[]> = JSON.parse(text);
  return Object.fromEntries(Object.entries(parsed).map(([name, v]) => [name, Float64Array.from(v)])) as Tensors;
}
