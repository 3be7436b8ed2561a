// Advantages of the trajectories of one optimizer step. A score belongs to a record: the trajectories of one record (its
// branches) are one sample to the estimators, their tokens following each other, and enter a group's statistics once.
import type { AdvantagesConfig } from "../../../protocol/advantages.ts";
import type { KlConfig } from "../../../protocol/objective.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import { type AdvantageCounts, type AdvantageTrajectory, computeAdvantages } from "../algorithms/advantages.ts";
import { trainablePositions } from "./occurrenceColumns.ts";
import { placeOf } from "./trajectoryCheck.ts";
import { groupKey } from "./windowPlan.ts";

/** By trajectory, over its trainable tokens; from forwards when the window began. */
export interface WindowColumns {
  readonly old?: readonly Float64Array[];
  readonly reference?: readonly Float64Array[];
  readonly value?: readonly Float64Array[];
}

export interface StepAdvantages {
  /** Indices of the trajectories that stay in the optimizer batch, in order. */
  readonly kept: readonly number[];
  /** By trajectory; null where it has none. */
  readonly advantages: readonly (Float64Array | null)[];
  readonly returns: readonly (Float64Array | null)[];
  /** Counts records, not trajectories. */
  readonly counts: AdvantageCounts;
}

/** @throws as computeAdvantages */
export function stepAdvantages(
  config: AdvantagesConfig,
  kl: KlConfig | undefined,
  trajectories: readonly Trajectory[],
  columns: WindowColumns,
): StepAdvantages {
  const records = membersOfRecords(trajectories);
  const samples = records.map((members) => sampleOf(trajectories, members, columns));
  const result = computeAdvantages(config, samples, kl);
  const advantages: (Float64Array | null)[] = trajectories.map(() => null);
  const returns: (Float64Array | null)[] = trajectories.map(() => null);
  records.forEach((members, record) => {
    let start = 0;
    for (const t of members) {
      const end = start + trainablePositions(trajectories[t] as Trajectory).length;
      advantages[t] = result.advantages[record]?.slice(start, end) ?? null;
      returns[t] = result.returns[record]?.slice(start, end) ?? null;
      start = end;
    }
  });
  const kept = result.kept.flatMap((record) => records[record] as number[]).sort((a, b) => a - b);
  return { kept, advantages, returns, counts: result.counts };
}

function membersOfRecords(trajectories: readonly Trajectory[]): number[][] {
  const records = new Map<string, number[]>();
  trajectories.forEach(({ record }, index) => {
    const members = records.get(record);
    if (members === undefined) records.set(record, [index]);
    else members.push(index);
  });
  return [...records.values()];
}

function sampleOf(
  trajectories: readonly Trajectory[],
  members: readonly number[],
  { old, reference, value }: WindowColumns,
): AdvantageTrajectory {
  const first = trajectories[members[0] as number] as Trajectory;
  const places = members.flatMap((t) => {
    const trajectory = trajectories[t] as Trajectory;
    return Array.from(trainablePositions(trajectory), (position) => ({ trajectory, position }));
  });
  const joined = (columns: readonly Float64Array[] | undefined) =>
    columns === undefined ? undefined : Float64Array.from(members.flatMap((t) => [...(columns[t] as Float64Array)]));
  const hasRewards = places.some(({ trajectory }) => trajectory.tokenRewards !== undefined);
  return {
    group: groupKey(first.group, first.record),
    score: first.score,
    mask: new Uint8Array(places.length).fill(1),
    values: joined(value),
    old: joined(old),
    ref: joined(reference),
    tokenRewards: hasRewards
      ? Float64Array.from(places, ({ trajectory, position }) => trajectory.tokenRewards?.[position] ?? 0)
      : undefined,
    locate: (k) => {
      const place = places[k];
      if (place === undefined) return { record: first.record, call: first.calls.at(-1) ?? "none", token: 0 };
      return placeOf(place.trajectory, place.position);
    },
  };
}
