// Statistics that reach over micro-batches: shared ratios, unit filters, mean entropy, unit-wide custom losses. Computed once
// from a forward over the whole step, in order of occurrence, so they are the same for any split.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { UnitObjective } from "../../../protocol/objectiveDefinition.ts";
import { unitMeans, unitSums } from "./aggregation.ts";
import { boundedRatio, clampLogRatioSlope } from "./logRatio.ts";
import type { ObjectivePlan } from "./objectivePlan.ts";
import {
  emptyToken,
  forEachBlock,
  gatherTokens,
  type OccurrenceScalars,
  readToken,
  type SharedRatios,
  tokenRatios,
} from "./tokenBlock.ts";
import { type UnitFilters, unitFilters } from "./unitFilters.ts";

/** [occurrences] each, 0 where masked */
export interface UnitLosses {
  readonly loss: Float64Array;
  readonly dLogp: Float64Array;
  readonly dEntropy: Float64Array;
}

export interface ObjectiveStatistics {
  readonly shared: SharedRatios | null;
  readonly filters: UnitFilters;
  /** Token mean of the entropy; null when nothing reads it. */
  readonly entropyMean: number | null;
  readonly unitLosses: UnitLosses | null;
}

/** Collects the first pass, micro-batch by micro-batch, in any order. */
export interface StatisticsCollector {
  /** `logp[i]`, `entropy[i]` belong to `occurrences[i]`. Masked occurrences are ignored. */
  add(occurrences: Int32Array, scalars: Pick<OccurrenceScalars, "logp" | "entropy">): void;
  /** @throws OBJECTIVE_OCCURRENCES_WRONG when a trainable occurrence was not added or was added twice */
  finish(): ObjectiveStatistics;
}

export function collectStatistics(plan: ObjectivePlan): StatisticsCollector {
  const { size } = plan.batch;
  const logp = new Float64Array(size);
  const entropy = plan.reads.entropy ? new Float64Array(size) : null;
  const seen = new Uint8Array(size);
  const firstPass = withoutValues(plan);
  let added = 0;
  return {
    add(occurrences, scalars) {
      forEachBlock(firstPass, occurrences, scalars, (tokens) => {
        for (let i = 0; i < tokens.count; i++) {
          const o = tokens.occurrence[i]!;
          if (seen[o] === 1) throw wrongOccurrences(`Occurrence ${o} was given twice.`);
          seen[o] = 1;
          logp[o] = tokens.logp[i]!;
          if (entropy !== null && tokens.entropy !== null) entropy[o] = tokens.entropy[i]!;
        }
        added += tokens.count;
      });
    },
    finish() {
      if (added !== plan.units.trainableTokens) {
        throw wrongOccurrences(`The first pass gave ${added} of ${plan.units.trainableTokens} trainable tokens.`);
      }
      return statisticsOf(plan, logp, entropy);
    },
  };
}

/** No statistic reads values. */
function withoutValues(plan: ObjectivePlan): ObjectivePlan {
  return { ...plan, reads: { ...plan.reads, value: false } };
}

export function wrongOccurrences(sentence: string): RollscopeError {
  return new RollscopeError("OBJECTIVE_OCCURRENCES_WRONG", sentence, {
    next: "Give every trainable occurrence of the optimizer batch exactly once in each pass.",
  });
}

function statisticsOf(plan: ObjectivePlan, logp: Float64Array, entropy: Float64Array | null): ObjectiveStatistics {
  const shared = sharedRatios(plan, logp);
  return {
    shared,
    filters: plan.oldIsCurrent ? currentFilters(plan, logp) : plan.filters,
    entropyMean: entropy === null ? null : tokenMean(plan, entropy),
    unitLosses:
      plan.definition.scope === "unit"
        ? unitLosses(plan, plan.definition, { logp, entropy: entropy ?? undefined }, shared)
        : null,
  };
}

/**
 * GSPO: q = exp(cl20(mean over the unit of (lp − base))), slope as if each token's own lp stood beside the mean.
 * TOPR by trajectory: exp(cl20(Σ (lp − base))). Inner sums unclamped.
 */
function sharedRatios(plan: ObjectivePlan, logp: Float64Array): SharedRatios | null {
  if (plan.ratioUnits === null) return null;
  const base = ratioBase(plan, logp);
  const difference = (o: number) => logp[o]! - base[o]!;
  const logRatio =
    plan.config.kind === "gspo" ? unitMeans(plan.ratioUnits, difference) : unitSums(plan.ratioUnits, difference);
  const ratio = logRatio.map(boundedRatio);
  return { ratio, slope: ratio.map((r, unit) => r * clampLogRatioSlope(logRatio[unit]!)) };
}

function ratioBase(plan: ObjectivePlan, logp: Float64Array): Float64Array {
  const { old, rollout } = plan.batch.columns;
  const base = plan.config.ratioBase === "rollout" ? rollout : plan.oldIsCurrent ? logp : old;
  return base ?? logp;
}

function currentFilters(plan: ObjectivePlan, logp: Float64Array): UnitFilters {
  const { rollout } = plan.batch.columns;
  if (plan.config.correction === undefined || rollout === null) return plan.filters;
  return unitFilters(plan.config.correction, plan.units, logp, rollout);
}

function tokenMean(plan: ObjectivePlan, column: Float64Array): number {
  if (plan.units.trainableTokens === 0) return 0;
  let sum = 0;
  for (let o = 0; o < plan.batch.size; o++) if (plan.batch.mask[o] === 1) sum += column[o]!;
  return sum / plan.units.trainableTokens;
}

/** Calls a unit-wide objective once a unit, over the unit's trainable tokens in order. */
function unitLosses(
  plan: ObjectivePlan,
  definition: UnitObjective,
  scalars: Pick<OccurrenceScalars, "logp" | "entropy">,
  shared: SharedRatios | null,
): UnitLosses {
  const { size } = plan.batch;
  const losses = { loss: new Float64Array(size), dLogp: new Float64Array(size), dEntropy: new Float64Array(size) };
  const all = new Int32Array(size).map((_, o) => o);
  const block = gatherTokens(withoutValues(plan), all, scalars, 0, size);
  const ratios = tokenRatios(plan, block, shared);
  const members: number[][] = Array.from({ length: plan.units.count }, () => []);
  for (let i = 0; i < block.count; i++) members[block.unit[i]!]!.push(i);
  for (const indices of members) {
    const tokens = indices.map((i) => {
      const token = emptyToken();
      readToken(token, block, ratios, i);
      return token;
    });
    const terms = definition.unit(tokens, plan.settings);
    if (terms.length !== tokens.length) {
      throw new RollscopeError(
        "OBJECTIVE_DEFINITION_INVALID",
        `Objective ${definition.name} returned ${terms.length} losses for a unit of ${tokens.length} tokens.`,
        { next: "Return one loss for each token of the unit, in order." },
      );
    }
    for (const [index, i] of indices.entries()) {
      const term = terms[index]!;
      const o = block.occurrence[i]!;
      losses.loss[o] = term.loss;
      losses.dLogp[o] = term.dLogp;
      losses.dEntropy[o] = term.dEntropy ?? 0;
    }
  }
  return losses;
}
