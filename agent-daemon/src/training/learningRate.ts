// The learning rate of an optimizer step. Counted by steps that were applied, so a skipped step leaves the schedule where it was.
import type { RecipeConfig } from "../../../protocol/recipe.ts";

export type ScheduleConfig = Pick<RecipeConfig["training"], "lr" | "steps" | "schedule">;

/**
 * Rate of the step after `applied` applied ones. Warm-up: lr·(applied+1)/warmupSteps. Then, with p from 0 at the first full step
 * to 1 at the last of `steps` (0 when they are one): constant lr; linear lr·(1 − p·(1−f)); cosine lr·(f + (1−f)·(1+cos πp)/2); f finalFraction.
 */
export function learningRate({ lr, steps, schedule }: ScheduleConfig, applied: number): number {
  const { kind, warmupSteps, finalFraction } = schedule;
  if (applied < warmupSteps) return (lr * (applied + 1)) / warmupSteps;
  const span = steps - 1 - warmupSteps;
  const progress = span <= 0 ? 0 : Math.min(1, (applied - warmupSteps) / span);
  switch (kind) {
    case "constant":
      return lr;
    case "linear":
      return lr * (1 - progress * (1 - finalFraction));
    case "cosine":
      return lr * (finalFraction + ((1 - finalFraction) * (1 + Math.cos(Math.PI * progress))) / 2);
  }
}
