// When a run evaluates and when it saves: pure functions of the step and the recipe, so that a resumed run does it at the
// same steps.
import type { RecipeConfig } from "../../../protocol/recipe.ts";

type Evaluation = Pick<RecipeConfig["evaluation"], "atStart" | "atEnd" | "everySteps">;

/** Whether the weights after `step` optimizer steps are evaluated; 0 is before the first. */
export function evaluatesAfter(step: number, steps: number, evaluation: Evaluation): boolean {
  if (step === 0) return evaluation.atStart;
  if (step === steps) return evaluation.atEnd;
  return evaluation.everySteps !== null && step % evaluation.everySteps === 0;
}

export function evaluationSteps(steps: number, evaluation: Evaluation): number[] {
  return Array.from({ length: steps + 1 }, (_, step) => step).filter((step) => evaluatesAfter(step, steps, evaluation));
}

/**
 * Whether a checkpoint is due at the end of a window that went from `before` to `after`: a multiple of `every` lies in between,
 * or the run is over. Inside a window none is written, because its records belong to weights that are gone by then.
 */
export function savesAfter(before: number, after: number, steps: number, every: number | null): boolean {
  if (after === steps) return true;
  return every !== null && Math.floor(after / every) > Math.floor(before / every);
}
