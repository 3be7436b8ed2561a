// Corrections against trainer–sampler mismatch: constant weights on the policy loss. A filtered token adds 0 to the numerator
// and stays in the denominator; KL and entropy are not filtered. ρ = exp(cl20(old − rollout)); several multiply.
import type { CorrectionConfig } from "../../../protocol/objective.ts";
import type { ObjectiveSettings, ObjectiveToken } from "../../../protocol/objectiveDefinition.ts";
import { type Units, unitMeans } from "./aggregation.ts";
import { boundedRatio, clampLogRatio } from "./logRatio.ts";

/** Which units the unit-wide filters keep, 1 or 0 a unit; null when the filter is not configured. */
export interface UnitFilters {
  readonly sequenceMask: Uint8Array | null;
  readonly tokenVeto: Uint8Array | null;
}

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
 * sequenceMask [a, b]: keep the unit when exp(mean of cl20(old − rollout)) is inside.
 * tokenVeto v: drop the unit if any of its trainable ρ < v.
 */
export function unitFilters(
  correction: CorrectionConfig,
  units: Units,
  old: Float64Array,
  rollout: Float64Array,
): UnitFilters {
  const { sequenceMask, tokenVeto } = correction;
  return {
    sequenceMask: sequenceMask === undefined ? null : keptByMean(sequenceMask, units, old, rollout),
    tokenVeto: tokenVeto === undefined ? null : keptByVeto(tokenVeto, units, old, rollout),
  };
}

function keptByMean([low, high]: readonly [number, number], units: Units, old: Float64Array, rollout: Float64Array) {
  const means = unitMeans(units, (o) => clampLogRatio(old[o]! - rollout[o]!));
  return Uint8Array.from(means, (mean) => (inside(Math.exp(mean), low, high) ? 1 : 0));
}

function keptByVeto(veto: number, units: Units, old: Float64Array, rollout: Float64Array) {
  const kept = new Uint8Array(units.count).fill(1);
  for (let o = 0; o < units.unitOf.length; o++) {
    const unit = units.unitOf[o]!;
    if (unit >= 0 && boundedRatio(old[o]! - rollout[o]!) < veto) kept[unit] = 0;
  }
  return kept;
}

function inside(x: number, low: number, high: number): boolean {
  return x >= low && x <= high;
}

/**
 * The product of all corrections of one token, 0 when one filters it.
 * tokenTruncate C: min(ρ, C). tokenMask [a, b]: keep a ≤ ρ ≤ b.
 * freshness: d = exp(−decay·staleness), f = exp(cl20(lp − rollout)), U = 1+hi·capRatio·d, L = 1−lo·capRatio·d;
 * drop where (f > U and A > 0) or (f < L and A < 0).
 */
export function correctionWeight(
  correction: CorrectionConfig,
  settings: ObjectiveSettings,
  token: ObjectiveToken,
  unit: number,
  filters: UnitFilters,
  tally: CorrectionTally,
): number {
  const { tokenTruncate, tokenMask, freshness } = correction;
  let weight = 1;
  if (tokenTruncate !== undefined || tokenMask !== undefined) {
    const rho = boundedRatio(token.old - token.rollout);
    if (tokenTruncate !== undefined) {
      weight = Math.min(rho, tokenTruncate);
      if (rho > tokenTruncate) tally.truncated += 1;
    }
    if (tokenMask !== undefined) {
      if (inside(rho, tokenMask[0], tokenMask[1])) tally.tokenMaskKept += 1;
      else weight = 0;
    }
  }
  if (filters.sequenceMask !== null) {
    if (filters.sequenceMask[unit] === 1) tally.sequenceMaskKept += 1;
    else weight = 0;
  }
  if (filters.tokenVeto !== null) {
    if (filters.tokenVeto[unit] === 1) tally.tokenVetoKept += 1;
    else weight = 0;
  }
  if (freshness !== undefined) {
    if (isFresh(freshness, settings, token)) tally.freshnessKept += 1;
    else weight = 0;
  }
  if (weight > 0) tally.kept += 1;
  tally.weightSum += weight;
  return weight;
}

function isFresh(
  freshness: NonNullable<CorrectionConfig["freshness"]>,
  settings: ObjectiveSettings,
  { rolloutRatio: f, advantage: A, staleness }: ObjectiveToken,
): boolean {
  const width = freshness.capRatio * Math.exp(-freshness.decay * staleness);
  const upper = 1 + settings.clipHigh * width;
  const lower = 1 - settings.clipLow * width;
  return !((f > upper && A > 0) || (f < lower && A < 0));
}
