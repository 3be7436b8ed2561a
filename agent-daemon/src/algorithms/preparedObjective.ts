// The objective of one optimizer batch, a micro-batch at a time: scalars of the forward in, cotangents for the backward out.
// Denominators and statistics are those of the whole batch, so any split gives the same cotangents, bit for bit.
//
//   const objective = prepareObjective(config, trajectories, { oldIsCurrent });
//   if (objective.skipReason !== null) …skip the step and say why…
//   let statistics = null;
//   if (objective.scope !== "token") {                     // two passes: one without gradient over the whole step first
//     const collector = objective.collectStatistics();
//     for each micro-batch: collector.add(occurrences, scalars);
//     statistics = collector.finish();
//   }
//   for each micro-batch: parts.push(objective.cotangents(occurrences, scalars, statistics));
//   const { loss, metrics } = objective.finish(parts);
//
// `occurrences` are numbers from `objective.occurrence(trajectory, position)`; scalars are aligned with them. An occurrence
// belongs to exactly one micro-batch; masked ones may be included (their scalars are not read, their cotangents are 0) or left
// out. Cotangents carry every denominator: add them up over occurrences that share a slot, and sum gradients.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { ObjectiveConfig } from "../../../protocol/objective.ts";
import type { TokenLoss } from "../../../protocol/objectiveDefinition.ts";
import type { SequenceConstants } from "./columns.ts";
import { correctionWeight, type UnitFilters } from "./corrections.ts";
import { entropySlope } from "./entropy.ts";
import { klEstimate, klSlope } from "./kl.ts";
import { clampLogRatio } from "./logRatio.ts";
import {
  addToKl,
  addToSpread,
  emptySums,
  lossesOf,
  mergeSums,
  metricsOf,
  type ObjectiveLosses,
  type ObjectiveMetrics,
  type ObjectiveSums,
} from "./objectiveMetrics.ts";
import { type ObjectivePlan, planObjective } from "./objectivePlan.ts";
import type { ObjectiveOptions, ObjectiveScope } from "./objectiveReads.ts";
import {
  collectStatistics,
  finite,
  type ObjectiveStatistics,
  type StatisticsCollector,
  wrongOccurrences,
} from "./statistics.ts";
import type { Column } from "./tokenPlace.ts";
import { emptyToken, type MutableToken, readToken } from "./tokenReader.ts";
import { valueTerm } from "./valueLoss.ts";

/** The forward's numbers of some occurrences, aligned with them. */
export interface OccurrenceScalars {
  readonly logp: Column;
  /** Needed when `needs.entropy`; otherwise only for the entropy metric. */
  readonly entropy?: Column | undefined;
  /** Needed when `needs.value`. */
  readonly value?: Column | undefined;
}

/** d loss / d scalar of some occurrences; null where the loss does not depend on the scalar at all. */
export interface ObjectivePart {
  readonly dLogp: Float64Array;
  readonly dEntropy: Float64Array | null;
  readonly dValue: Float64Array | null;
  /** Product of the corrections' weights of each token; null where none is configured. */
  readonly correction: Float64Array | null;
  readonly sums: ObjectiveSums;
}

export interface BatchCounts {
  readonly trajectories: number;
  readonly trainableTokens: number;
  /** Trajectories, or turns, with trainable tokens. */
  readonly units: number;
  /** All positions, masked ones included. */
  readonly occurrences: number;
}

export interface ObjectiveResult extends ObjectiveLosses {
  readonly metrics: ObjectiveMetrics;
}

export interface PreparedObjective {
  readonly scope: ObjectiveScope;
  readonly counts: BatchCounts;
  /** Scalars beside logp that `cotangents` needs. */
  readonly needs: { readonly entropy: boolean; readonly value: boolean };
  /** Why this step would train nothing; null when there is something to train. */
  readonly skipReason: string | null;
  occurrence(trajectory: number, position: number): number;
  collectStatistics(): StatisticsCollector;
  /** @throws OBJECTIVE_STATISTICS_MISSING, ALGORITHM_NON_FINITE, OBJECTIVE_DEFINITION_INVALID */
  cotangents(
    occurrences: Int32Array,
    scalars: OccurrenceScalars,
    statistics?: ObjectiveStatistics | null,
  ): ObjectivePart;
  /** @throws OBJECTIVE_OCCURRENCES_WRONG when the parts are not the whole batch */
  finish(parts: Iterable<Pick<ObjectivePart, "sums">>): ObjectiveResult;
}

/**
 * @param sequences every trajectory of the optimizer batch, with what is known before the forward
 * @throws OBJECTIVE_REFUSED, OBJECTIVE_DEFINITION_MISSING, OBJECTIVE_COLUMN_MISSING, OBJECTIVE_COLUMN_INVALID,
 *   ALGORITHM_NON_FINITE
 */
export function prepareObjective(
  config: ObjectiveConfig,
  sequences: readonly SequenceConstants[],
  options: ObjectiveOptions = {},
): PreparedObjective {
  const plan = planObjective(config, sequences, options);
  const { batch, units } = plan;
  return {
    scope: plan.scope,
    counts: {
      trajectories: sequences.length,
      trainableTokens: units.trainableTokens,
      units: units.count,
      occurrences: batch.size,
    },
    needs: { entropy: plan.reads.entropy, value: plan.reads.value },
    skipReason:
      units.trainableTokens > 0
        ? null
        : `None of the ${sequences.length} trajectories of this batch has a trainable token: nothing to train, the step is skipped.`,
    occurrence: (trajectory, position) => batch.offsets[trajectory]! + position,
    collectStatistics: () => collectStatistics(plan),
    cotangents: (occurrences, scalars, statistics = null) => cotangents(plan, occurrences, scalars, statistics),
    finish(parts) {
      const sums = mergeSums([...parts].map((part) => part.sums));
      if (sums.tokens !== units.trainableTokens) {
        throw wrongOccurrences(`The parts hold ${sums.tokens} of ${units.trainableTokens} trainable tokens.`);
      }
      return { ...lossesOf(config, sums), metrics: metricsOf(config, sums, units.count) };
    },
  };
}

function cotangents(
  plan: ObjectivePlan,
  occurrences: Int32Array,
  scalars: OccurrenceScalars,
  statistics: ObjectiveStatistics | null,
): ObjectivePart {
  const { config, batch, units, reads } = plan;
  if (plan.scope !== "token" && statistics === null) throw statisticsMissing(plan.scope);
  const filters = statistics?.filters ?? plan.filters;
  const shared = statistics?.shared ?? null;
  const kl = config.kl?.placement === "loss" ? config.kl : null;
  const sums = emptySums();
  const part: ObjectivePart = {
    dLogp: new Float64Array(occurrences.length),
    dEntropy: reads.entropy ? new Float64Array(occurrences.length) : null,
    dValue: reads.value ? new Float64Array(occurrences.length) : null,
    correction: config.correction === undefined ? null : new Float64Array(occurrences.length),
    sums,
  };
  const entropyShare =
    config.entropy === undefined
      ? 0
      : entropySlope(config.entropy, units.trainableTokens, statistics?.entropyMean ?? 0);
  const token = emptyToken();
  for (let i = 0; i < occurrences.length; i++) {
    const o = occurrences[i]!;
    if (batch.mask[o] !== 1) continue;
    const entropy = reads.entropy
      ? finite(plan, "entropy", scalars.entropy?.[i], o)
      : finiteOrNaN(scalars.entropy?.[i]);
    readToken(token, plan, o, finite(plan, "log-probability", scalars.logp[i], o), entropy, shared);
    const unit = units.unitOf[o]!;
    const weight = plan.weights[unit]!;
    const term = policyTerm(plan, token, o, statistics);
    const correction = correctionOf(plan, token, unit, filters, sums);
    if (part.correction !== null) part.correction[i] = correction;
    const policyWeight = weight * correction;
    // A filtered token adds nothing, even where its own loss is enormous.
    if (policyWeight !== 0) {
      sums.policyLoss += policyWeight * term.loss;
      part.dLogp[i] = policyWeight * term.dLogp;
      if (part.dEntropy !== null) part.dEntropy[i] = policyWeight * (term.dEntropy ?? 0);
    }
    if (kl !== null && kl.estimator !== undefined) {
      const difference = (kl.base === "ref" ? token.ref : token.old) - token.logp;
      sums.klLoss += weight * klEstimate(kl.estimator, clampLogRatio(difference));
      part.dLogp[i]! += kl.coef * weight * klSlope(kl.estimator, difference);
    }
    if (part.dEntropy !== null) part.dEntropy[i]! += entropyShare;
    if (part.dValue !== null) part.dValue[i] = valueCotangent(plan, o, scalars.value?.[i], sums);
    note(sums, token, term);
  }
  return part;
}

/** The objective's own loss of one token, checked to be finite. */
function policyTerm(
  plan: ObjectivePlan,
  token: MutableToken,
  occurrence: number,
  statistics: ObjectiveStatistics | null,
): TokenLoss {
  const { definition } = plan;
  const unitLosses = statistics?.unitLosses;
  let term: TokenLoss;
  if (definition.scope === "token") {
    term = definition.token(token, plan.settings);
  } else if (unitLosses != null) {
    term = {
      loss: unitLosses.loss[occurrence]!,
      dLogp: unitLosses.dLogp[occurrence]!,
      dEntropy: unitLosses.dEntropy[occurrence]!,
    };
  } else {
    throw statisticsMissing(plan.scope);
  }
  if (term.loss - term.loss !== 0) finite(plan, `loss by ${definition.name}`, term.loss, occurrence);
  if (term.dLogp - term.dLogp !== 0) finite(plan, `derivative by ${definition.name}`, term.dLogp, occurrence);
  if (term.dEntropy !== undefined && term.dEntropy !== 0) {
    if (!plan.reads.entropy) throw entropyUndeclared(definition.name);
    finite(plan, "derivative by entropy", term.dEntropy, occurrence);
  }
  return term;
}

function correctionOf(
  plan: ObjectivePlan,
  token: MutableToken,
  unit: number,
  filters: UnitFilters,
  sums: ObjectiveSums,
): number {
  const { correction } = plan.config;
  if (correction === undefined) return 1;
  return correctionWeight(correction, plan.settings, token, unit, filters, sums.correction);
}

/** d (value.coef · token mean of the value loss) / d V */
function valueCotangent(
  plan: ObjectivePlan,
  occurrence: number,
  value: number | undefined,
  sums: ObjectiveSums,
): number {
  const { coef = 0, clip = Number.POSITIVE_INFINITY } = plan.config.value ?? {};
  const { oldValue, returns } = plan.batch.columns;
  const now = finite(plan, "value", value, occurrence);
  const term = valueTerm(now, oldValue?.[occurrence] ?? now, returns?.[occurrence] ?? Number.NaN, clip);
  sums.valueLoss += finite(plan, "value loss", term.loss, occurrence);
  if (term.clipped) sums.valueClipped += 1;
  return (coef * term.dValue) / plan.units.trainableTokens;
}

/** A number that only a metric would show: left out there when it is not finite. */
function finiteOrNaN(value: number | undefined): number {
  return value !== undefined && value - value === 0 ? value : Number.NaN;
}

/** Metrics of one token. */
function note(sums: ObjectiveSums, token: MutableToken, term: TokenLoss): void {
  sums.tokens += 1;
  addToSpread(sums.ratio, token.ratio);
  addToSpread(sums.entropy, token.entropy);
  addToSpread(sums.advantage, token.advantage);
  addToSpread(sums.staleness, token.staleness);
  if (!Number.isNaN(token.ref)) addToKl(sums.klToRef, clampLogRatio(token.ref - token.logp));
  if (!Number.isNaN(token.old)) addToKl(sums.klToOld, clampLogRatio(token.old - token.logp));
  if (term.clipped === "low") sums.clippedLow += 1;
  else if (term.clipped === "high") sums.clippedHigh += 1;
  else if (term.clipped === "dual") sums.clippedDual += 1;
}

function statisticsMissing(scope: ObjectiveScope): RollscopeError {
  return new RollscopeError(
    "OBJECTIVE_STATISTICS_MISSING",
    `This objective's scope is ${scope}: its cotangents need statistics of a first pass.`,
    { next: "Run a forward over the whole step, give it to collectStatistics(), and pass what finish() returns." },
  );
}

function entropyUndeclared(name: string): RollscopeError {
  return new RollscopeError(
    "OBJECTIVE_DEFINITION_INVALID",
    `Objective ${name} returned a derivative by entropy without reading entropy.`,
    { next: 'Add "entropy" to the objective\'s `reads`.' },
  );
}
