// Flattens what a step knows into one record by the field's names (protocol/metrics.ts). It measures nothing itself; a number
// that a step does not have is left out instead of being 0.
import type { StepMetricName, StepMetrics } from "../../../protocol/metrics.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { AdvantageCounts } from "../algorithms/advantages.ts";
import type { MismatchReport } from "../algorithms/mismatch.ts";
import type { ObjectiveResult } from "../algorithms/preparedObjective.ts";
import type { PackedForest } from "./packing.ts";

type Numbers = { readonly [Name in StepMetricName]?: number | null | undefined };

function present(numbers: Numbers): StepMetrics {
  return Object.fromEntries(Object.entries(numbers).filter(([, value]) => value != null)) as StepMetrics;
}

export function objectiveNumbers({ metrics, ...losses }: ObjectiveResult): StepMetrics {
  const { klToRef, klToOld, ratio, entropy, advantage, staleness, correction } = metrics;
  return present({
    loss: losses.loss,
    policy_loss: losses.policyLoss,
    kl_loss: losses.klLoss,
    entropy_term: losses.entropyTerm,
    value_loss: losses.valueLoss,
    entropy: entropy?.mean,
    entropy_min: entropy?.min,
    entropy_max: entropy?.max,
    kl_k1: klToRef?.k1,
    kl_k2: klToRef?.k2,
    kl_k3: klToRef?.k3,
    kl_old_k1: klToOld?.k1,
    kl_old_k2: klToOld?.k2,
    kl_old_k3: klToOld?.k3,
    ratio_mean: ratio?.mean,
    ratio_min: ratio?.min,
    ratio_max: ratio?.max,
    clip_fraction: metrics.clipFraction,
    clip_fraction_low: metrics.clipFractionLow,
    clip_fraction_high: metrics.clipFractionHigh,
    clip_fraction_dual: metrics.clipFractionDual,
    value_clip_fraction: metrics.valueClipFraction,
    correction_kept_fraction: correction?.keptFraction,
    correction_weight_mean: correction?.weightMean,
    correction_truncated_fraction: correction?.truncatedFraction,
    correction_token_mask_kept: correction?.tokenMaskKeptFraction,
    correction_sequence_mask_kept: correction?.sequenceMaskKeptFraction,
    correction_token_veto_kept: correction?.tokenVetoKeptFraction,
    correction_freshness_kept: correction?.freshnessKeptFraction,
    advantage_mean: advantage?.mean,
    advantage_min: advantage?.min,
    advantage_max: advantage?.max,
    staleness_mean: staleness?.mean,
    staleness_max: staleness?.max,
    units: metrics.units,
  });
}

/** Scores count once a record; `trained` are the trajectories that stayed in the batch. */
export function consumptionNumbers(
  consumed: readonly Trajectory[],
  trained: readonly Trajectory[],
  counts: AdvantageCounts | null,
): StepMetrics {
  const byRecord = new Map(consumed.map((trajectory) => [trajectory.record, trajectory]));
  const scores = [...byRecord.values()].flatMap(({ score }) => (score === null ? [] : [score]));
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  const squares = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0);
  const truncated = new Set(consumed.flatMap((trajectory) => (trajectory.truncated ? [trajectory.record] : [])));
  const some = scores.length > 0;
  return present({
    records: byRecord.size,
    trajectories: trained.length,
    reward_mean: some ? mean : null,
    reward_std: scores.length > 1 ? Math.sqrt(squares / (scores.length - 1)) : null,
    reward_min: some ? scores.reduce((a, b) => Math.min(a, b)) : null,
    reward_max: some ? scores.reduce((a, b) => Math.max(a, b)) : null,
    groups: counts?.groups,
    zero_variance_groups: counts?.zeroAdvantageGroups,
    ungraded: counts?.ungraded,
    dropped: counts?.dropped,
    truncated: truncated.size,
    tokens_sampled: consumed.reduce((sum, { call }) => sum + call.reduce((n, index) => n + (index >= 0 ? 1 : 0), 0), 0),
    tokens_trainable: trained.reduce((sum, { trainable }) => sum + trainable.reduce((n, flag) => n + flag, 0), 0),
  });
}

export function packingNumbers({ flatTokens, packedTokens, batches }: PackedForest): StepMetrics {
  return present({
    tokens_flat: flatTokens,
    tokens_packed: packedTokens,
    token_ratio: packedTokens > 0 ? flatTokens / packedTokens : null,
    micro_batches: batches.length,
  });
}

export function mismatchNumbers(report: MismatchReport): StepMetrics {
  return present({
    mismatch_tokens: report.tokens,
    mismatch_k1: report.k1,
    mismatch_k3: report.k3,
    mismatch_abs_mean: report.absLogpDiffMean,
    mismatch_abs_max: report.absLogpDiffMax,
    mismatch_prob_abs_mean: report.absProbDiffMean,
    mismatch_ratio_min: report.ratioMin,
    mismatch_ratio_max: report.ratioMax,
    mismatch_ratio_outside: report.ratioOutside,
    mismatch_p1: report.percentiles?.["1"],
    mismatch_p50: report.percentiles?.["50"],
    mismatch_p99: report.percentiles?.["99"],
    mismatch_ess: report.effectiveSampleSizeFraction,
  });
}
