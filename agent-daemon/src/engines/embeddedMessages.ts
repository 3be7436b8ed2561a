// Requests as the addon reads them and its events as chunks. Plain conversion: no number is changed on the way.
import type { NativeBatch, NativeRequest } from "../../../native/binding/generation.d.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { FinishReason, GenerateRequest, TokenChunk } from "./interface.ts";

const finishReasons: readonly FinishReason[] = ["stop", "length", "abort", "error"];
const none = new Int32Array(0);

/** undefined: the request goes on. */
export function finishReasonAt(batch: NativeBatch, index: number): FinishReason | undefined {
  return finishReasons[batch.finishes[index]!];
}

/** Views into the batch's arrays: nothing is copied. */
export function chunkAt(
  batch: NativeBatch,
  index: number,
  stopStrings: readonly string[],
  extra: NativeBatch["more"][number] | undefined,
): TokenChunk {
  const end = batch.tokens[index]! >= 0 ? index + 1 : index;
  const finishReason = finishReasonAt(batch, index);
  const stopId = batch.stopIds[index]!;
  const stoppedBy = stopId >= 0 ? stopId : stopStrings[batch.stopStrings[index]!];
  const cachedTokens = batch.cachedTokens[index]!;
  return {
    ids: batch.tokens.subarray(index, end),
    logprobs: batch.logprobs.subarray(index, end),
    versions: batch.versions.subarray(index, end),
    ...(batch.truncated[index] === 1 ? { sampledLogprobs: batch.sampledLogprobs.subarray(index, end) } : {}),
    ...(extra?.alternativeIds !== undefined && extra.alternativeLogprobs !== undefined
      ? {
          alternatives: {
            ids: extra.alternativeIds,
            logprobs: extra.alternativeLogprobs,
            count: extra.alternativeIds.length,
          },
        }
      : {}),
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(stoppedBy === undefined ? {} : { stoppedBy }),
    ...(cachedTokens < 0 ? {} : { cachedTokens }),
  };
}

export function endChunk(finishReason: FinishReason): TokenChunk {
  return { ids: none, logprobs: new Float32Array(0), versions: none, finishReason };
}

export const scoreDefaults: Omit<NativeRequest, "tokens" | "temperature" | "scoreFrom"> = {
  maxNewTokens: 0,
  topP: 1,
  topK: 0,
  minP: 0,
  stopIds: none,
  stopStrings: [],
  seed: 0,
  record: 0,
  call: 0,
  topAlternatives: 0,
};

export function nativeRequest(request: GenerateRequest): NativeRequest {
  const { tokens, maxNewTokens, temperature, topP, topK, minP, stopStrings, key, forced, topAlternatives } = request;
  return {
    ...{ tokens, maxNewTokens, temperature, topP, topK, minP, stopStrings, topAlternatives },
    stopIds: Int32Array.from(request.stopIds),
    ...{ seed: key.seed, record: key.record, call: key.call },
    ...(forced === undefined ? {} : { forced }),
    scoreFrom: -1,
  };
}

/** Ranges are the engine's business; what is no whole number would not reach it unchanged. */
export function checkWhole({ key, maxNewTokens, topK, topAlternatives }: GenerateRequest): void {
  for (const [name, value] of Object.entries({ ...key, maxNewTokens, topK, topAlternatives })) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    throw new RollscopeError("ENGINE_REQUEST_INVALID", `The request's ${name} is ${value}.`, {
      next: "Use a whole number from 0 to 2^53 − 1.",
    });
  }
}
