// Names of the files that `save` adds to a Hugging Face folder, and the small state file among them.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";

export const weightsFile = "model.safetensors";
export const valueHeadFile = "value_head.safetensors";
export const firstMomentFile = "optimizer_first_moment.safetensors";
export const secondMomentFile = "optimizer_second_moment.safetensors";
export const savedStateFile = "rollscope_state.json";

const savedState = z.strictObject({
  /** Optimizer steps behind the weights. */
  version: z.int().min(0),
  /** Steps behind the optimizer's moments; null when the moments were not saved. */
  optimizerSteps: z.int().min(0).nullable(),
});
export type SavedState = z.infer<typeof savedState>;

/** undefined for a folder that some other program wrote. Errors: ENGINE_FILE_INVALID. */
export function readSavedState(dir: string): SavedState | undefined {
  const file = join(dir, savedStateFile);
  if (!existsSync(file)) return undefined;
  try {
    return savedState.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (cause) {
    throw new RollscopeError("ENGINE_FILE_INVALID", `${file} is not a state of the engine.`, {
      next: "Use another checkpoint; this one is damaged.",
      at: { file },
      cause,
    });
  }
}
