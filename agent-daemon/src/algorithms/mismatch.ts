// How far the trainer's log-probabilities lie from the sampler's record under one policy version. Reports; never corrects.
import { k3 } from "./kl.ts";
import { boundedRatio, clampLogRatio } from "./logRatio.ts";
import { type Column, type Locate, type TokenPlace, throwNonFinite } from "./tokenPlace.ts";

/** One trajectory; `trainer` and `rollout` may hold anything where the mask is 0. */
export interface MismatchSequence {
  readonly mask: Column;
  readonly trainer: Column;
  readonly rollout: Column;
  /** Policy version of each token; with the option `version` only its tokens count. */
  readonly version?: Column | undefined;
  readonly turn?: Column | undefined;
  readonly locate?: Locate | undefined;
}

export interface MismatchToken {
  readonly sequence: number;
  readonly position: number;
  /** Clamped trainer − rollout. */
  readonly difference: number;
  readonly trainer: number;
  readonly rollout: number;
  /** Where the caller can say so. */
  readonly place: TokenPlace | null;
}

/** d = cl20(trainer − rollout). Every number is null when there is no trainable token. */
export interface MismatchReport {
  readonly tokens: number;
  /** mean(−d) */
  readonly k1: number | null;
  /** mean(expm1 d − d) */
  readonly k3: number | null;
  readonly absLogpDiffMean: number | null;
  readonly absLogpDiffMax: number | null;
  /** mean |exp(trainer) − exp(rollout)| */
  readonly absProbDiffMean: number | null;
  readonly ratioMin: number | null;
  readonly ratioMax: number | null;
  /** Fraction of tokens with exp(d) outside [0.9, 1.1]. */
  readonly ratioOutside: number | null;
  /** Of d, by linear interpolation. */
  readonly percentiles: Readonly<Record<"1" | "50" | "99", number>> | null;
  /** exp(mean d) of each trajectory with trainable tokens, in order. */
  readonly sequenceRatioGeometric: number[];
  /** (Σw)²/(nΣw²), w = exp(cl20(Σd)) of the n trajectories with trainable tokens. */
  readonly effectiveSampleSizeFraction: number | null;
  /** The ten largest |d|, largest first. */
  readonly worst: MismatchToken[];
}

export interface MismatchOptions {
  /** Count only tokens that this policy version sampled; sequences then need `version`. */
  readonly version?: number | undefined;
}

/** @throws ALGORITHM_NON_FINITE naming record, call and token */
export function mismatchReport(sequences: readonly MismatchSequence[], options: MismatchOptions = {}): MismatchReport {
  const places: { sequence: number; position: number }[] = [];
  const differences: number[] = [];
  const sequenceSums: { sum: number; tokens: number }[] = [];
  const total = { k1: 0, k3: 0, absolute: 0, probability: 0, outside: 0 };
  for (const [index, sequence] of sequences.entries()) {
    let sum = 0;
    let tokens = 0;
    for (let position = 0; position < sequence.mask.length; position++) {
      if (!counts(sequence, position, options)) continue;
      const trainer = readLogp(sequence, index, position, "trainer");
      const rollout = readLogp(sequence, index, position, "rollout");
      const d = clampLogRatio(trainer - rollout);
      const ratio = Math.exp(d);
      places.push({ sequence: index, position });
      differences.push(d);
      tokens += 1;
      sum += d;
      total.k1 -= d;
      total.k3 += k3(d);
      total.absolute += Math.abs(d);
      total.probability += Math.abs(Math.exp(trainer) - Math.exp(rollout));
      if (ratio < 0.9 || ratio > 1.1) total.outside += 1;
    }
    if (tokens > 0) sequenceSums.push({ sum, tokens });
  }
  const tokens = differences.length;
  if (tokens === 0) return emptyReport;
  const sorted = Float64Array.from(differences).sort();
  const lowest = sorted[0]!;
  const highest = sorted[tokens - 1]!;
  return {
    tokens,
    k1: total.k1 / tokens,
    k3: total.k3 / tokens,
    absLogpDiffMean: total.absolute / tokens,
    absLogpDiffMax: Math.max(-lowest, highest),
    absProbDiffMean: total.probability / tokens,
    ratioMin: Math.exp(lowest),
    ratioMax: Math.exp(highest),
    ratioOutside: total.outside / tokens,
    percentiles: { "1": percentile(sorted, 1), "50": percentile(sorted, 50), "99": percentile(sorted, 99) },
    sequenceRatioGeometric: sequenceSums.map(({ sum, tokens: length }) => Math.exp(sum / length)),
    effectiveSampleSizeFraction: effectiveSampleSize(sequenceSums.map(({ sum }) => boundedRatio(sum))),
    worst: worstTokens(sequences, places, differences),
  };
}

const emptyReport: MismatchReport = {
  tokens: 0,
  k1: null,
  k3: null,
  absLogpDiffMean: null,
  absLogpDiffMax: null,
  absProbDiffMean: null,
  ratioMin: null,
  ratioMax: null,
  ratioOutside: null,
  percentiles: null,
  sequenceRatioGeometric: [],
  effectiveSampleSizeFraction: null,
  worst: [],
};

function counts({ mask, version }: MismatchSequence, position: number, options: MismatchOptions): boolean {
  return mask[position] !== 0 && (options.version === undefined || version?.[position] === options.version);
}

function readLogp(sequence: MismatchSequence, index: number, position: number, name: "trainer" | "rollout"): number {
  const value = sequence[name][position] ?? Number.NaN;
  if (Number.isFinite(value)) return value;
  return throwNonFinite(
    name === "trainer" ? "trainer's log-probability" : "sampled log-probability",
    value,
    sequence,
    index,
    position,
  );
}

/** Linear interpolation between the two nearest of the ascending numbers. */
function percentile(sorted: Float64Array, percent: number): number {
  const rank = ((sorted.length - 1) * percent) / 100;
  const below = Math.floor(rank);
  const low = sorted[below]!;
  const high = sorted[Math.min(below + 1, sorted.length - 1)]!;
  return low + (high - low) * (rank - below);
}

/** (Σw)²/(nΣw²): 1 when all weights are equal, 1/n when one has all. */
function effectiveSampleSize(weights: readonly number[]): number {
  const sum = weights.reduce((total, w) => total + w, 0);
  const squares = weights.reduce((total, w) => total + w * w, 0);
  return (sum * sum) / (weights.length * squares);
}

const WORST_TOKENS = 10;

function worstTokens(
  sequences: readonly MismatchSequence[],
  places: readonly { sequence: number; position: number }[],
  differences: readonly number[],
): MismatchToken[] {
  const order = new Uint32Array(differences.length).map((_, i) => i);
  order.sort((a, b) => Math.abs(differences[b]!) - Math.abs(differences[a]!) || a - b);
  return Array.from(order.subarray(0, WORST_TOKENS), (i) => {
    const { sequence, position } = places[i]!;
    const source = sequences[sequence]!;
    return {
      sequence,
      position,
      difference: differences[i]!,
      trainer: source.trainer[position]!,
      rollout: source.rollout[position]!,
      place: source.locate?.(position) ?? null,
    };
  });
}
