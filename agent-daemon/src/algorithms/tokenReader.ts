// Gathers the numbers of one occurrence into the token that an objective sees, ratio included. One token object is reused
// in hot loops: whoever keeps a token takes a new one.
import type { ObjectiveToken } from "../../../protocol/objectiveDefinition.ts";
import { boundedRatio, clampLogRatioSlope } from "./logRatio.ts";
import type { ObjectivePlan } from "./objectivePlan.ts";

export type MutableToken = { -readonly [Key in keyof ObjectiveToken]: ObjectiveToken[Key] };

/** One ratio for all tokens of a unit. [ratioUnits.count] each */
export interface SharedRatios {
  readonly ratio: Float64Array;
  /** d ratio / d logp of every token of the unit */
  readonly slope: Float64Array;
}

export function emptyToken(): MutableToken {
  const nan = Number.NaN;
  return {
    logp: nan,
    entropy: nan,
    old: nan,
    rollout: nan,
    ref: nan,
    advantage: nan,
    staleness: nan,
    ratio: nan,
    ratioSlope: nan,
    rolloutRatio: nan,
  };
}

/**
 * r = exp(cl20(lp − base)), base by `ratioBase`; with `shared`, the unit's ratio. Columns the batch lacks stay NaN.
 * @param logp current log-probability of the occurrence
 * @param entropy current entropy, NaN when it was not asked for
 */
export function readToken(
  token: MutableToken,
  plan: ObjectivePlan,
  occurrence: number,
  logp: number,
  entropy: number,
  shared: SharedRatios | null,
): void {
  const { old, rollout, ref, advantage, staleness } = plan.batch.columns;
  token.logp = logp;
  token.entropy = entropy;
  token.old = plan.oldIsCurrent ? logp : old === null ? Number.NaN : old[occurrence]!;
  token.rollout = rollout === null ? Number.NaN : rollout[occurrence]!;
  token.ref = ref === null ? Number.NaN : ref[occurrence]!;
  token.advantage = advantage === null ? Number.NaN : advantage[occurrence]!;
  token.staleness = staleness === null ? Number.NaN : staleness[occurrence]!;
  token.rolloutRatio = plan.reads.rolloutRatio ? boundedRatio(logp - token.rollout) : Number.NaN;
  if (shared !== null && plan.ratioUnits !== null) {
    const unit = plan.ratioUnits.unitOf[occurrence]!;
    token.ratio = shared.ratio[unit]!;
    token.ratioSlope = shared.slope[unit]!;
    return;
  }
  const logRatio = logp - (plan.config.ratioBase === "old" ? token.old : token.rollout);
  token.ratio = boundedRatio(logRatio);
  token.ratioSlope = token.ratio * clampLogRatioSlope(logRatio);
}
