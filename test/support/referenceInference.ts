// Generation from the weights of a ReferenceEngine, so that whole runs can be proven in milliseconds: every number is the one
// that the trainer computes. Slow by design (one forward a token), and exact.
import type {
  EngineHealth,
  GenerateRequest,
  InferenceEngine,
  PackedBatch,
  Scored,
  ScoreRequest,
  TokenChunk,
} from "../../agent-daemon/src/engines/interface.ts";
import type { ReferenceEngine } from "./referenceEngine.ts";
import { randomNumbers } from "./referenceEngine.ts";

export class ReferenceInference implements InferenceEngine {
  readonly #engine: ReferenceEngine;
  #running = 0;
  #version = 0;

  constructor(engine: ReferenceEngine) {
    this.#engine = engine;
  }

  info() {
    return this.#engine.info();
  }

  async *generate(request: GenerateRequest, signal: AbortSignal): AsyncGenerator<TokenChunk> {
    this.#running += 1;
    try {
      const { seed, record, call } = request.key;
      const random = randomNumbers((seed * 31 + (record % 4294967291) + call * 7919) >>> 0);
      const tokens = [...request.tokens];
      for (let count = 0; ; ) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        if (signal.aborted) {
          yield {
            ids: new Int32Array(0),
            logprobs: new Float32Array(0),
            versions: new Int32Array(0),
            finishReason: "abort",
          };
          return;
        }
        const temperature = request.temperature === 0 ? 1 : request.temperature;
        const logprobs = await this.#distribution(tokens, temperature);
        const id = request.temperature === 0 ? argmax(logprobs) : draw(logprobs, random());
        tokens.push(id);
        count += 1;
        const stops = request.stopIds.includes(id);
        const finishReason = stops ? "stop" : count === request.maxNewTokens ? "length" : undefined;
        yield {
          ids: Int32Array.of(id),
          logprobs: Float32Array.of(logprobs[id]!),
          versions: Int32Array.of(this.#version),
          ...(count === 1 ? { cachedTokens: 0 } : {}),
          ...(finishReason === undefined ? {} : { finishReason }),
        };
        if (finishReason !== undefined) return;
      }
    } finally {
      this.#running -= 1;
    }
  }

  async score({ tokens, temperature, from }: ScoreRequest): Promise<Scored> {
    const { logprob, entropy } = await this.#forward(
      {
        tokens,
        positions: [Int32Array.from(tokens, (_, index) => index)],
        nodes: [{ start: 0, end: tokens.length, parent: -1 }],
        temperature: new Float32Array(tokens.length).fill(temperature),
        wanted: Uint8Array.from(tokens, (_, index) => (index >= from && index > 0 ? 1 : 0)),
      },
      true,
    );
    return { logprobs: logprob!.slice(from), entropy: entropy!.slice(from), version: this.#version };
  }

  async updateWeights(): Promise<number> {
    this.#version = this.#engine.version;
    return this.#version;
  }

  async pause(): Promise<void> {}
  async resume(): Promise<void> {}
  async releaseMemory(): Promise<void> {}
  async restoreMemory(): Promise<void> {}
  async dispose(): Promise<void> {}

  health(): EngineHealth {
    return { ok: true, running: this.#running, queued: 0, version: this.#version, paused: false, cachedTokens: 0 };
  }

  /** [vocabulary] log-probability of each token as the next one: a forest with one leaf a token. */
  async #distribution(prefix: readonly number[], temperature: number): Promise<Float32Array> {
    const vocabulary = this.info().vocabularySize;
    const n = prefix.length;
    const { logprob } = await this.#forward(
      {
        tokens: Int32Array.from([...prefix, ...Array(vocabulary).keys()]),
        positions: [Int32Array.from({ length: n + vocabulary }, (_, index) => Math.min(index, n))],
        nodes: [
          { start: 0, end: n, parent: -1 },
          ...Array.from({ length: vocabulary }, (_, id) => ({ start: n + id, end: n + id + 1, parent: 0 })),
        ],
        temperature: new Float32Array(n + vocabulary).fill(temperature),
        wanted: new Uint8Array(n + vocabulary).fill(1, n),
      },
      false,
    );
    return logprob!.slice(n);
  }

  async #forward(batch: PackedBatch, entropy: boolean) {
    const want = { logprob: true, entropy, value: false };
    for await (const { scalars } of this.#engine.forward([batch], want, { kind: "policy" })) return scalars;
    throw new Error("the engine gave no scalars");
  }
}

function argmax(values: Float32Array): number {
  return values.reduce((best, value, index) => (value > values[best]! ? index : best), 0);
}

function draw(logprobs: Float32Array, at: number): number {
  let sum = 0;
  for (let id = 0; id < logprobs.length; id++) {
    sum += Math.exp(logprobs[id]!);
    if (at < sum) return id;
  }
  return argmax(logprobs);
}
