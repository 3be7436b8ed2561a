// What the first Ctrl-C says: where the run will stop, in one line of a narrow terminal. Pure.
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import type { RunProgress } from "./runProgress.ts";

type WindowSize = Pick<RecipeConfig["training"], "stepsPerWindow" | "epochsPerWindow">;

/**
 * The steps of a window share one `old`, which a resume in the middle would compute anew under newer weights. So a run stops
 * between windows only, and where they have several steps it says how long that takes.
 */
export function stopNotice(progress: Pick<RunProgress, "step" | "steps" | "phase">, training: WindowSize): string {
  const size = training.stepsPerWindow * training.epochsPerWindow;
  const { step, steps, phase } = progress;
  const isBetween = step % size === 0 && (phase === "evaluating" || phase === "saving");
  if (isBetween && phase === "evaluating") {
    return `Stopping after this evaluation${step > 0 ? ", and saving" : ""}. Ctrl-C again: at once.`;
  }
  const end = isBetween ? step : Math.min(steps, (Math.floor(step / size) + 1) * size);
  if (size === 1 || isBetween || end === step + 1) {
    return "Stopping after this step, and saving. Ctrl-C again: at once.";
  }
  return `Stopping after step ${end}: its window of ${size} shares one \`old\`. Ctrl-C again: at once.`;
}
