// Cotangents of one micro-batch: the objective's own loss, corrections, KL, entropy and value, each one pass over its tokens.
// Every denominator is the whole optimizer batch's (see preparedObjective.ts).
import { RollscopeError } from "../../../protocol/errors.ts";
import type { TokenLoss, TokenObjective } from "../../../protocol/objectiveDefinition.ts";
import { correctionWeights } from "./corrections.ts";
import { entropySlope } from "./entropy.ts";
import { klEstimate, klSlope } from "./kl.ts";
import { clampLogRatio } from "./logRatio.ts";
import { addToKl, addToSpread, emptySums, type ObjectiveSums } from "./objectiveMetrics.ts";
import type { ObjectivePlan } from "./objectivePlan.ts";
import type { ObjectiveStatistics } from "./statistics.ts";
import {
  checkFinite,
  emptyToken,
  forEachBlock,
  type OccurrenceScalars,
  readToken,
  type TokenBlock,
  type TokenRatios,
  tokenRatios,
} from "./tokenBlock.ts";
import { valueTerm } from "./valueLoss.ts";

/** d loss / d scalar of some occurrences; null where the loss does not depend on the scalar at all. */
export interface ObjectivePart {
  readonly dLogp: Float64Array;
  readonly dEntropy: Float64Array | null;
  readonly dValue: Float64Array | null;
  /** Product of the corrections' weights of each token; null where none is configured. */
  readonly correction: Float64Array | null;
  readonly sums: ObjectiveSums;
}

/** @throws OBJECTIVE_STATISTICS_MISSING, ALGORITHM_NON_FINITE, OBJECTIVE_DEFINITION_INVALID */
export function cotangents(
  plan: ObjectivePlan,
  occurrences: Int32Array,
  scalars: OccurrenceScalars,
  statistics: ObjectiveStatistics | null,
): ObjectivePart {
  if (plan.scope !== "token" && statistics === null) throw statisticsMissing(plan);
  const column = (wanted: boolean) => (wanted ? new Float64Array(occurrences.length) : null);
  const part: ObjectivePart = {
    dLogp: new Float64Array(occurrences.length),
    dEntropy: column(plan.reads.entropy),
    dValue: column(plan.reads.value),
    correction: column(plan.config.correction !== undefined),
    sums: emptySums(),
  };
  forEachBlock(plan, occurrences, scalars, (tokens) => addBlock(plan, tokens, statistics, part));
  return part;
}

function addBlock(
  plan: ObjectivePlan,
  tokens: TokenBlock,
  statistics: ObjectiveStatistics | null,
  part: ObjectivePart,
): void {
  const { sums } = part;
  const ratios = tokenRatios(plan, tokens, statistics?.shared ?? null);
  const losses = policyLosses(plan, tokens, ratios, statistics, sums);
  const filters = statistics?.filters ?? plan.filters;
  const corrections = correctionWeights(
    plan.config.correction,
    plan.settings,
    tokens,
    ratios,
    filters,
    sums.correction,
  );
  addPolicy(plan, tokens, losses, corrections, sums);
  addKlLoss(plan, tokens, losses, sums);
  addEntropy(plan, losses, statistics);
  const dValue = valueCotangents(plan, tokens, sums);
  noteMetrics(tokens, ratios, sums);
  scatter(losses.dLogp, tokens.at, part.dLogp);
  scatter(losses.dEntropy, tokens.at, part.dEntropy);
  scatter(dValue, tokens.at, part.dValue);
  scatter(corrections, tokens.at, part.correction);
}

/** [tokens.count] each; first the objective's own numbers, then weighted and added to in place. */
interface TokenLosses {
  readonly loss: Float64Array;
  readonly dLogp: Float64Array;
  readonly dEntropy: Float64Array | null;
}

function policyLosses(
  plan: ObjectivePlan,
  tokens: TokenBlock,
  ratios: TokenRatios,
  statistics: ObjectiveStatistics | null,
  sums: ObjectiveSums,
): TokenLosses {
  const { definition } = plan;
  const losses: TokenLosses = {
    loss: new Float64Array(tokens.count),
    dLogp: new Float64Array(tokens.count),
    dEntropy: plan.reads.entropy ? new Float64Array(tokens.count) : null,
  };
  if (definition.scope === "token") {
    callTokenObjective(plan, definition, tokens, ratios, losses, sums);
  } else {
    const unitLosses = statistics?.unitLosses;
    if (unitLosses == null) throw statisticsMissing(plan);
    for (let i = 0; i < tokens.count; i++) {
      const o = tokens.occurrence[i]!;
      losses.loss[i] = unitLosses.loss[o]!;
      losses.dLogp[i] = unitLosses.dLogp[o]!;
      addDerivativeByEntropy(plan, losses, i, unitLosses.dEntropy[o]!);
    }
  }
  checkFinite(plan, `loss by ${definition.name}`, losses.loss, tokens.occurrence);
  checkFinite(plan, `derivative by ${definition.name}`, losses.dLogp, tokens.occurrence);
  if (losses.dEntropy !== null) {
    checkFinite(plan, `derivative by entropy by ${definition.name}`, losses.dEntropy, tokens.occurrence);
  }
  return losses;
}

function callTokenObjective(
  plan: ObjectivePlan,
  definition: TokenObjective,
  tokens: TokenBlock,
  ratios: TokenRatios,
  losses: TokenLosses,
  sums: ObjectiveSums,
): void {
  const token = emptyToken();
  for (let i = 0; i < tokens.count; i++) {
    readToken(token, tokens, ratios, i);
    const term = definition.token(token, plan.settings);
    losses.loss[i] = term.loss;
    losses.dLogp[i] = term.dLogp;
    if (term.dEntropy !== undefined) addDerivativeByEntropy(plan, losses, i, term.dEntropy);
    if (term.clipped !== undefined) countClipped(sums, term.clipped);
  }
}

function addDerivativeByEntropy(plan: ObjectivePlan, losses: TokenLosses, i: number, dEntropy: number): void {
  if (losses.dEntropy !== null) losses.dEntropy[i] = dEntropy;
  else if (dEntropy !== 0) {
    throw new RollscopeError(
      "OBJECTIVE_DEFINITION_INVALID",
      `Objective ${plan.definition.name} returned a derivative by entropy without reading entropy.`,
      { next: 'Add "entropy" to the objective\'s `reads`.' },
    );
  }
}

function countClipped(sums: ObjectiveSums, side: NonNullable<TokenLoss["clipped"]>): void {
  if (side === "low") sums.clippedLow += 1;
  else if (side === "high") sums.clippedHigh += 1;
  else sums.clippedDual += 1;
}

/** Weights loss and derivatives by the aggregation and the corrections; a filtered token adds 0. */
function addPolicy(
  plan: ObjectivePlan,
  tokens: TokenBlock,
  { loss, dLogp, dEntropy }: TokenLosses,
  corrections: Float64Array | null,
  sums: ObjectiveSums,
): void {
  let policyLoss = 0;
  for (let i = 0; i < tokens.count; i++) {
    const weight = plan.weights[tokens.unit[i]!]! * (corrections === null ? 1 : corrections[i]!);
    policyLoss += weight * loss[i]!;
    dLogp[i]! *= weight;
    if (dEntropy !== null) dEntropy[i]! *= weight;
  }
  sums.policyLoss += policyLoss;
}

function addKlLoss(plan: ObjectivePlan, tokens: TokenBlock, { dLogp }: TokenLosses, sums: ObjectiveSums): void {
  const { kl } = plan.config;
  if (kl?.placement !== "loss" || kl.estimator === undefined) return;
  const base = kl.base === "ref" ? tokens.ref : tokens.old;
  if (base === null) return;
  const { estimator, coef } = kl;
  let klLoss = 0;
  for (let i = 0; i < tokens.count; i++) {
    const weight = plan.weights[tokens.unit[i]!]!;
    const difference = base[i]! - tokens.logp[i]!;
    klLoss += weight * klEstimate(estimator, clampLogRatio(difference));
    dLogp[i]! += coef * weight * klSlope(estimator, difference);
  }
  sums.klLoss += klLoss;
}

function addEntropy(plan: ObjectivePlan, { dEntropy }: TokenLosses, statistics: ObjectiveStatistics | null): void {
  const { entropy } = plan.config;
  if (entropy === undefined || dEntropy === null) return;
  const slope = entropySlope(entropy, plan.units.trainableTokens, statistics?.entropyMean ?? 0);
  for (let i = 0; i < dEntropy.length; i++) dEntropy[i]! += slope;
}

/** d (value.coef · token mean of the value loss) / d V */
function valueCotangents(plan: ObjectivePlan, tokens: TokenBlock, sums: ObjectiveSums): Float64Array | null {
  const { value: config } = plan.config;
  const { oldValue, returns } = plan.batch.columns;
  if (config === undefined || tokens.value === null || returns === null) return null;
  const losses = new Float64Array(tokens.count);
  const dValue = new Float64Array(tokens.count);
  for (let i = 0; i < tokens.count; i++) {
    const o = tokens.occurrence[i]!;
    const value = tokens.value[i]!;
    const old = oldValue === null ? value : oldValue[o]!;
    const term = valueTerm(value, old, returns[o]!, config.clip ?? Number.POSITIVE_INFINITY);
    losses[i] = term.loss;
    dValue[i] = (config.coef * term.dValue) / plan.units.trainableTokens;
    if (term.clipped) sums.valueClipped += 1;
  }
  checkFinite(plan, "value loss", losses, tokens.occurrence);
  sums.valueLoss += losses.reduce((sum, loss) => sum + loss, 0);
  return dValue;
}

function noteMetrics(tokens: TokenBlock, ratios: TokenRatios, sums: ObjectiveSums): void {
  sums.tokens += tokens.count;
  addToSpread(sums.ratio, ratios.ratio);
  addToSpread(sums.entropy, tokens.entropy);
  addToSpread(sums.advantage, tokens.advantage);
  addToSpread(sums.staleness, tokens.staleness);
  addToKl(sums.klToRef, tokens.ref, tokens.logp);
  addToKl(sums.klToOld, tokens.old, tokens.logp);
}

/** Back to the order of the micro-batch; masked occurrences keep their 0. */
function scatter(column: Float64Array | null, at: Int32Array, into: Float64Array | null): void {
  if (column === null || into === null) return;
  for (let i = 0; i < at.length; i++) into[at[i]!] = column[i]!;
}

function statisticsMissing({ scope }: ObjectivePlan): RollscopeError {
  return new RollscopeError(
    "OBJECTIVE_STATISTICS_MISSING",
    `This objective's scope is ${scope}: its cotangents need statistics of a first pass.`,
    { next: "Run a forward over the whole step, give it to collectStatistics(), and pass what finish() returns." },
  );
}
