// Runs one generation to its end, whatever the end is: collects ids and numbers as they come, watches for stop strings, a time
// limit and cancellation, and never loses what was sampled. It never throws.
import type { VersionRun } from "../../../protocol/call.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { GenerateRequest, InferenceEngine, TokenChunk } from "../engines/interface.ts";
import type { Tokenizer } from "../engines/tokenizer/tokenizer.ts";
import { StopScanner } from "./stopStrings.ts";

/** Waits `milliseconds`, then calls; the result cancels. */
export type After = (milliseconds: number, then: () => void) => () => void;

export interface GenerationPlace {
  readonly record: string;
  readonly call: string;
}

export interface GenerationOptions {
  readonly engine: InferenceEngine;
  readonly tokenizer: Tokenizer;
  readonly signal: AbortSignal;
  /** null = no limit. */
  readonly limitMilliseconds: number | null;
  readonly now: () => number;
  readonly after: After;
  readonly place: GenerationPlace;
}

export interface Sampled {
  readonly output: Int32Array;
  readonly logprobs: Float32Array;
  readonly sampledLogprobs: Float32Array | null;
  readonly alternatives: readonly (readonly { readonly id: number; readonly logprob: number }[])[] | null;
  readonly versions: readonly VersionRun[];
  /** Visible text: no special tokens, no stop string. */
  readonly text: string;
  readonly finish: "stop" | "length" | "abort" | "error";
  readonly cachedTokens: number;
  readonly firstToken: number | null;
  /** Set when finish is abort or error. */
  readonly error: RollscopeError | null;
}

/** How long an aborted engine has to hand over its last tokens. */
const abortGraceMilliseconds = 2000;

export async function generateAnswer(request: GenerateRequest, options: GenerationOptions): Promise<Sampled> {
  const { place, signal } = options;
  const stop = new AbortController();
  const stopEngine = (): void => stop.abort();
  const collected = new Collected(options, request);
  let ended: Ending | null = null;
  let giveUp: (() => void) | undefined;
  const gaveUp = new Promise<"gave up">((resolve) => {
    giveUp = () => resolve("gave up");
  });
  const cancels: (() => void)[] = [];
  const end = (how: Ending): void => {
    if (ended !== null) return;
    ended = how;
    stopEngine();
    cancels.push(options.after(abortGraceMilliseconds, () => giveUp?.()));
  };
  const onAbort = (): void => end({ finish: "abort", error: cancelled(signal.reason, place) });
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  const limit = options.limitMilliseconds;
  if (limit !== null) cancels.push(options.after(limit, () => end({ finish: "error", error: overran(limit, place) })));
  let iterator: AsyncIterator<TokenChunk> | undefined;
  try {
    if (!signal.aborted) iterator = options.engine.generate(request, stop.signal)[Symbol.asyncIterator]();
    while (iterator && !collected.isOver) {
      const next = await Promise.race([iterator.next(), gaveUp]);
      if (next === "gave up" || next.done) break;
      collected.add(next.value);
    }
    if (collected.isOver) stopEngine();
    void iterator?.return?.()?.catch(() => {});
  } catch (cause) {
    stopEngine();
    ended ??= { finish: "error", error: failed(cause, place) };
  } finally {
    signal.removeEventListener("abort", onAbort);
    for (const cancel of cancels) cancel();
  }
  return collected.result(ended);
}

/** An end that is not the answer's own. */
interface Ending {
  readonly finish: "abort" | "error";
  readonly error: RollscopeError;
}

class Collected {
  private readonly options: GenerationOptions;
  private readonly scanner: StopScanner;
  private readonly decoder;
  private readonly temperatureIsGreedy: boolean;
  private readonly ids: number[] = [];
  private readonly logprobs: number[] = [];
  private readonly sampled: number[] = [];
  private readonly alternatives: { id: number; logprob: number }[][] = [];
  private readonly versions: { version: number; length: number }[] = [];
  private text = "";
  private finish: TokenChunk["finishReason"];
  private cachedTokens = 0;
  private firstToken: number | null = null;

  constructor(options: GenerationOptions, request: GenerateRequest) {
    this.options = options;
    this.scanner = new StopScanner(request.stopStrings);
    this.decoder = options.tokenizer.stream({ skipSpecial: true });
    this.temperatureIsGreedy = request.temperature === 0;
  }

  /** A stop string was completed, or the engine gave its last chunk. */
  get isOver(): boolean {
    return this.scanner.stoppedBy !== null || this.finish !== undefined;
  }

  add(chunk: TokenChunk): void {
    const { ids, logprobs, versions, sampledLogprobs, alternatives } = chunk;
    if (logprobs.length !== ids.length || versions.length !== ids.length) {
      throw new Error(
        `a chunk has ${ids.length} ids, ${logprobs.length} log-probabilities, ${versions.length} versions`,
      );
    }
    if (ids.length > 0) this.firstToken ??= this.options.now();
    this.cachedTokens = chunk.cachedTokens ?? this.cachedTokens;
    for (let index = 0; index < ids.length; index++) {
      const id = ids[index] as number;
      const logprob = logprobs[index] as number;
      if (!Number.isFinite(logprob)) throw nonFinite(logprob, this.ids.length, this.options.place);
      this.ids.push(id);
      this.logprobs.push(logprob);
      if (sampledLogprobs) this.sampled.push(sampledLogprobs[index] as number);
      if (alternatives) this.alternatives.push(alternativesAt(alternatives, index));
      const run = this.versions.at(-1);
      if (run && run.version === versions[index]) run.length++;
      else this.versions.push({ version: versions[index] as number, length: 1 });
      this.text += this.scanner.push(this.decoder.push(id));
    }
    this.finish = chunk.finishReason;
  }

  result(ending: Ending | null): Sampled {
    const text = this.text + this.scanner.push(this.decoder.flush()) + this.scanner.flush();
    const own = this.scanner.stoppedBy === null ? this.finish : "stop";
    const how = ending ?? (own === "stop" || own === "length" ? { finish: own, error: null } : this.endedEarly(own));
    const isWhole = this.sampled.length === this.ids.length && this.ids.length > 0 && !this.temperatureIsGreedy;
    return {
      output: Int32Array.from(this.ids),
      logprobs: Float32Array.from(this.logprobs),
      sampledLogprobs: isWhole ? Float32Array.from(this.sampled) : null,
      alternatives: this.alternatives.length === this.ids.length && this.ids.length > 0 ? this.alternatives : null,
      versions: this.versions,
      text,
      finish: how.finish,
      cachedTokens: this.cachedTokens,
      firstToken: this.firstToken,
      error: how.error,
    };
  }

  private endedEarly(how: "abort" | "error" | undefined): Ending {
    const { place } = this.options;
    const code = how === "abort" ? "CAPTURE_CALL_CANCELLED" : "CAPTURE_ENGINE_FAILED";
    const what =
      how === "abort" ? "was aborted by the engine" : how === "error" ? "failed in the engine" : "was cut off";
    const next = "What it had sampled is on record and is not trained as a finished answer.";
    const error = new RollscopeError(code, `Call ${place.call} ${what}.`, { next, at: { ...place } });
    return { finish: how === "abort" ? "abort" : "error", error };
  }
}

function alternativesAt(
  all: NonNullable<TokenChunk["alternatives"]>,
  token: number,
): { id: number; logprob: number }[] {
  return Array.from({ length: all.count }, (_, rank) => ({
    id: all.ids[token * all.count + rank] as number,
    logprob: all.logprobs[token * all.count + rank] as number,
  }));
}

function cancelled(reason: unknown, place: GenerationPlace): RollscopeError {
  if (reason instanceof RollscopeError) return withPlace(reason, place);
  return new RollscopeError("CAPTURE_CALL_CANCELLED", `Call ${place.call} was cancelled.`, {
    next: "What it had sampled is on record.",
    at: { ...place },
    cause: reason,
  });
}

function overran(limit: number, place: GenerationPlace): RollscopeError {
  return new RollscopeError("CAPTURE_CALL_TIMEOUT", `Call ${place.call} was not answered within ${limit / 1000} s.`, {
    next: "What it had sampled is on record. Lower sampling.maxNewTokens or allow more time.",
    at: { ...place },
  });
}

function failed(cause: unknown, place: GenerationPlace): RollscopeError {
  if (cause instanceof RollscopeError) return withPlace(cause, place);
  return new RollscopeError("CAPTURE_ENGINE_FAILED", `The engine failed in call ${place.call}: ${String(cause)}`, {
    next: "Look at the run's log for what the engine reported.",
    at: { ...place },
    cause,
  });
}

function withPlace(error: RollscopeError, place: GenerationPlace): RollscopeError {
  const at = { ...place, ...error.at };
  return new RollscopeError(error.code, error.message, { next: error.next, cause: error, at });
}

function nonFinite(value: number, token: number, place: GenerationPlace): RollscopeError {
  return new RollscopeError(
    "ENGINE_NON_FINITE",
    `The log-probability of token ${token} of call ${place.call} (record ${place.record}) is ${value}.`,
    {
      next: "The weights or the engine are broken; look at the last steps' gradient norms.",
      at: { ...place, token },
    },
  );
}
