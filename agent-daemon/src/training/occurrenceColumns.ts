// Trajectories as the algorithms see them: columns over their trainable tokens alone, so that input tokens cost nothing. The
// k-th number of a column belongs to the k-th trainable token.

import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { SequenceConstants } from "../algorithms/columns.ts";
import type { Locate } from "../algorithms/tokenPlace.ts";
import type { CallOptions, Outputs, TrainingEngine, WeightsRef } from "../engines/interface.ts";
import { withToken } from "./nonFiniteToken.ts";
import type { PackedForest } from "./packing.ts";
import { gatherScalars, newOccurrenceScalars, type OccurrenceScalars } from "./slots.ts";
import { placeOf } from "./trajectoryCheck.ts";

/** Positions of the trainable tokens. */
export function trainablePositions({ trainable }: Trajectory): Int32Array {
  const positions = new Int32Array(trainable.reduce((sum, flag) => sum + flag, 0));
  let k = 0;
  trainable.forEach((flag, position) => {
    if (flag === 1) positions[k++] = position;
  });
  return positions;
}

/** What a trajectory brings itself. `policyVersion`: of the weights that are trained. */
export function ownColumns(
  trajectory: Trajectory,
  policyVersion: number,
): SequenceConstants & { readonly locate: Locate } {
  const positions = trainablePositions(trajectory);
  const { rollout, turn, version } = trajectory;
  return {
    mask: new Uint8Array(positions.length).fill(1),
    turn: Float64Array.from(positions, (at) => turn[at] as number),
    staleness: Float64Array.from(positions, (at) => stalenessAt(version[at] as number, policyVersion)),
    ...(rollout === undefined ? {} : { rollout: Float64Array.from(positions, (at) => rollout[at] as number) }),
    locate: (k) => placeOf(trajectory, positions[k] as number),
  };
}

/** Optimizer steps between the weights that sampled a token and those that train it; 0 for a token that nobody sampled. */
function stalenessAt(version: number, policyVersion: number): number {
  return version < 0 ? 0 : policyVersion - version;
}

/** Runs a forward and returns the scalars by occurrence. @throws TRAINING_NON_FINITE */
export async function forwardOccurrences(
  engine: TrainingEngine,
  forest: PackedForest,
  trajectories: readonly Trajectory[],
  want: Outputs,
  weights: WeightsRef,
  options: CallOptions,
): Promise<OccurrenceScalars> {
  const scalars = newOccurrenceScalars(forest.occurrences.count, want);
  if (forest.batches.length === 0) return scalars;
  try {
    for await (const { index, scalars: ofBatch } of engine.forward(forest.batches, want, weights, options)) {
      gatherScalars(forest, trajectories, index, ofBatch, scalars);
    }
  } catch (error) {
    throw await withToken(error, { engine, trajectories, want, weights });
  }
  return scalars;
}

/** Cuts a column over occurrences into one a trajectory. */
export function splitByTrajectory(offsets: Int32Array, column: Float64Array): Float64Array[] {
  return Array.from({ length: offsets.length - 1 }, (_, t) => column.subarray(offsets[t], offsets[t + 1]));
}
