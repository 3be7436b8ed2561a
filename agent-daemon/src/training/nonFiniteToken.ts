// Finds the token behind an engine's refusal of a number that is not finite. Engines know batches, not records; so the same
// forward is run again, a trajectory at a time and then by halves. Only ever called after something went wrong.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { Outputs, TrainingEngine, WeightsRef } from "../engines/interface.ts";
import { packingFor, packTrajectories } from "./packing.ts";
import { placeOf } from "./trajectoryCheck.ts";

export interface FailedForward {
  readonly engine: TrainingEngine;
  readonly trajectories: readonly Trajectory[];
  readonly want: Outputs;
  readonly weights: WeightsRef;
}

/** TRAINING_NON_FINITE naming record, call and token where `error` is the engine's ENGINE_NON_FINITE; else `error` itself. */
export async function withToken(error: unknown, failed: FailedForward): Promise<unknown> {
  if (!isNonFinite(error)) return error;
  for (const trajectory of failed.trajectories) {
    const positions = [...trajectory.trainable.keys()].filter((position) => trajectory.trainable[position] === 1);
    if (positions.length === 0 || !(await fails(failed, trajectory, positions))) continue;
    let finite = 0;
    let failing = positions.length;
    while (failing - finite > 1) {
      const middle = (finite + failing) >> 1;
      if (await fails(failed, trajectory, positions.slice(0, middle))) failing = middle;
      else finite = middle;
    }
    const at = placeOf(trajectory, positions[failing - 1] as number);
    return new RollscopeError(
      "TRAINING_NON_FINITE",
      `The engine's numbers for record ${at.record}, call ${at.call}, token ${at.token} are not finite.`,
      { next: error.next, at, cause: error },
    );
  }
  return error;
}

/** Whether the engine refuses a forward in which these tokens of the trajectory are wanted. */
async function fails(
  { engine, want, weights }: FailedForward,
  trajectory: Trajectory,
  positions: readonly number[],
): Promise<boolean> {
  const trainable = new Uint8Array(trajectory.tokens.length);
  for (const position of positions) trainable[position] = 1;
  const { batches } = packTrajectories(
    [{ ...trajectory, trainable }],
    packingFor(engine.info(), "rows", Number.MAX_SAFE_INTEGER),
  );
  try {
    for await (const _scalars of engine.forward(batches, want, weights));
    return false;
  } catch (error) {
    if (isNonFinite(error)) return true;
    throw error;
  }
}

function isNonFinite(error: unknown): error is RollscopeError {
  return error instanceof RollscopeError && error.code === "ENGINE_NON_FINITE";
}
