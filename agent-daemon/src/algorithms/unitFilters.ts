// The filters of whole units (`sequenceMask`, `tokenVeto`), from old and rollout alone. ρ = exp(cl20(old − rollout)).
import type { CorrectionConfig } from "../../../protocol/objective.ts";
import { type Units, unitMeans } from "./aggregation.ts";
import { boundedRatio, clampLogRatio } from "./logRatio.ts";

/** Which units the unit-wide filters keep, 1 or 0 a unit; null when the filter is not configured. */
export interface UnitFilters {
  readonly sequenceMask: Uint8Array | null;
  readonly tokenVeto: Uint8Array | null;
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
  return Uint8Array.from(means, (mean) => (Math.exp(mean) >= low && Math.exp(mean) <= high ? 1 : 0));
}

function keptByVeto(veto: number, units: Units, old: Float64Array, rollout: Float64Array) {
  const kept = new Uint8Array(units.count).fill(1);
  for (let o = 0; o < units.unitOf.length; o++) {
    const unit = units.unitOf[o]!;
    if (unit >= 0 && boundedRatio(old[o]! - rollout[o]!) < veto) kept[unit] = 0;
  }
  return kept;
}
