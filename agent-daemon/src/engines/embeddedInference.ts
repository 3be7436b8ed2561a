// Generation and scoring on the embedded engine: the InferenceEngine over one native generator. It turns requests into what
// the addon reads and its batches into streams; it must never sample, truncate or change a number.
import type {
  NativeBatch,
  NativeGenerator,
  NativeGeneratorConstructor,
  NativeRequest,
} from "../../../native/binding/generation.d.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { answered, coded, settled } from "./embeddedAddon.ts";
import { checkWhole, chunkAt, endChunk, finishReasonAt, nativeRequest, scoreDefaults } from "./embeddedMessages.ts";
import type {
  EngineHealth,
  GenerateRequest,
  InferenceEngine,
  ModelInfo,
  Scored,
  ScoreRequest,
  TokenChunk,
  WeightSource,
} from "./interface.ts";
import { SignalFollowers } from "./signalFollowers.ts";
import type { TokenByteTable } from "./tokenByteTable.ts";
import { TokenStream } from "./tokenStream.ts";

export interface InferenceOptions {
  /** Upper bound of the key/value cache; memory is taken when it is needed. */
  readonly cacheBytes?: number;
  /** Most requests computed together; more wait. */
  readonly maxRunning?: number;
  /** Rows one iteration computes: a row for each request that decodes, the rest for prompts. */
  readonly rowsPerIteration?: number;
  /** Needed for stop strings. */
  readonly tokenBytes?: TokenByteTable;
}

/** What generation needs from the engine that loaded the model. */
export interface InferenceParts<Model> {
  readonly generator: NativeGeneratorConstructor<Model>;
  readonly model: Model;
  readonly info: () => ModelInfo;
  /** Replaces the model's weights by those of a folder. */
  readonly reload: (dir: string) => Promise<void>;
}

/** Counters since the engine was opened. */
export interface InferenceStatistics {
  /** Prompt rows computed; what came from the cache or from a sibling is not among them. */
  readonly prefilledTokens: number;
  readonly decodedTokens: number;
  readonly evictedBlocks: number;
  readonly preemptions: number;
  readonly cacheBlocks: number;
  readonly cacheCapacity: number;
}

interface Pending {
  readonly stream?: TokenStream;
  readonly stopStrings: readonly string[];
  readonly onEnd: () => void;
  readonly onScore?: (scored: Scored) => void;
  readonly onError: (error: unknown) => void;
}

const defaultCacheBytes = 2 ** 30;
const defaultMaxRunning = 256;
const defaultRowsPerIteration = 512;

export class EmbeddedInferenceEngine implements InferenceEngine {
  private readonly native: NativeGenerator;
  private readonly modelInfo: () => ModelInfo;
  private readonly reload: (dir: string) => Promise<void>;
  private readonly pending = new Map<number, Pending>();
  /** Requests of this turn of the event loop: handed over together, so that siblings share their prompt from the first row. */
  private outbox: { readonly id: number; readonly request: NativeRequest }[] = [];
  private readonly signals = new SignalFollowers();
  private nextRequest = 1;
  private isDisposed = false;

  private constructor(
    native: (deliver: (batch: NativeBatch) => void) => NativeGenerator,
    info: () => ModelInfo,
    reload: (dir: string) => Promise<void>,
  ) {
    this.native = native((batch) => this.receive(batch));
    this.modelInfo = info;
    this.reload = reload;
  }

  /** Packs the model's weights as they are now. Errors: ENGINE_OUT_OF_MEMORY, ENGINE_UNSUPPORTED. */
  static async open<Model>(
    parts: InferenceParts<Model>,
    options: InferenceOptions = {},
  ): Promise<EmbeddedInferenceEngine> {
    const engine = answered(
      () =>
        new EmbeddedInferenceEngine(
          (deliver) =>
            new parts.generator(
              parts.model,
              {
                cacheBytes: options.cacheBytes ?? defaultCacheBytes,
                running: options.maxRunning ?? defaultMaxRunning,
                rowsPerIteration: options.rowsPerIteration ?? defaultRowsPerIteration,
                ...(options.tokenBytes === undefined
                  ? {}
                  : { tokenBytes: options.tokenBytes.bytes, tokenOffsets: options.tokenBytes.offsets }),
              },
              deliver,
            ),
          parts.info,
          parts.reload,
        ),
    );
    await settled(() => engine.native.updateWeights());
    return engine;
  }

  info(): ModelInfo {
    return this.modelInfo();
  }

  /**
   * The request starts at once, whether or not the chunks are read; leaving the loop early aborts it.
   * Errors, thrown by the iteration: ENGINE_REQUEST_INVALID, ENGINE_CACHE_TOO_SMALL, ENGINE_NON_FINITE, ENGINE_OUT_OF_MEMORY.
   */
  generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<TokenChunk> {
    const id = this.nextRequest++;
    const abort = () => {
      if (this.isDisposed) return;
      this.handOver();
      this.native.abort(id);
    };
    const stream = new TokenStream(abort);
    if (signal.aborted) {
      stream.push(endChunk("abort"));
      return stream;
    }
    const refused = failureOf(() => {
      checkWhole(request);
      this.submit(id, nativeRequest(request));
    });
    if (refused !== undefined) {
      stream.fail(refused);
      return stream;
    }
    this.pending.set(id, {
      stream,
      stopStrings: request.stopStrings,
      onEnd: this.signals.follow(signal, abort),
      onError: (error) => stream.fail(error),
    });
    return stream;
  }

  /** Errors: as generate. A prefix that is in the cache is not computed again. */
  score(request: ScoreRequest): Promise<Scored> {
    return new Promise((resolve, reject) => {
      const id = this.nextRequest++;
      const { tokens, temperature, from: scoreFrom } = request;
      const refused = failureOf(() => this.submit(id, { ...scoreDefaults, tokens, temperature, scoreFrom }));
      if (refused !== undefined) reject(refused);
      else this.pending.set(id, { stopStrings: [], onEnd: () => {}, onScore: resolve, onError: reject });
    });
  }

  async updateWeights(from: WeightSource): Promise<number> {
    if (from.kind === "folder") await this.reload(from.dir);
    return settled(() => this.current().updateWeights());
  }

  async pause(mode: "wait" | "hold" | "abort"): Promise<void> {
    await settled(() => this.current().pause(mode));
  }

  async resume(): Promise<void> {
    await settled(() => this.current().resume());
  }

  async releaseMemory(): Promise<void> {
    await settled(() => this.current().releaseMemory());
  }

  /** Takes the weights that the model holds by then. */
  async restoreMemory(): Promise<void> {
    await settled(() => this.current().restoreMemory());
  }

  health(): EngineHealth {
    if (this.isDisposed) return { ok: false, running: 0, queued: 0, version: 0, paused: false, cachedTokens: 0 };
    const { running, queued, version, paused, released, cachedTokens } = this.current().health();
    return { ok: !released, running, queued, version, paused, cachedTokens };
  }

  statistics(): InferenceStatistics {
    const { prefilledTokens, decodedTokens, evictedBlocks, preemptions, cacheBlocks, cacheCapacity } = answered(() =>
      this.current().health(),
    );
    return { prefilledTokens, decodedTokens, evictedBlocks, preemptions, cacheBlocks, cacheCapacity };
  }

  /** Running requests end with finish reason abort, scores reject. */
  async dispose(): Promise<void> {
    if (this.isDisposed) return;
    this.isDisposed = true;
    this.native.dispose();
    const ended = [...this.pending.values()];
    this.pending.clear();
    for (const request of ended) {
      request.onEnd();
      if (request.stream !== undefined) request.stream.push(endChunk("abort"));
      else request.onError(disposed());
    }
  }

  private submit(id: number, request: NativeRequest): void {
    if (this.isDisposed) throw disposed();
    if (this.outbox.length === 0) queueMicrotask(() => this.handOver());
    this.outbox.push({ id, request });
  }

  private handOver(): void {
    const { outbox } = this;
    if (outbox.length === 0 || this.isDisposed) return;
    this.outbox = [];
    const refused = failureOf(() =>
      this.native.submit(
        outbox.map(({ id }) => id),
        outbox.map(({ request }) => request),
      ),
    );
    if (refused === undefined) return;
    for (const { id } of outbox) {
      const request = this.pending.get(id);
      this.pending.delete(id);
      request?.onEnd();
      request?.onError(refused);
    }
  }

  /** The generator, knowing all that was asked so far. */
  private current(): NativeGenerator {
    this.handOver();
    return this.native;
  }

  private receive(batch: NativeBatch): void {
    const more = new Map(batch.more.map((entry) => [entry.index, entry]));
    for (let index = 0; index < batch.requests.length; index++) {
      const id = batch.requests[index]!;
      const request = this.pending.get(id);
      if (request === undefined) continue;
      const finish = batch.finishes[index]!;
      if (finish >= 0) {
        this.pending.delete(id);
        request.onEnd();
      }
      const extra = more.get(index);
      if (extra?.error !== undefined) {
        request.onError(coded(extra.error));
      } else if (request.stream !== undefined) {
        request.stream.push(chunkAt(batch, index, request.stopStrings, extra));
      } else if (finishReasonAt(batch, index) === "abort") {
        request.onError(aborted());
      } else {
        request.onScore?.({
          logprobs: extra?.scoreLogprobs ?? new Float32Array(0),
          entropy: extra?.scoreEntropies ?? new Float32Array(0),
          version: batch.versions[index]!,
        });
      }
    }
  }
}

/** What the work threw, if anything. */
function failureOf(work: () => void): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return coded(error);
  }
}

function disposed(): RollscopeError {
  return new RollscopeError("ENGINE_CANCELLED", "The inference engine was disposed.", {
    next: "Open it again before using it.",
  });
}

function aborted(): RollscopeError {
  return new RollscopeError("ENGINE_CANCELLED", "The score was aborted.", { next: "Ask for it again after resume." });
}
