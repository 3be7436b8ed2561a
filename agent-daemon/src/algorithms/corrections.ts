// Corrections against trainer–sampler mismatch: constant weights on the policy loss. A filtered token adds 0 to the numerator
// and stays in the denominator; KL and entropy are not filtered. ρ = exp(cl20(old − rollout)); several multiply.
import type { CorrectionConfig } from "../../../protocol/objective.ts";
import type { ObjectiveSettings } from "../../../protocol/objectiveDefinition.ts";
import { boundedRatio } from "./logRatio.ts";
import type { TokenBlock, TokenRatios } from "./tokenBlock.ts";
import type { UnitFilters } from "./unitFilters.ts";

/** How many trainable tokens each correction let through, for the keep fractions. */
export interface CorrectionTally {
  kept: number;
  tokenMaskKept: number;
  sequenceMaskKept: number;
  tokenVetoKept: number;
  freshnessKept: number;
  truncated: number;
  weightSum: number;
}

/**
 * [tokens.count] the product of all corrections of each token, 0 when one filters it; null without corrections.
 * tokenTruncate C: min(ρ, C). tokenMask [a, b]: keep a ≤ ρ ≤ b.
 */
export function correctionWeights(
  correction: CorrectionConfig | undefined,
  settings: ObjectiveSettings,
  tokens: TokenBlock,
  ratios: TokenRatios,
  filters: UnitFilters,
  tally: CorrectionTally,
): Float64Array | null {
  if (correction === undefined) return null;
  const { tokenTruncate, tokenMask, freshness } = correction;
  const weights = new Float64Array(tokens.count).fill(1);
  const { old, rollout } = tokens;
  if ((tokenTruncate !== undefined || tokenMask !== undefined) && old !== null && rollout !== null) {
    const rho = new Float64Array(tokens.count);
    for (let i = 0; i < rho.length; i++) rho[i] = boundedRatio(old[i]! - rollout[i]!);
    if (tokenTruncate !== undefined) tally.truncated += truncate(weights, rho, tokenTruncate);
    if (tokenMask !== undefined) {
      const [low, high] = tokenMask;
      tally.tokenMaskKept += filter(weights, (i) => rho[i]! >= low && rho[i]! <= high);
    }
  }
  const { sequenceMask, tokenVeto } = filters;
  if (sequenceMask !== null) tally.sequenceMaskKept += filter(weights, (i) => sequenceMask[tokens.unit[i]!] === 1);
  if (tokenVeto !== null) tally.tokenVetoKept += filter(weights, (i) => tokenVeto[tokens.unit[i]!] === 1);
  if (freshness !== undefined) tally.freshnessKept += filter(weights, freshTokens(freshness, settings, tokens, ratios));
  for (let i = 0; i < weights.length; i++) {
    if (weights[i]! > 0) tally.kept += 1;
    tally.weightSum += weights[i]!;
  }
  return weights;
}

/** Returns how many were cut. */
function truncate(weights: Float64Array, rho: Float64Array, bound: number): number {
  let cut = 0;
  for (let i = 0; i < weights.length; i++) {
    weights[i]! *= Math.min(rho[i]!, bound);
    if (rho[i]! > bound) cut += 1;
  }
  return cut;
}

/** Returns how many were kept. */
function filter(weights: Float64Array, keep: (i: number) => boolean): number {
  let kept = 0;
  for (let i = 0; i < weights.length; i++) {
    if (keep(i)) kept += 1;
    else weights[i] = 0;
  }
  return kept;
}

/**
 * freshness: d = exp(−decay·staleness), f = exp(cl20(lp − rollout)), U = 1+hi·capRatio·d, L = 1−lo·capRatio·d;
 * drop where (f > U and A > 0) or (f < L and A < 0).
 */
function freshTokens(
  { decay, capRatio }: NonNullable<CorrectionConfig["freshness"]>,
  { clipLow, clipHigh }: ObjectiveSettings,
  { staleness, advantage }: TokenBlock,
  { rolloutRatio }: TokenRatios,
): (i: number) => boolean {
  return (i) => {
    const width = capRatio * Math.exp(-decay * staleness![i]!);
    const f = rolloutRatio![i]!;
    const A = advantage![i]!;
    return !((f > 1 + clipHigh * width && A > 0) || (f < 1 - clipLow * width && A < 0));
  };
}
