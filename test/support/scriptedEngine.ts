// A deterministic inference engine without a model: tokens and log-probabilities come from hashes of the prompt and the
// sampling key. It is a test engine: it follows the interface to the letter and can be told what to emit, and how.
import type {
  EngineHealth,
  GenerateRequest,
  InferenceEngine,
  ModelInfo,
  Scored,
  ScoreRequest,
  TokenChunk,
} from "../../agent-daemon/src/engines/interface.ts";

/** Yields the answer to one request; the engine's own hash-based one when there is none. */
export type Answer = (request: GenerateRequest, call: number) => readonly EmittedChunk[] | null;

export interface EmittedChunk {
  readonly ids: readonly number[];
  readonly finishReason?: "stop" | "length" | "abort" | "error";
  /** Fails with this error instead. */
  readonly throws?: unknown;
  /** Stays silent until aborted. */
  readonly hangs?: boolean;
  readonly logprobs?: readonly number[];
}

export interface ScriptedEngineOptions {
  readonly vocabularySize: number;
  readonly maxPositions?: number;
  readonly answer?: Answer;
  /** Tokens in one chunk. */
  readonly chunk?: number;
}

export class ScriptedEngine implements InferenceEngine {
  readonly requests: GenerateRequest[] = [];
  /** Requests whose signal was aborted before they had ended. */
  aborted = 0;
  version = 0;
  private readonly options: ScriptedEngineOptions;

  constructor(options: ScriptedEngineOptions) {
    this.options = options;
  }

  info(): ModelInfo {
    return {
      architecture: "scripted",
      vocabularySize: this.options.vocabularySize,
      layers: 0,
      hiddenSize: 0,
      parameters: 0,
      maxPositions: this.options.maxPositions ?? 1_000_000,
      replicas: 1,
      dtype: "f32",
      threads: 1,
      device: "scripted",
      capabilities: {
        forest: false,
        value: false,
        lora: false,
        routingReplay: false,
        media: false,
        maxTokensPerBatch: 1,
        deterministic: true,
      },
    };
  }

  async *generate(request: GenerateRequest, signal: AbortSignal): AsyncGenerator<TokenChunk> {
    const call = this.requests.push(request) - 1;
    const chunks = this.options.answer?.(request, call) ?? this.ownAnswer(request);
    let position = 0;
    let over = false;
    try {
      for (const [index, chunk] of chunks.entries()) {
        if (chunk.throws !== undefined) throw chunk.throws;
        if (chunk.hangs) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        // Chunks of a real engine come in later turns of the event loop.
        await new Promise<void>((resolve) => setImmediate(resolve));
        if (signal.aborted) {
          yield this.emit(request, position, { ids: [], finishReason: "abort" });
          return;
        }
        const isLast = index === chunks.length - 1;
        const emitted =
          isLast && chunk.finishReason === undefined ? { ...chunk, finishReason: "stop" as const } : chunk;
        const cached = index === 0 ? { cachedTokens: Math.max(0, request.tokens.length - 1) } : {};
        yield { ...this.emit(request, position, emitted), ...cached };
        position += chunk.ids.length;
      }
      over = true;
    } finally {
      if (!over && signal.aborted) this.aborted++;
    }
  }

  async score({ tokens, from }: ScoreRequest): Promise<Scored> {
    const logprobs = Float32Array.from(tokens.subarray(from), (id, index) => logprobOf(tokens, from + index, id));
    return { logprobs, entropy: new Float32Array(logprobs.length).fill(1), version: this.version };
  }

  async updateWeights(): Promise<number> {
    return ++this.version;
  }

  async pause(): Promise<void> {}
  async resume(): Promise<void> {}
  async releaseMemory(): Promise<void> {}
  async restoreMemory(): Promise<void> {}
  async dispose(): Promise<void> {}

  health(): EngineHealth {
    return { ok: true, running: 0, queued: 0, version: this.version, paused: false, cachedTokens: 0 };
  }

  /** Forced ids, or ids drawn from the key; a stop id ends them. */
  private ownAnswer(request: GenerateRequest): EmittedChunk[] {
    const ids: number[] = [];
    let finishReason: "stop" | "length" = "length";
    while (ids.length < request.maxNewTokens) {
      const { seed, record, call } = request.key;
      const drawn = hash(seed, record, call, ids.length) % this.options.vocabularySize;
      const id = request.forced ? request.forced[ids.length] : drawn;
      if (id === undefined) break;
      ids.push(id);
      if (!request.stopIds.includes(id)) continue;
      finishReason = "stop";
      break;
    }
    const size = this.options.chunk ?? 1;
    const chunks = Array.from({ length: Math.max(1, Math.ceil(ids.length / size)) }, (_, index): EmittedChunk => {
      return { ids: ids.slice(index * size, (index + 1) * size) };
    });
    return [...chunks.slice(0, -1), { ...(chunks.at(-1) as EmittedChunk), finishReason }];
  }

  private emit(request: GenerateRequest, position: number, chunk: EmittedChunk): TokenChunk {
    const at = request.tokens.length + position;
    return {
      ids: Int32Array.from(chunk.ids),
      logprobs: Float32Array.from(
        chunk.ids,
        (id, index) => chunk.logprobs?.[index] ?? logprobOf(request.tokens, at + index, id),
      ),
      versions: new Int32Array(chunk.ids.length).fill(this.version),
      ...(request.topAlternatives > 0 ? { alternatives: this.alternatives(request, chunk, at) } : {}),
      ...(chunk.finishReason ? { finishReason: chunk.finishReason } : {}),
    };
  }

  private alternatives(request: GenerateRequest, chunk: EmittedChunk, at: number) {
    const count = request.topAlternatives;
    const ids = Int32Array.from({ length: chunk.ids.length * count }, (_, index) => index % count);
    const logprobs = Float32Array.from(ids, (id, index) => logprobOf(request.tokens, at + index, id));
    return { ids, logprobs, count };
  }
}

/** A log-probability in (−8, −0.01) fixed by place and token. */
function logprobOf(tokens: Int32Array, position: number, id: number): number {
  return -0.01 - (hash(tokens.length, tokens[0] ?? 0, position, id) % 7990) / 1000;
}

function hash(...numbers: readonly number[]): number {
  let state = 0x811c9dc5;
  for (const number of numbers) {
    state = Math.imul(state ^ (number >>> 0), 0x01000193);
    state = Math.imul(state ^ Math.floor(number / 2 ** 32), 0x01000193);
    state ^= state >>> 13;
  }
  return Math.imul(state ^ (state >>> 16), 0x85ebca6b) >>> 0;
}
