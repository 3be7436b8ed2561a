// Which trajectories each optimizer step of a window consumes, decided before anything is computed: the plan that is written
// down first. Groups stay whole, so that a step can compare a group's scores.
import type { Consumption } from "../../../protocol/step.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";

export interface PlannedStep {
  /** Pass over the window, from 0. */
  readonly pass: number;
  /** Indices into the window's trajectories. */
  readonly trajectories: readonly number[];
  /** Every record of them, once. */
  readonly consumption: readonly Consumption[];
}

export interface PlanOptions {
  readonly stepsPerWindow: number;
  readonly epochsPerWindow: number;
  readonly seed: number;
  /** Number of the window; with the seed it names the order of later passes. */
  readonly window: number;
}

/**
 * stepsPerWindow × epochsPerWindow steps. The first pass takes groups in the order given, later ones in an order of their own.
 * Step sizes differ by at most one group; with fewer groups than steps the last steps are empty and will be skipped.
 */
export function planWindow(trajectories: readonly Trajectory[], options: PlanOptions): PlannedStep[] {
  const groups = groupsOf(trajectories);
  const { stepsPerWindow, epochsPerWindow, seed, window } = options;
  return Array.from({ length: epochsPerWindow }, (_, pass) => {
    const order = pass === 0 ? groups : shuffled(groups, hashOf(seed, window, pass));
    return Array.from({ length: stepsPerWindow }, (_, step): PlannedStep => {
      const from = Math.ceil((step * order.length) / stepsPerWindow);
      const to = Math.ceil(((step + 1) * order.length) / stepsPerWindow);
      const members = order.slice(from, to).flat();
      const records = new Set(members.map((index) => (trajectories[index] as Trajectory).record));
      return { pass, trajectories: members, consumption: [...records].map((record) => ({ record, pass })) };
    });
  }).flat();
}

/** Trajectories of one group, or of one record that has no group. */
function groupsOf(trajectories: readonly Trajectory[]): number[][] {
  const groups = new Map<string, number[]>();
  trajectories.forEach(({ group, record }, index) => {
    const key = groupKey(group, record);
    const members = groups.get(key);
    if (members === undefined) groups.set(key, [index]);
    else members.push(index);
  });
  return [...groups.values()];
}

/** A group's name that no record's name can equal. */
export function groupKey(group: string | null, record: string): string {
  return group === null ? `record ${record}` : `group ${group}`;
}

/** Fisher–Yates with numbers counted from a hash, the same on every machine. */
function shuffled<T>(items: readonly T[], stream: number): T[] {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = hashOf(stream, i, 0) % (i + 1);
    [result[i], result[j]] = [result[j] as T, result[i] as T];
  }
  return result;
}

/** 32 bits that change with every argument (the finaliser of MurmurHash3 between them). */
function hashOf(...numbers: readonly number[]): number {
  let hash = 0x9e3779b9;
  for (const number of numbers) {
    for (const half of [number >>> 0, Math.floor(number / 4294967296) >>> 0]) {
      hash = Math.imul(hash ^ half, 0x85ebca6b);
      hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
      hash ^= hash >>> 16;
    }
  }
  return hash >>> 0;
}
