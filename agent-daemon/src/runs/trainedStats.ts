// What training found out about each record, for queries: how stale its tokens were, and how far the trainer's
// log-probabilities lay from the sampler's under the version that sampled them. Pure.
import type { RecordStats } from "../../../protocol/record.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { RecordUpdate } from "../store/interface.ts";
import { trainablePositions } from "../training/occurrenceColumns.ts";
import type { TrainingRow } from "../training/trainingRows.ts";

/**
 * @param windowVersion policy version when the window began: `old` is the trainer's log-probability under it
 * @param stats of the window's records; is brought up to date
 */
export function trainedStats(
  rows: readonly TrainingRow[],
  trajectories: readonly Trajectory[],
  windowVersion: number,
  stats: Map<string, RecordStats>,
): RecordUpdate[] {
  const byLeaf = new Map(
    trajectories.map((trajectory) => [leafKey(trajectory.record, trajectory.calls.at(-1)), trajectory]),
  );
  const changed = new Set<string>();
  for (const row of rows) {
    const trajectory = byLeaf.get(leafKey(row.record, row.leaf));
    const before = stats.get(row.record);
    if (trajectory === undefined || before === undefined) continue;
    stats.set(row.record, {
      ...before,
      staleness: largest(before.staleness, row.columns.staleness ?? []),
      mismatch: largest(before.mismatch, differences(row, trajectory, windowVersion)),
    });
    changed.add(row.record);
  }
  return [...changed].flatMap((id) => {
    const now = stats.get(id);
    return now === undefined ? [] : [{ id, set: { stats: now } }];
  });
}

function leafKey(record: string, leaf: string | undefined): string {
  return `${record} ${leaf ?? record}`;
}

/** |old − rollout| of the tokens that the window's version sampled. */
function differences(row: TrainingRow, { rollout, version, ...rest }: Trajectory, windowVersion: number): number[] {
  const { old } = row.columns;
  if (old === undefined || rollout === undefined) return [];
  return Array.from(trainablePositions({ rollout, version, ...rest }), (position, k) => ({ position, k }))
    .filter(({ position }) => version[position] === windowVersion)
    .map(({ position, k }) => Math.abs((old[k] as number) - (rollout[position] as number)));
}

function largest(before: number | null, values: Iterable<number>): number | null {
  let most = before;
  for (const value of values) if (most === null || value > most) most = value;
  return most;
}
