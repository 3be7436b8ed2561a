// The one place where trajectories enter training: lengths, ranges and finiteness are checked here, so that everything
// behind it may trust them. It must never repair a trajectory.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";

/**
 * @throws TRAINING_TRAJECTORY_INVALID naming record, column and token; TRAINING_NON_FINITE naming record (and call, token)
 * for a score, token reward or recorded log-probability that is not finite
 */
export function checkTrajectories(trajectories: readonly Trajectory[]): void {
  const axes = trajectories[0]?.positions?.length ?? 1;
  for (const trajectory of trajectories) {
    checkLengths(trajectory);
    if ((trajectory.positions?.length ?? 1) !== axes) {
      invalid(trajectory, "positions", 0, `has ${trajectory.positions?.length ?? 1} axes, others have ${axes}`);
    }
    if (trajectory.score !== null && !Number.isFinite(trajectory.score)) {
      throw new RollscopeError(
        "TRAINING_NON_FINITE",
        `The score of record ${trajectory.record} is ${trajectory.score}.`,
        {
          next: "Look at the record with `rollscope inspect` and correct the evaluation that gave it this score.",
          at: { record: trajectory.record },
        },
      );
    }
    checkTokens(trajectory);
  }
}

/** Where token `position` of a trajectory came from: record, call and index of the token in its call. */
export function placeOf(trajectory: Trajectory, position: number): { record: string; call: string; token: number } {
  const call = trajectory.call[position] ?? -1;
  if (call < 0) return { record: trajectory.record, call: "input", token: position };
  let first = position;
  while (first > 0 && trajectory.call[first - 1] === call) first--;
  return { record: trajectory.record, call: trajectory.calls[call] ?? "unknown", token: position - first };
}

/** TRAINING_NON_FINITE for a number of one token. `what` completes "The … of record". */
export function nonFinite(what: string, value: number, trajectory: Trajectory, position: number): RollscopeError {
  const at = placeOf(trajectory, position);
  return new RollscopeError(
    "TRAINING_NON_FINITE",
    `The ${what} of record ${at.record}, call ${at.call}, token ${at.token} is ${value}.`,
    { next: "Look at that token with `rollscope inspect`; the step was not taken and the weights are as before.", at },
  );
}

function checkLengths(trajectory: Trajectory): void {
  const n = trajectory.tokens.length;
  const columns: [string, ArrayLike<number> | undefined][] = [
    ["trainable", trajectory.trainable],
    ["call", trajectory.call],
    ["turn", trajectory.turn],
    ["temperature", trajectory.temperature],
    ["version", trajectory.version],
    ["rollout", trajectory.rollout],
    ["tokenRewards", trajectory.tokenRewards],
    ...(trajectory.positions ?? []).map((axis): [string, Int32Array] => ["positions", axis]),
  ];
  for (const [name, column] of columns) {
    if (column !== undefined && column.length !== n) {
      invalid(trajectory, name, 0, `has ${column.length} numbers for ${n} tokens`);
    }
  }
  const { routing } = trajectory;
  if (routing !== undefined && routing.experts.length !== routing.layers * n * routing.choices) {
    invalid(trajectory, "routing", 0, `has ${routing.experts.length} choices, not layers × tokens × choices`);
  }
}

function checkTokens(trajectory: Trajectory): void {
  const { tokens, trainable, temperature, rollout, tokenRewards } = trajectory;
  if (trainable[0] === 1) invalid(trajectory, "trainable", 0, "is 1, but nothing predicts the first token");
  for (let i = 0; i < tokens.length; i++) {
    const t = temperature[i] as number;
    if (!(t >= 0 && t < Number.POSITIVE_INFINITY)) invalid(trajectory, "temperature", i, `is ${t}`);
    if (trainable[i] === 0) continue;
    if (trainable[i] !== 1) invalid(trajectory, "trainable", i, `is ${trainable[i]}; it must be 0 or 1`);
    if (rollout !== undefined && !Number.isFinite(rollout[i])) {
      throw nonFinite("sampled log-probability", rollout[i] as number, trajectory, i);
    }
    if (tokenRewards !== undefined && !Number.isFinite(tokenRewards[i])) {
      throw nonFinite("token reward", tokenRewards[i] as number, trajectory, i);
    }
  }
}

function invalid(trajectory: Trajectory, column: string, position: number, what: string): never {
  throw new RollscopeError(
    "TRAINING_TRAJECTORY_INVALID",
    `Record ${trajectory.record}: \`${column}\` ${what}${position > 0 ? ` at token ${position}` : ""}.`,
    {
      next: "This trajectory was assembled wrongly; report it with the record's id.",
      at: { record: trajectory.record, column, token: position },
    },
  );
}
