// Generalised advantage estimation over the trainable tokens of a trajectory. Knows one trajectory; whitening, the batch.
import type { Column } from "./tokenPlace.ts";

export interface GaeTrajectory {
  readonly mask: Column;
  /** V of each token, read from the state that predicts it. */
  readonly values: Column;
  /** Reward where it stands. */
  readonly tokenRewards?: Column | undefined;
  /** Added to the last trainable token's reward. */
  readonly score: number;
}

export interface GaeResult {
  /** 0 where masked */
  readonly advantages: Float64Array;
  /** A + V, before any whitening; 0 where masked */
  readonly returns: Float64Array;
}

/**
 * Steps are the trainable tokens in order, gaps skipped, so that every turn sees later reward:
 * δ = R + γV′ − V, A = δ + γλA′, V′ = A′ = 0 after the last one.
 */
export function gae(trajectory: GaeTrajectory, gamma: number, lambda: number): GaeResult {
  const { mask, values, tokenRewards } = trajectory;
  const advantages = new Float64Array(mask.length);
  const returns = new Float64Array(mask.length);
  let nextValue = 0;
  let nextAdvantage = 0;
  let score = trajectory.score;
  for (let position = mask.length - 1; position >= 0; position--) {
    if (mask[position] === 0) continue;
    const value = values[position]!;
    const reward = score + (tokenRewards === undefined ? 0 : tokenRewards[position]!);
    score = 0;
    const delta = reward + gamma * nextValue - value;
    nextAdvantage = delta + gamma * lambda * nextAdvantage;
    nextValue = value;
    advantages[position] = nextAdvantage;
    returns[position] = nextAdvantage + value;
  }
  return { advantages, returns };
}

/** (A − mean)/sqrt(var + 1e-8) in place, population variance over all trainable tokens of the batch. Masked stay 0. */
export function whiten(advantages: readonly Float64Array[], masks: readonly Column[]): void {
  let tokens = 0;
  let sum = 0;
  eachTrainable(advantages, masks, (column, position) => {
    tokens += 1;
    sum += column[position]!;
  });
  if (tokens === 0) return;
  const mean = sum / tokens;
  let squares = 0;
  eachTrainable(advantages, masks, (column, position) => {
    squares += (column[position]! - mean) ** 2;
  });
  const scale = Math.sqrt(squares / tokens + 1e-8);
  eachTrainable(advantages, masks, (column, position) => {
    column[position] = (column[position]! - mean) / scale;
  });
}

function eachTrainable(
  columns: readonly Float64Array[],
  masks: readonly Column[],
  visit: (column: Float64Array, position: number) => void,
): void {
  for (const [index, column] of columns.entries()) {
    const mask = masks[index]!;
    for (let position = 0; position < column.length; position++) if (mask[position] !== 0) visit(column, position);
  }
}
