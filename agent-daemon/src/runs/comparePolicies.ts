// Sampler against trainer before any update: both have the same weights then, so their log-probabilities of the sampled
// tokens must agree. A run whose two halves disagree would learn from wrong ratios, so it stops and says by how much.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import { type MismatchReport, mismatchReport } from "../algorithms/mismatch.ts";
import type { CallOptions, TrainingEngine } from "../engines/interface.ts";
import {
  forwardOccurrences,
  ownColumns,
  splitByTrajectory,
  trainablePositions,
} from "../training/occurrenceColumns.ts";
import { packingFor, packTrajectories } from "../training/packing.ts";

export interface Comparison {
  readonly trajectories: readonly Trajectory[];
  readonly policyVersion: number;
  readonly packing: "tree" | "rows";
  readonly tokenBudget: number;
}

/** Runs one forward; nothing is changed. */
export async function comparePolicies(
  engine: TrainingEngine,
  comparison: Comparison,
  options: CallOptions,
): Promise<MismatchReport> {
  const trajectories = comparison.trajectories.filter((trajectory) => trajectory.rollout !== undefined);
  const packing = packingFor(engine.info(), comparison.packing, comparison.tokenBudget);
  const forest = packTrajectories(trajectories, packing);
  const want = { logprob: true, entropy: false, value: false };
  const { logprob } = await forwardOccurrences(engine, forest, trajectories, want, { kind: "policy" }, options);
  const trainer = splitByTrajectory(forest.occurrences.offsets, logprob ?? new Float64Array(forest.occurrences.count));
  const sequences = trajectories.map((trajectory, index) => {
    const own = ownColumns(trajectory, comparison.policyVersion);
    return {
      mask: own.mask ?? new Uint8Array(0),
      trainer: trainer[index] ?? new Float64Array(0),
      rollout: own.rollout ?? new Float64Array(0),
      version: Float64Array.from(trainablePositions(trajectory), (at) => trajectory.version[at] as number),
      locate: own.locate,
    };
  });
  return mismatchReport(sequences, { version: comparison.policyVersion });
}

/** @throws SAMPLING_MISMATCH when mean |d| is above `limit`; `limit` null never throws */
export function requireAgreement(report: MismatchReport, limit: number | null): void {
  const mean = report.absLogpDiffMean;
  if (limit === null || mean === null || mean <= limit) return;
  const worst = report.worst[0];
  const place = worst?.place;
  throw new RollscopeError(
    "SAMPLING_MISMATCH",
    `Before any update the sampler's and the trainer's log-probabilities differ by ${mean.toExponential(2)} on average (largest ${(report.absLogpDiffMax ?? 0).toExponential(2)}), which is above ${limit}.`,
    {
      next: "Tokens, temperature, weights or packing differ between the two. Look at the worst token with `rollscope inspect`, or raise training.mismatchLimit when the difference is expected.",
      at: place === null || place === undefined ? {} : { record: place.record, call: place.call, token: place.token },
    },
  );
}
