// Advantages of the scores of one group (or of a batch): null is an ungraded score, excluded and never 0.
// Differences are taken from the first score, so that equal scores give exactly 0.
import type { AdvantageEstimator } from "../../../protocol/advantages.ts";

export type GroupEstimator = Exclude<AdvantageEstimator, "gae" | "none">;

/** One advantage a score, null where ungraded. `batch_mean` wants all scores of the batch, the others one group's. */
export function groupAdvantages(estimator: GroupEstimator, scores: readonly (number | null)[]): (number | null)[] {
  const graded = scores.filter((score) => score !== null);
  const origin = graded[0] ?? 0;
  const count = graded.length;
  const sum = graded.reduce((total, score) => total + (score - origin), 0);
  const mean = count === 0 ? 0 : sum / count;
  const advantageOf = ((): ((difference: number) => number) => {
    if (count < 2) return () => 0;
    switch (estimator) {
      // (R − mean)/(std + 1e-6), std with n−1; all 0 when std < 1e-8
      case "group_normalized": {
        const std = Math.sqrt(graded.reduce((total, score) => total + (score - origin - mean) ** 2, 0) / (count - 1));
        return std < 1e-8 ? () => 0 : (difference) => (difference - mean) / (std + 1e-6);
      }
      // R − mean
      case "group_mean":
      case "batch_mean":
        return (difference) => difference - mean;
      // R − mean of the others
      case "leave_one_out":
        return (difference) => difference - (sum - difference) / (count - 1);
    }
  })();
  return scores.map((score) => (score === null ? null : advantageOf(score - origin)));
}
