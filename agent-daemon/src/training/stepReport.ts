// What a step leaves behind besides weights: its ledger entries, the per-token rows of its trajectories, and the comparison of
// trainer and sampler. Reads the step's numbers; changes none.
import type { LedgerEntry } from "../../../protocol/step.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import { type MismatchReport, mismatchReport } from "../algorithms/mismatch.ts";
import type { Accumulated, OptimizerBatch } from "./accumulateStep.ts";
import { splitByTrajectory, trainablePositions } from "./occurrenceColumns.ts";
import type { PackedForest } from "./packing.ts";
import { type TrainingRow, trainingRow } from "./trainingRows.ts";
import type { PlannedStep } from "./windowPlan.ts";

/** One entry a planned record, also for one of which nothing was trained. */
export function ledgerEntries(planned: PlannedStep, trained: readonly Trajectory[]): LedgerEntry[] {
  const used = new Map<string, { calls: Set<string>; tokens: number }>();
  for (const trajectory of trained) {
    const entry = used.get(trajectory.record) ?? { calls: new Set(), tokens: 0 };
    used.set(trajectory.record, entry);
    for (const position of trainablePositions(trajectory)) {
      entry.calls.add(trajectory.calls[trajectory.call[position] as number] ?? trajectory.record);
      entry.tokens += 1;
    }
  }
  return planned.consumption.map(({ record, pass }) => {
    const entry = used.get(record);
    return { record, pass, calls: entry?.calls.size ?? 0, tokens: entry?.tokens ?? 0 };
  });
}

/** Rows of a batch. `criticValues`: of a critic with weights of its own, by occurrence. */
export function rowsOf(
  batch: OptimizerBatch,
  place: { readonly window: number; readonly pass: number },
  forest: PackedForest,
  done: Accumulated,
  criticValues: Float64Array | undefined,
): TrainingRow[] {
  const { offsets } = forest.occurrences;
  const split = (column: Float64Array | null | undefined) =>
    column == null ? null : splitByTrajectory(offsets, column);
  const logprobs = split(done.scalars.logprob) ?? [];
  const entropies = split(done.scalars.entropy);
  const values = split(criticValues ?? done.scalars.value);
  const corrections = split(done.correction);
  return batch.trajectories.flatMap((trajectory, t) => {
    const logprob = logprobs[t];
    const constants = batch.constants[t];
    if (logprob === undefined || constants === undefined || logprob.length === 0) return [];
    return [
      trainingRow(trajectory, place, constants, {
        logprob,
        entropy: entropies?.[t],
        value: values?.[t],
        correction: corrections?.[t],
      }),
    ];
  });
}

/**
 * Trainer against sampler over the tokens that `version`, the policy of the window's beginning, sampled: the trainer's side is
 * `old`, or this forward where the two are one. null when no trajectory was sampled.
 */
export function compareWithSampler(
  batch: OptimizerBatch,
  version: number,
  forest: PackedForest,
  done: Accumulated,
): MismatchReport | null {
  const current = splitByTrajectory(forest.occurrences.offsets, done.scalars.logprob as Float64Array);
  const sequences = batch.trajectories.flatMap((trajectory, t) => {
    const constants = batch.constants[t];
    const trainer = constants?.old ?? current[t];
    if (constants?.rollout === undefined || trainer === undefined) return [];
    const versions = Int32Array.from(trainablePositions(trajectory), (at) => trajectory.version[at] as number);
    const { mask, rollout, locate } = constants;
    return [{ mask, trainer, rollout, version: versions, locate }];
  });
  return sequences.length === 0 ? null : mismatchReport(sequences, { version });
}
