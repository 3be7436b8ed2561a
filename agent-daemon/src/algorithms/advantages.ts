// From scores to the advantage of every token of an optimizer batch, and which trajectories stay in it. The KL as a reward
// enters here, as a constant; value and policy losses do not.
import type { AdvantagesConfig } from "../../../protocol/advantages.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { KlConfig } from "../../../protocol/objective.ts";
import { gae, whiten } from "./gae.ts";
import { groupAdvantages } from "./groupAdvantages.ts";
import { klReward } from "./kl.ts";
import { clamp } from "./logRatio.ts";
import { type Column, type Locate, throwNonFinite } from "./tokenPlace.ts";

/** One trajectory. Columns have the length of `mask` and may hold anything where it is 0. */
export interface AdvantageTrajectory {
  /** Trajectories of one group are samples of one task in one wave. */
  readonly group: string;
  /** null: ungraded. */
  readonly score: number | null;
  readonly mask: Column;
  /** gae: values before the step, read from the state that predicts each token. */
  readonly values?: Column | undefined;
  /** gae: reward of single tokens. */
  readonly tokenRewards?: Column | undefined;
  /** KL as reward: log-probabilities when the window began, and the reference's. */
  readonly old?: Column | undefined;
  readonly ref?: Column | undefined;
  readonly turn?: Column | undefined;
  readonly locate?: Locate | undefined;
}

export interface AdvantageCounts {
  readonly trajectories: number;
  readonly kept: number;
  /** Ungraded: no advantage, not in the batch. */
  readonly ungraded: number;
  /** Left by `dropZero` or `minimal`. */
  readonly dropped: number;
  /** Groups with a graded trajectory. */
  readonly groups: number;
  /** Of those, groups whose every advantage is 0: they teach nothing. */
  readonly zeroAdvantageGroups: number;
}

export interface AdvantageResult {
  /** By trajectory, one number a token, 0 where masked; null when ungraded. */
  readonly advantages: (Float64Array | null)[];
  /** gae: the critic's targets; null otherwise, and for ungraded trajectories. */
  readonly returns: (Float64Array | null)[];
  /** Indices of the trajectories that stay in the optimizer batch, in order; denominators count these alone. */
  readonly kept: number[];
  readonly counts: AdvantageCounts;
  /** zeroAdvantageGroups / groups; null without a graded group. */
  readonly zeroAdvantageGroupFraction: number | null;
}

/**
 * @param kl the objective's `kl` block; enters only with `placement: reward`
 * @throws ADVANTAGES_COLUMN_MISSING, ALGORITHM_NON_FINITE
 */
export function computeAdvantages(
  config: AdvantagesConfig,
  trajectories: readonly AdvantageTrajectory[],
  kl?: KlConfig | undefined,
): AdvantageResult {
  for (const [index, trajectory] of trajectories.entries()) checkScore(trajectory, index);
  const coef = kl?.placement === "reward" ? kl.coef : null;
  const klRewards = trajectories.map((trajectory, index) =>
    coef === null || trajectory.score === null ? null : klRewardsOf(coef, trajectory, index),
  );
  const { advantages, returns } =
    config.estimator === "gae"
      ? gaeAdvantages(config, trajectories, klRewards)
      : { advantages: scoreAdvantages(config, trajectories, klRewards), returns: trajectories.map(() => null) };
  const groups = groupCounts(trajectories, advantages);
  if (config.clip !== undefined) clipAll(advantages, config.clip);
  const graded = trajectories.flatMap((_, index) => (advantages[index] === null ? [] : [index]));
  const kept = graded.filter((index) => stays(config, advantages[index]!, trajectories[index]!.mask));
  return {
    advantages,
    returns,
    kept,
    counts: {
      trajectories: trajectories.length,
      kept: kept.length,
      ungraded: trajectories.length - graded.length,
      dropped: graded.length - kept.length,
      ...groups,
    },
    zeroAdvantageGroupFraction: groups.groups === 0 ? null : groups.zeroAdvantageGroups / groups.groups,
  };
}

/** One advantage a trajectory, from its score and the total of its KL rewards, on each of its trainable tokens. */
function scoreAdvantages(
  config: AdvantagesConfig,
  trajectories: readonly AdvantageTrajectory[],
  klRewards: readonly (Float64Array | null)[],
): (Float64Array | null)[] {
  const { estimator } = config;
  const scores = trajectories.map(({ score }, index) => {
    const total = klRewards[index]?.reduce((sum, reward) => sum + reward, 0) ?? 0;
    return score === null ? null : score + total;
  });
  const advantageOf = [...scores];
  if (estimator !== "none" && estimator !== "gae") {
    for (const members of compared(estimator, trajectories)) {
      const group = groupAdvantages(
        estimator,
        members.map((index) => scores[index] ?? null),
      );
      for (const [i, index] of members.entries()) advantageOf[index] = group[i] ?? null;
    }
  }
  return trajectories.map(({ mask }, index) => {
    const advantage = advantageOf[index] ?? null;
    return advantage === null ? null : Float64Array.from(mask, (trainable) => (trainable === 0 ? 0 : advantage));
  });
}

/** Indices of the trajectories whose scores are compared with each other: a group's, or the whole batch's. */
function compared(estimator: AdvantagesConfig["estimator"], trajectories: readonly AdvantageTrajectory[]): number[][] {
  if (estimator === "batch_mean") return [trajectories.map((_, index) => index)];
  return [...membersOf(trajectories).values()];
}

function membersOf(trajectories: readonly AdvantageTrajectory[]): Map<string, number[]> {
  const groups = new Map<string, number[]>();
  for (const [index, { group }] of trajectories.entries()) {
    const members = groups.get(group);
    if (members === undefined) groups.set(group, [index]);
    else members.push(index);
  }
  return groups;
}

/** Each token its own advantage, from values and rewards; the KL rewards enter δ where they stand. */
function gaeAdvantages(
  config: AdvantagesConfig,
  trajectories: readonly AdvantageTrajectory[],
  klRewards: readonly (Float64Array | null)[],
): Pick<AdvantageResult, "advantages" | "returns"> {
  const { gamma, lambda } = config;
  if (gamma === undefined || lambda === undefined) {
    throw new RollscopeError("ADVANTAGES_KEY_MISSING", "Estimator gae needs advantages.gamma and advantages.lambda.", {
      next: "Set both.",
      at: { key: gamma === undefined ? "advantages.gamma" : "advantages.lambda" },
    });
  }
  const results = trajectories.map((trajectory, index) => {
    if (trajectory.score === null) return null;
    const values = column(trajectory, index, "values");
    const own = trajectory.tokenRewards === undefined ? undefined : column(trajectory, index, "tokenRewards");
    const ofKl = klRewards[index];
    const tokenRewards =
      ofKl == null
        ? own
        : ofKl.map((reward, position) => (trajectory.mask[position] === 0 ? 0 : reward + (own?.[position] ?? 0)));
    return gae({ mask: trajectory.mask, values, tokenRewards, score: trajectory.score }, gamma, lambda);
  });
  const advantages = results.map((result) => result?.advantages ?? null);
  if (config.whiten) {
    const graded = trajectories.flatMap((_, index) => (results[index] === null ? [] : [index]));
    whiten(
      graded.map((index) => advantages[index]!),
      graded.map((index) => trajectories[index]!.mask),
    );
  }
  return { advantages, returns: results.map((result) => result?.returns ?? null) };
}

/** −coef·cl20(old − ref) of each trainable token, 0 where masked. */
function klRewardsOf(coef: number, trajectory: AdvantageTrajectory, index: number): Float64Array {
  const old = column(trajectory, index, "old");
  const ref = column(trajectory, index, "ref");
  return Float64Array.from(trajectory.mask, (trainable, position) =>
    trainable === 0 ? 0 : klReward(coef, old[position]!, ref[position]!),
  );
}

function clipAll(advantages: readonly (Float64Array | null)[], clip: number): void {
  for (const column of advantages)
    column?.forEach((advantage, position) => {
      column[position] = clamp(advantage, -clip, clip);
    });
}

/** dropZero: some |A| is not 0. minimal m: some |A| is at least m. Over trainable tokens. */
function stays(config: AdvantagesConfig, advantages: Float64Array, mask: Column): boolean {
  const { dropZero, minimal } = config;
  if (!dropZero && minimal === undefined) return true;
  const largest = largestAdvantage(advantages, mask);
  return !(dropZero && largest === 0) && !(minimal !== undefined && largest < minimal);
}

function largestAdvantage(advantages: Float64Array, mask: Column): number {
  let largest = 0;
  for (let position = 0; position < advantages.length; position++) {
    if (mask[position] !== 0) largest = Math.max(largest, Math.abs(advantages[position]!));
  }
  return largest;
}

function groupCounts(
  trajectories: readonly AdvantageTrajectory[],
  advantages: readonly (Float64Array | null)[],
): Pick<AdvantageCounts, "groups" | "zeroAdvantageGroups"> {
  let groups = 0;
  let zeroAdvantageGroups = 0;
  for (const members of membersOf(trajectories).values()) {
    const graded = members.filter((index) => advantages[index] !== null);
    if (graded.length === 0) continue;
    groups += 1;
    if (graded.every((index) => largestAdvantage(advantages[index]!, trajectories[index]!.mask) === 0)) {
      zeroAdvantageGroups += 1;
    }
  }
  return { groups, zeroAdvantageGroups };
}

/** A score stands on the last trainable token, so that one is named when it is not finite. */
function checkScore(trajectory: AdvantageTrajectory, index: number): void {
  if (trajectory.score === null || Number.isFinite(trajectory.score)) return;
  const last = Array.from(trajectory.mask).lastIndexOf(1);
  throwNonFinite("score", trajectory.score, trajectory, index, Math.max(last, 0));
}

const columnLabels = {
  values: "value",
  tokenRewards: "token reward",
  old: "old log-probability",
  ref: "reference log-probability",
} as const;

/** A column that is read: there, of the right length, finite where trainable. */
function column(trajectory: AdvantageTrajectory, index: number, name: keyof typeof columnLabels): Column {
  const numbers = trajectory[name];
  if (numbers === undefined || numbers.length !== trajectory.mask.length) {
    throw new RollscopeError(
      "ADVANTAGES_COLUMN_MISSING",
      `Trajectory ${index} needs \`${name}\` for each of its ${trajectory.mask.length} tokens and has ${numbers?.length ?? 0}.`,
      {
        next: `Give \`${name}\`, or change the configuration so that it is not read.`,
        at: { trajectory: index, column: name },
      },
    );
  }
  for (let position = 0; position < numbers.length; position++) {
    const value = numbers[position]!;
    if (trajectory.mask[position] !== 0 && !Number.isFinite(value)) {
      throwNonFinite(columnLabels[name], value, trajectory, index, position);
    }
  }
  return numbers;
}
