// KL estimators of one token, as a loss and as a reward. Aggregation is the caller's.
// d = cl20(base − lp): k1 = −d, k2 = ½d², k3 = expm1(d) − d; derivatives by lp are 0 where d was clamped.
import type { KlConfig } from "../../../protocol/objective.ts";
import { clampLogRatio, clampLogRatioSlope } from "./logRatio.ts";

export type KlEstimator = NonNullable<KlConfig["estimator"]>;

/** The estimator's value at a clamped d. */
export const klEstimates: Readonly<Record<KlEstimator, (d: number) => number>> = {
  k1: (d) => -d,
  k2: (d) => 0.5 * d * d,
  k3: (d) => Math.expm1(d) - d,
};

/** d estimate / d lp where d is not clamped; dd/dlp = −1. */
const klSlopes: Readonly<Record<KlEstimator, (d: number) => number>> = {
  k1: () => 1,
  k2: (d) => -d,
  k3: (d) => -Math.expm1(d),
};

/** d estimate / d lp, from the unclamped base − lp. */
export function klSlope(estimator: KlEstimator, difference: number): number {
  return clampLogRatioSlope(difference) * klSlopes[estimator](clampLogRatio(difference));
}

/** Reward of one token for `placement: reward`: −coef·cl20(old − ref), a constant. */
export function klReward(coef: number, old: number, ref: number): number {
  return -coef * clampLogRatio(old - ref);
}
