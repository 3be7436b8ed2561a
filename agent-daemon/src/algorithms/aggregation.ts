// From token losses to one number over the whole optimizer batch: which unit a token belongs to and the constant weight its
// loss has there. Depends on masks and turns alone, so it is known before any forward and for any split into micro-batches.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { ObjectiveConfig } from "../../../protocol/objective.ts";
import type { FlatBatch } from "./columns.ts";

/** The units (trajectories, or turns of one) that have trainable tokens; others do not exist for any denominator. */
export interface Units {
  readonly count: number;
  readonly trainableTokens: number;
  /** [batch.size] unit of an occurrence, −1 where masked */
  readonly unitOf: Int32Array;
  /** [count] trainable tokens of a unit */
  readonly tokens: Int32Array;
}

/** Numbers the units of a batch in order of first appearance. A turn is its number within its trajectory. */
export function findUnits(batch: FlatBatch, unit: ObjectiveConfig["unit"]): Units {
  const turns = unit === "turn" ? batch.columns.turn : null;
  const unitOf = new Int32Array(batch.size).fill(-1);
  const tokens: number[] = [];
  let trainableTokens = 0;
  for (let trajectory = 0; trajectory + 1 < batch.offsets.length; trajectory++) {
    const end = batch.offsets[trajectory + 1]!;
    const byTurn = new Map<number, number>();
    let turn = Number.NaN;
    let index = -1;
    for (let o = batch.offsets[trajectory]!; o < end; o++) {
      if (batch.mask[o] === 0) continue;
      const its = turns === null ? 0 : turns[o]!;
      if (its !== turn) {
        turn = its;
        index = byTurn.get(turn) ?? tokens.push(0) - 1;
        byTurn.set(turn, index);
      }
      unitOf[o] = index;
      tokens[index]! += 1;
      trainableTokens += 1;
    }
  }
  return { count: tokens.length, trainableTokens, unitOf, tokens: Int32Array.from(tokens) };
}

/**
 * [units.count] weight of each token's loss, by unit. N trainable tokens, U units, n tokens of the unit, L lengthNormalizer:
 * token-mean 1/N; sequence-mean 1/(U·n); sequence-sum 1/(U·L).
 */
export function unitWeights(
  units: Units,
  config: Pick<ObjectiveConfig, "aggregation" | "lengthNormalizer">,
): Float64Array {
  const weights = new Float64Array(units.count);
  for (let unit = 0; unit < units.count; unit++) {
    weights[unit] = 1 / divisor(units, unit, config);
  }
  return weights;
}

function divisor(
  units: Units,
  unit: number,
  config: Pick<ObjectiveConfig, "aggregation" | "lengthNormalizer">,
): number {
  switch (config.aggregation) {
    case "token-mean":
      return units.trainableTokens;
    case "sequence-mean":
      return units.count * units.tokens[unit]!;
    case "sequence-sum":
      return units.count * lengthNormalizer(config.lengthNormalizer);
  }
}

function lengthNormalizer(value: number | undefined): number {
  if (value !== undefined) return value;
  throw new RollscopeError("OBJECTIVE_KEY_MISSING", "objective.lengthNormalizer: aggregation sequence-sum needs it.", {
    next: "Set `objective.lengthNormalizer`.",
    at: { key: "objective.lengthNormalizer" },
  });
}

/** Mean over each unit's trainable tokens of `term(occurrence)`, summed in order of occurrence. [units.count] */
export function unitMeans(units: Units, term: (occurrence: number) => number): Float64Array {
  const means = unitSums(units, term);
  for (let unit = 0; unit < units.count; unit++) means[unit]! /= units.tokens[unit]!;
  return means;
}

/** Sum over each unit's trainable tokens of `term(occurrence)`, in order of occurrence. [units.count] */
export function unitSums(units: Units, term: (occurrence: number) => number): Float64Array {
  const sums = new Float64Array(units.count);
  for (let o = 0; o < units.unitOf.length; o++) {
    const unit = units.unitOf[o]!;
    if (unit >= 0) sums[unit]! += term(o);
  }
  return sums;
}
