// KL estimators of one token, as a loss and as a reward. Aggregation is the caller's.
// d = cl20(base − lp): k1 = −d, k2 = ½d², k3 = expm1(d) − d; derivatives by lp are 0 where d was clamped.
import type { KlConfig } from "../../../protocol/objective.ts";
import { clampLogRatio, clampLogRatioSlope } from "./logRatio.ts";

export type KlEstimator = NonNullable<KlConfig["estimator"]>;

/** The estimator's value at a clamped d. */
export function klEstimate(estimator: KlEstimator, d: number): number {
  switch (estimator) {
    case "k1":
      return -d;
    case "k2":
      return 0.5 * d * d;
    case "k3":
      return k3(d);
  }
}

/** d estimate / d lp, from the unclamped base − lp; dd/dlp = −1. */
export function klSlope(estimator: KlEstimator, difference: number): number {
  const d = clampLogRatio(difference);
  const inside = clampLogRatioSlope(difference);
  switch (estimator) {
    case "k1":
      return inside;
    case "k2":
      return -inside * d;
    case "k3":
      return -inside * Math.expm1(d);
  }
}

/**
 * expm1(d) − d. Near 0, where the two cancel and nearly all tokens lie, by its series d²·Σ dⁿ/(n+2)!; at |d| = 0.1 the first
 * term left out is below 1e-12 of the sum.
 */
export function k3(d: number): number {
  if (d > 0.1 || d < -0.1) return Math.expm1(d) - d;
  return d * d * (1 / 2 + d * (1 / 6 + d * (1 / 24 + d * (1 / 120 + d * (1 / 720 + d * (1 / 5040 + d / 40320))))));
}

/** Reward of one token for `placement: reward`: −coef·cl20(old − ref), a constant. */
export function klReward(coef: number, old: number, ref: number): number {
  return -coef * clampLogRatio(old - ref);
}
