// Asks an inference engine for whole answers: what tests of generation compare.
import type { GenerateRequest, InferenceEngine, TokenChunk } from "../../agent-daemon/src/engines/interface.ts";

export interface Generated {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly sampledLogprobs: readonly number[];
  readonly versions: readonly number[];
  /** One map a token: id → log-probability. */
  readonly alternatives: readonly ReadonlyMap<number, number>[];
  readonly finishReason: string | undefined;
  readonly stoppedBy: number | string | undefined;
  readonly cachedTokens: number | undefined;
}

/** Everything that a test leaves out: plain sampling at temperature 1, 8 tokens. */
export type Wish = Partial<Omit<GenerateRequest, "tokens">> & { readonly tokens: readonly number[] };

export function requestOf({ tokens, ...wish }: Wish): GenerateRequest {
  return {
    maxNewTokens: 8,
    temperature: 1,
    topP: 1,
    topK: 0,
    minP: 0,
    stopIds: [],
    stopStrings: [],
    key: { seed: 1, record: 0, call: 0 },
    topAlternatives: 0,
    ...wish,
    tokens: Int32Array.from(tokens),
  };
}

/** `onChunk` sees each chunk as it arrives. */
export async function generate(
  engine: InferenceEngine,
  wish: Wish,
  signal = new AbortController().signal,
  onChunk: (chunk: TokenChunk) => void = () => {},
): Promise<Generated> {
  const chunks: TokenChunk[] = [];
  for await (const chunk of engine.generate(requestOf(wish), signal)) {
    chunks.push(chunk);
    onChunk(chunk);
  }
  const last = chunks.at(-1);
  return {
    ids: chunks.flatMap((chunk) => [...chunk.ids]),
    logprobs: chunks.flatMap((chunk) => [...chunk.logprobs]),
    sampledLogprobs: chunks.flatMap((chunk) => [...(chunk.sampledLogprobs ?? [])]),
    versions: chunks.flatMap((chunk) => [...chunk.versions]),
    alternatives: chunks.flatMap(({ alternatives }) =>
      alternatives === undefined
        ? []
        : [new Map([...alternatives.ids].map((id, index) => [id, alternatives.logprobs[index]!]))],
    ),
    finishReason: last?.finishReason,
    stoppedBy: last?.stoppedBy,
    cachedTokens: chunks[0]?.cachedTokens,
  };
}

/** Token lists from a fixed seed, the same on every machine; ids from 3 on, as the reference models use them. */
export function randomTokens(seed: number, length: number, vocabulary: number): number[] {
  let state = seed >>> 0;
  return Array.from({ length }, () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return 3 + ((state >>> 8) % (vocabulary - 3));
  });
}
