// Sums over tokens that add up over micro-batches and ranks, and the metrics made of them, by the field's names: always pooled
// by token count, never a mean of means. A metric without its columns is null.
import type { ObjectiveConfig } from "../../../protocol/objective.ts";
import type { CorrectionTally } from "./corrections.ts";
import { entropyLoss, entropyTerm } from "./entropy.ts";
import { k3 } from "./kl.ts";
import { clampLogRatio } from "./logRatio.ts";

/** Sums of the three KL estimators over tokens, with the tokens they were taken over. */
export interface KlSums {
  tokens: number;
  k1: number;
  k2: number;
  k3: number;
}

/** Sum, extremes and count of one number over tokens. */
export interface Spread {
  tokens: number;
  sum: number;
  min: number;
  max: number;
}

export interface ObjectiveSums {
  /** Trainable tokens seen. */
  tokens: number;
  /** Already weighted by the aggregation. */
  policyLoss: number;
  klLoss: number;
  /** Plain sums over tokens. */
  valueLoss: number;
  valueClipped: number;
  clippedLow: number;
  clippedHigh: number;
  clippedDual: number;
  readonly ratio: Spread;
  readonly entropy: Spread;
  readonly advantage: Spread;
  readonly staleness: Spread;
  readonly klToRef: KlSums;
  readonly klToOld: KlSums;
  readonly correction: CorrectionTally;
}

export interface KlMetrics {
  readonly k1: number;
  readonly k2: number;
  readonly k3: number;
}

export interface SpreadMetrics {
  readonly mean: number;
  readonly min: number;
  readonly max: number;
}

export interface CorrectionMetrics {
  /** Fractions of trainable tokens that each filter kept, and all of them together; null when not configured. */
  readonly keptFraction: number;
  readonly tokenMaskKeptFraction: number | null;
  readonly sequenceMaskKeptFraction: number | null;
  readonly tokenVetoKeptFraction: number | null;
  readonly freshnessKeptFraction: number | null;
  /** Fraction of tokens whose old/rollout was above tokenTruncate. */
  readonly truncatedFraction: number | null;
  readonly weightMean: number;
}

export interface ObjectiveMetrics {
  readonly trainableTokens: number;
  readonly units: number;
  readonly ratio: SpreadMetrics | null;
  /** Tokens whose gradient or weight a bound cut, as fractions of all trainable tokens. */
  readonly clipFraction: number | null;
  readonly clipFractionLow: number | null;
  readonly clipFractionHigh: number | null;
  readonly clipFractionDual: number | null;
  /** All three estimators, token means, whichever one is the loss. */
  readonly klToRef: KlMetrics | null;
  readonly klToOld: KlMetrics | null;
  readonly entropy: SpreadMetrics | null;
  readonly advantage: SpreadMetrics | null;
  readonly staleness: SpreadMetrics | null;
  /** Tokens whose new value moved further than the clip. */
  readonly valueClipFraction: number | null;
  readonly correction: CorrectionMetrics | null;
}

export interface ObjectiveLosses {
  readonly loss: number;
  readonly policyLoss: number;
  /** Unscaled; null when no KL is in the loss. */
  readonly klLoss: number | null;
  /** Unscaled; null when not configured. */
  readonly entropyTerm: number | null;
  /** Unscaled; null when not configured. */
  readonly valueLoss: number | null;
}

export function emptySums(): ObjectiveSums {
  return {
    tokens: 0,
    policyLoss: 0,
    klLoss: 0,
    valueLoss: 0,
    valueClipped: 0,
    clippedLow: 0,
    clippedHigh: 0,
    clippedDual: 0,
    ratio: emptySpread(),
    entropy: emptySpread(),
    advantage: emptySpread(),
    staleness: emptySpread(),
    klToRef: emptyKl(),
    klToOld: emptyKl(),
    correction: {
      kept: 0,
      tokenMaskKept: 0,
      sequenceMaskKept: 0,
      tokenVetoKept: 0,
      freshnessKept: 0,
      truncated: 0,
      weightSum: 0,
    },
  };
}

function emptySpread(): Spread {
  return { tokens: 0, sum: 0, min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY };
}

function emptyKl(): KlSums {
  return { tokens: 0, k1: 0, k2: 0, k3: 0 };
}

/** Notes every number of a column; a column that the batch lacks is left out. */
export function addToSpread(spread: Spread, column: Float64Array | null): void {
  if (column === null) return;
  let { sum, min, max } = spread;
  for (let i = 0; i < column.length; i++) {
    const x = column[i]!;
    sum += x;
    if (x < min) min = x;
    if (x > max) max = x;
  }
  spread.tokens += column.length;
  spread.sum = sum;
  spread.min = min;
  spread.max = max;
}

/** Adds all estimators at d = cl20(base − lp) of every token. */
export function addToKl(sums: KlSums, base: Float64Array | null, logp: Float64Array): void {
  if (base === null) return;
  let k1 = 0;
  let k2 = 0;
  let k3Sum = 0;
  for (let i = 0; i < logp.length; i++) {
    const d = clampLogRatio(base[i]! - logp[i]!);
    k1 -= d;
    k2 += 0.5 * d * d;
    k3Sum += k3(d);
  }
  sums.tokens += logp.length;
  sums.k1 += k1;
  sums.k2 += k2;
  sums.k3 += k3Sum;
}

/** Pools sums of several micro-batches or ranks. */
export function mergeSums(parts: Iterable<ObjectiveSums>): ObjectiveSums {
  const total = emptySums();
  for (const part of parts) mergeInto(total, part);
  return total;
}

type Numbers = { [key: string]: number | Numbers };

function mergeInto(total: ObjectiveSums, part: ObjectiveSums): void {
  const merge = (into: Numbers, from: Numbers): void => {
    for (const [key, value] of Object.entries(from)) {
      const present = into[key];
      if (typeof value !== "number" || typeof present !== "number") merge(present as Numbers, value as Numbers);
      else if (key === "min") into[key] = Math.min(present, value);
      else if (key === "max") into[key] = Math.max(present, value);
      else into[key] = present + value;
    }
  };
  merge(total as unknown as Numbers, part as unknown as Numbers);
}

/** loss = policyLoss + kl.coef·klLoss + entropy part + value.coef·valueLoss. A batch without trainable tokens is 0. */
export function lossesOf(config: ObjectiveConfig, sums: ObjectiveSums): ObjectiveLosses {
  const empty = sums.tokens === 0;
  const klLoss = config.kl?.placement === "loss" ? sums.klLoss : null;
  const entropy =
    config.entropy === undefined || empty ? 0 : entropyTerm(config.entropy, sums.entropy.sum / sums.tokens);
  const valueLoss = config.value === undefined ? null : empty ? 0 : sums.valueLoss / sums.tokens;
  const loss =
    sums.policyLoss +
    (klLoss === null || config.kl === undefined ? 0 : config.kl.coef * klLoss) +
    (config.entropy === undefined ? 0 : entropyLoss(config.entropy, entropy)) +
    (valueLoss === null || config.value === undefined ? 0 : config.value.coef * valueLoss);
  return {
    loss,
    policyLoss: sums.policyLoss,
    klLoss,
    entropyTerm: config.entropy === undefined ? null : entropy,
    valueLoss,
  };
}

export function metricsOf(config: ObjectiveConfig, sums: ObjectiveSums, units: number): ObjectiveMetrics {
  const { tokens } = sums;
  const fraction = (count: number) => (tokens === 0 ? null : count / tokens);
  return {
    trainableTokens: tokens,
    units,
    ratio: spreadMetrics(sums.ratio),
    clipFraction: fraction(sums.clippedLow + sums.clippedHigh + sums.clippedDual),
    clipFractionLow: fraction(sums.clippedLow),
    clipFractionHigh: fraction(sums.clippedHigh),
    clipFractionDual: fraction(sums.clippedDual),
    klToRef: klMetrics(sums.klToRef),
    klToOld: klMetrics(sums.klToOld),
    entropy: spreadMetrics(sums.entropy),
    advantage: spreadMetrics(sums.advantage),
    staleness: spreadMetrics(sums.staleness),
    valueClipFraction: config.value === undefined ? null : fraction(sums.valueClipped),
    correction: correctionMetrics(config, sums),
  };
}

function spreadMetrics({ tokens, sum, min, max }: Spread): SpreadMetrics | null {
  return tokens === 0 ? null : { mean: sum / tokens, min, max };
}

function klMetrics({ tokens, k1, k2, k3 }: KlSums): KlMetrics | null {
  return tokens === 0 ? null : { k1: k1 / tokens, k2: k2 / tokens, k3: k3 / tokens };
}

function correctionMetrics({ correction }: ObjectiveConfig, sums: ObjectiveSums): CorrectionMetrics | null {
  if (correction === undefined || sums.tokens === 0) return null;
  const tally = sums.correction;
  const fraction = (setting: unknown, count: number) => (setting === undefined ? null : count / sums.tokens);
  return {
    keptFraction: tally.kept / sums.tokens,
    tokenMaskKeptFraction: fraction(correction.tokenMask, tally.tokenMaskKept),
    sequenceMaskKeptFraction: fraction(correction.sequenceMask, tally.sequenceMaskKept),
    tokenVetoKeptFraction: fraction(correction.tokenVeto, tally.tokenVetoKept),
    freshnessKeptFraction: fraction(correction.freshness, tally.freshnessKept),
    truncatedFraction: fraction(correction.tokenTruncate, tally.truncated),
    weightMean: tally.weightSum / sums.tokens,
  };
}
