// Moves numbers between slots and occurrences: scalars are gathered, cotangents added. The only place where a number that
// is not finite can come in from an engine, so it is stopped here.
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { Cotangents, Outputs, Scalars } from "../engines/interface.ts";
import type { PackedForest } from "./packing.ts";
import { nonFinite } from "./trajectoryCheck.ts";

/** [occurrences] each; only those that were wanted. */
export interface OccurrenceScalars {
  readonly logprob?: Float64Array;
  readonly entropy?: Float64Array;
  readonly value?: Float64Array;
}

const scalarNames = ["logprob", "entropy", "value"] as const;
const scalarLabels = { logprob: "log-probability", entropy: "entropy", value: "value" } as const;

export function newOccurrenceScalars(count: number, want: Outputs): OccurrenceScalars {
  return {
    ...(want.logprob ? { logprob: new Float64Array(count) } : {}),
    ...(want.entropy ? { entropy: new Float64Array(count) } : {}),
    ...(want.value ? { value: new Float64Array(count) } : {}),
  };
}

/**
 * Copies the scalars of one batch to its occurrences.
 * @throws TRAINING_NON_FINITE naming record, call and token
 */
export function gatherScalars(
  forest: PackedForest,
  trajectories: readonly Trajectory[],
  batch: number,
  scalars: Scalars,
  target: OccurrenceScalars,
): void {
  for (const name of scalarNames) {
    const source = scalars[name];
    const values = target[name];
    if (values === undefined) continue;
    for (const occurrence of forest.members[batch] as Int32Array) {
      const value = source?.[forest.occurrences.slot[occurrence] as number] ?? Number.NaN;
      if (!Number.isFinite(value)) {
        const { trajectory, position } = occurrencePlace(forest, occurrence);
        throw nonFinite(`engine's ${scalarLabels[name]}`, value, trajectories[trajectory] as Trajectory, position);
      }
      values[occurrence] = value;
    }
  }
}

/** Trajectory and position of an occurrence. */
export function occurrencePlace(forest: PackedForest, occurrence: number): { trajectory: number; position: number } {
  const { offsets, position } = forest.occurrences;
  let low = 0;
  let high = offsets.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((offsets[middle] as number) <= occurrence) low = middle;
    else high = middle;
  }
  return { trajectory: low, position: position[occurrence] as number };
}

/** Derivatives by occurrence: one number for each of the listed occurrences, in their order; absent: 0. */
export interface OccurrenceCotangents {
  readonly logprob?: ArrayLike<number> | undefined;
  readonly entropy?: ArrayLike<number> | undefined;
  readonly value?: ArrayLike<number> | undefined;
}

/** Adds the derivatives of a batch's occurrences, in the order of `forest.members[batch]`, at their slots; sums in float64. */
export function scatterCotangents(forest: PackedForest, batch: number, cotangents: OccurrenceCotangents): Cotangents {
  const size = (forest.batches[batch]?.tokens.length ?? 0) as number;
  const members = forest.members[batch] as Int32Array;
  const result: { logprob?: Float32Array; entropy?: Float32Array; value?: Float32Array } = {};
  for (const name of scalarNames) {
    const source = cotangents[name];
    if (source === undefined) continue;
    const sums = new Float64Array(size);
    members.forEach((occurrence, i) => {
      const slot = forest.occurrences.slot[occurrence] as number;
      sums[slot] = (sums[slot] as number) + (source[i] as number);
    });
    result[name] = Float32Array.from(sums);
  }
  return result;
}
