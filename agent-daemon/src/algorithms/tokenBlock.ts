// The trainable tokens of one micro-batch as dense columns, ratios included. Formulas run over these columns one after the
// other: short loops over typed arrays are what lets 200,000 tokens be recomputed live.
import type { ObjectiveToken } from "../../../protocol/objectiveDefinition.ts";
import { trajectoryOf } from "./columns.ts";
import { boundedRatio, clampLogRatioSlope } from "./logRatio.ts";
import type { ObjectivePlan } from "./objectivePlan.ts";
import { type Column, throwNonFinite } from "./tokenPlace.ts";

/** The forward's numbers of some occurrences, aligned with them. */
export interface OccurrenceScalars {
  readonly logp: Column;
  /** Needed when `needs.entropy`; otherwise only for the entropy metric. */
  readonly entropy?: Column | undefined;
  /** Needed when `needs.value`. */
  readonly value?: Column | undefined;
}

/** [count] each; null where the batch does not have the column. */
export interface TokenBlock {
  readonly count: number;
  /** Index in the micro-batch. */
  readonly at: Int32Array;
  readonly occurrence: Int32Array;
  readonly unit: Int32Array;
  readonly logp: Float64Array;
  readonly entropy: Float64Array | null;
  readonly value: Float64Array | null;
  readonly old: Float64Array | null;
  readonly rollout: Float64Array | null;
  readonly ref: Float64Array | null;
  readonly advantage: Float64Array | null;
  readonly staleness: Float64Array | null;
}

/** One ratio for all tokens of a unit. [ratioUnits.count] each */
export interface SharedRatios {
  readonly ratio: Float64Array;
  /** d ratio / d logp of every token of the unit */
  readonly slope: Float64Array;
}

/** [count] each */
export interface TokenRatios {
  /** r of each token, or its unit's; null without the base column. */
  readonly ratio: Float64Array | null;
  /** d r / d logp */
  readonly slope: Float64Array | null;
  /** exp(cl20(logp − rollout)), where something reads it. */
  readonly rolloutRatio: Float64Array | null;
}

/** Tokens of a block: so few that all its columns stay in the processor's cache from one formula to the next. */
const BLOCK = 2048;

/**
 * Visits a micro-batch block by block, in order; blocks without a trainable token are left out.
 * @throws ALGORITHM_NON_FINITE
 */
export function forEachBlock(
  plan: ObjectivePlan,
  occurrences: Int32Array,
  scalars: OccurrenceScalars,
  visit: (tokens: TokenBlock) => void,
): void {
  for (let start = 0; start < occurrences.length; start += BLOCK) {
    const tokens = gatherTokens(plan, occurrences, scalars, start, Math.min(start + BLOCK, occurrences.length));
    if (tokens.count > 0) visit(tokens);
  }
}

/**
 * The trainable ones of occurrences[start … end); checks that the scalars which are read are finite.
 * @throws ALGORITHM_NON_FINITE
 */
export function gatherTokens(
  plan: ObjectivePlan,
  occurrences: Int32Array,
  scalars: OccurrenceScalars,
  start: number,
  end: number,
): TokenBlock {
  const { mask, columns } = plan.batch;
  const places = new Int32Array(end - start);
  let count = 0;
  for (let i = start; i < end; i++) if (mask[occurrences[i]!] === 1) places[count++] = i;
  const at = places.subarray(0, count);
  const occurrence = new Int32Array(count);
  const unit = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    occurrence[i] = occurrences[at[i]!]!;
    unit[i] = plan.units.unitOf[occurrence[i]!]!;
  }
  const logp = pick(scalars.logp, at);
  checkFinite(plan, "log-probability", logp, occurrence);
  return {
    count,
    at,
    occurrence,
    unit,
    logp,
    entropy: entropyColumn(plan, scalars.entropy, at, occurrence),
    value: plan.reads.value ? checkFinite(plan, "value", pick(scalars.value ?? [], at), occurrence) : null,
    old: plan.oldIsCurrent ? logp : pickOrNull(columns.old, occurrence),
    rollout: pickOrNull(columns.rollout, occurrence),
    ref: pickOrNull(columns.ref, occurrence),
    advantage: pickOrNull(columns.advantage, occurrence),
    staleness: pickOrNull(columns.staleness, occurrence),
  };
}

/** Throws ALGORITHM_NON_FINITE for the first number that is not finite; x − x is 0 only for finite x. */
export function checkFinite(
  plan: ObjectivePlan,
  what: string,
  column: Float64Array,
  occurrence: Int32Array,
): Float64Array {
  const bad = firstNonFinite(column);
  if (bad === null) return column;
  const { offsets, sequences } = plan.batch;
  const trajectory = trajectoryOf(offsets, occurrence[bad]!);
  const position = occurrence[bad]! - offsets[trajectory]!;
  return throwNonFinite(what, column[bad]!, sequences[trajectory]!, trajectory, position);
}

/** r = exp(cl20(lp − base)), base by `ratioBase`; with `shared`, the ratio of the token's unit. */
export function tokenRatios(plan: ObjectivePlan, tokens: TokenBlock, shared: SharedRatios | null): TokenRatios {
  const { rollout, logp } = tokens;
  const rolloutRatio =
    plan.reads.rolloutRatio && rollout !== null ? logp.map((lp, i) => boundedRatio(lp - rollout[i]!)) : null;
  if (shared !== null && plan.ratioUnits !== null) {
    const { unitOf } = plan.ratioUnits;
    const units = tokens.occurrence.map((o) => unitOf[o]!);
    return { ratio: pick(shared.ratio, units), slope: pick(shared.slope, units), rolloutRatio };
  }
  const base = plan.config.ratioBase === "old" ? tokens.old : rollout;
  if (base === null) return { ratio: null, slope: null, rolloutRatio };
  const ratio = new Float64Array(tokens.count);
  const slope = new Float64Array(tokens.count);
  for (let i = 0; i < tokens.count; i++) {
    const logRatio = logp[i]! - base[i]!;
    const r = boundedRatio(logRatio);
    ratio[i] = r;
    slope[i] = r * clampLogRatioSlope(logRatio);
  }
  return { ratio, slope, rolloutRatio };
}

export type MutableToken = { -readonly [Key in keyof ObjectiveToken]: ObjectiveToken[Key] };

/** Every number NaN; hot loops reuse one, whoever keeps a token takes a new one. */
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

/** The numbers of token i as an objective sees them. Columns that the batch lacks stay NaN. */
export function readToken(token: MutableToken, tokens: TokenBlock, ratios: TokenRatios, i: number): void {
  const { entropy, old, rollout, ref, advantage, staleness } = tokens;
  token.logp = tokens.logp[i]!;
  if (entropy !== null) token.entropy = entropy[i]!;
  if (old !== null) token.old = old[i]!;
  if (rollout !== null) token.rollout = rollout[i]!;
  if (ref !== null) token.ref = ref[i]!;
  if (advantage !== null) token.advantage = advantage[i]!;
  if (staleness !== null) token.staleness = staleness[i]!;
  if (ratios.ratio !== null) token.ratio = ratios.ratio[i]!;
  if (ratios.slope !== null) token.ratioSlope = ratios.slope[i]!;
  if (ratios.rolloutRatio !== null) token.rolloutRatio = ratios.rolloutRatio[i]!;
}

/** An entropy that only a metric would show is left out when a number of it is not finite. */
function entropyColumn(
  plan: ObjectivePlan,
  entropy: Column | undefined,
  at: Int32Array,
  occurrence: Int32Array,
): Float64Array | null {
  if (plan.reads.entropy) return checkFinite(plan, "entropy", pick(entropy ?? [], at), occurrence);
  if (entropy === undefined) return null;
  const column = pick(entropy, at);
  return firstNonFinite(column) === null ? column : null;
}

function pickOrNull(source: Float64Array | null, indices: Int32Array): Float64Array | null {
  return source === null ? null : pick(source, indices);
}

/** Where the source has no such index, the undefined it gives becomes NaN in a Float64Array. */
function pick(source: Column, indices: Int32Array): Float64Array {
  const picked = new Float64Array(indices.length);
  for (let i = 0; i < indices.length; i++) picked[i] = source[indices[i]!]!;
  return picked;
}

function firstNonFinite(column: Float64Array): number | null {
  for (let i = 0; i < column.length; i++) if (column[i]! - column[i]! !== 0) return i;
  return null;
}
