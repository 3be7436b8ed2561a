// Takes the tokens of calls that were cut off by their token limit out of training. They leave the denominators too, because
// a token that is not trainable is not there for any of them.
import type { Trajectory } from "../../../protocol/trajectory.ts";

/** @param cut ids of the calls that were cut off */
export function maskTruncated(trajectory: Trajectory, cut: ReadonlySet<string>): Trajectory {
  if (!trajectory.calls.some((call) => cut.has(call))) return trajectory;
  const trainable = trajectory.trainable.map((flag, position) => {
    const call = trajectory.calls[trajectory.call[position] ?? -1];
    return call !== undefined && cut.has(call) ? 0 : flag;
  });
  return { ...trajectory, trainable };
}
