// The entropy part of the loss, from the batch's token mean of H. Without a target it needs no statistics for its derivative.
import type { EntropyConfig } from "../../../protocol/objective.ts";

/** `entropyTerm`: mean(H), or (target − mean(H))² */
export function entropyTerm(config: EntropyConfig, mean: number): number {
  return config.target === undefined ? mean : (config.target - mean) ** 2;
}

/** What the term adds to the loss: −coef·mean(H), or +coef·(target − mean(H))² */
export function entropyLoss(config: EntropyConfig, term: number): number {
  return config.target === undefined ? -config.coef * term : config.coef * term;
}

/** d loss / d H of each of `tokens` trainable tokens; `mean` is read only with a target. */
export function entropySlope(config: EntropyConfig, tokens: number, mean: number): number {
  if (config.target === undefined) return -config.coef / tokens;
  return (-2 * config.coef * (config.target - mean)) / tokens;
}
