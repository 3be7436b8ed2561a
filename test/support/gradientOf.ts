// The gradient of one optimizer batch under one way of packing it, for tests that compare ways. Old, rollout and reference
// log-probabilities come from the reference model with other weights, so that ratios are real ones.

import type { TrainingEngine } from "../../agent-daemon/src/engines/interface.ts";
import {
  accumulateObjective,
  type ObjectiveChoice,
  type OptimizerBatch,
  prepareBatch,
} from "../../agent-daemon/src/training/accumulateStep.ts";
import {
  forwardOccurrences,
  ownColumns,
  splitByTrajectory,
  trainablePositions,
} from "../../agent-daemon/src/training/occurrenceColumns.ts";
import { type PackedForest, packTrajectories } from "../../agent-daemon/src/training/packing.ts";
import { StepTimer } from "../../agent-daemon/src/training/stepTimer.ts";
import type { Trajectory } from "../../protocol/trajectory.ts";

const cost = { perToken: 1, perPair: 0.01 };

export interface Ways {
  /** Log-probabilities of each trajectory's trainable tokens. */
  readonly old: readonly Float64Array[];
  readonly ref: readonly Float64Array[];
}

/** Advantage of each trajectory: its score. */
export function batchOf(trajectories: readonly Trajectory[], ways: Ways | null): OptimizerBatch {
  return {
    trajectories,
    oldIsCurrent: ways === null,
    constants: trajectories.map((trajectory, t) => ({
      ...ownColumns(trajectory, 3),
      advantage: new Float64Array(trainablePositions(trajectory).length).fill(trajectory.score ?? 0),
      ...(ways === null ? {} : { old: ways.old[t], ref: ways.ref[t] }),
    })),
  };
}

export async function logprobsOf(engine: TrainingEngine, trajectories: readonly Trajectory[]): Promise<Float64Array[]> {
  const forest = packTrajectories(trajectories, { mode: "flat", budget: 100_000, replicas: 1, cost });
  const want = { logprob: true, entropy: false, value: false };
  const { logprob } = await forwardOccurrences(engine, forest, trajectories, want, { kind: "policy" }, {});
  return splitByTrajectory(forest.occurrences.offsets, logprob!);
}

/** Accumulates one batch, packed as given, and returns its loss; the gradient is left in the engine. */
export async function accumulateAs(
  engine: TrainingEngine,
  choice: ObjectiveChoice,
  batch: OptimizerBatch,
  forest: PackedForest,
): Promise<number> {
  const objective = prepareBatch(choice, batch);
  const { timed } = new StepTimer(() => 0);
  const { result } = await accumulateObjective(engine, objective, forest, batch, timed, {});
  return result.loss;
}

/** Flat; packed; merged into as few batches as the budget allows; merged and cut into about `cuts` batches. */
export function packings(trajectories: readonly Trajectory[], cuts: number): Record<string, PackedForest> {
  const longest = Math.max(1, ...trajectories.map(({ trainable }) => trainable.lastIndexOf(1) + 1));
  const pack = (mode: "flat" | "packed" | "tree", budget: number) =>
    packTrajectories(trajectories, { mode, budget, replicas: 1, cost });
  let cut = pack("tree", 100_000);
  for (let budget = cut.packedTokens; budget >= longest && cut.batches.length < cuts; budget--)
    cut = pack("tree", budget);
  return {
    flat: pack("flat", longest),
    packed: pack("packed", 100_000),
    packedTightly: pack("packed", longest),
    tree: pack("tree", 100_000),
    cut,
  };
}
