// Rules between keys of a recipe that the schema cannot say: knobs that were written but that nothing reads in this
// configuration, and combinations that cannot run. Which objective keys are read is decided by the algorithms.
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import { nearestName } from "./configKeys.ts";
import type { ConfigProblem } from "./configProblem.ts";
import { parseModelSource } from "./modelSource.ts";

/** A problem before its place is known. */
export type RuleFinding = Pick<ConfigProblem, "code" | "severity" | "path" | "sentence" | "next">;

/** True when a file, a variable or an argument wrote the key, or a key below it. */
export type IsWritten = (path: string) => boolean;

function unread(path: string, because: string): RuleFinding {
  return {
    code: "CONFIG_KEY_UNREAD",
    severity: "error",
    path,
    sentence: `Nothing reads ${path} here: ${because}.`,
    next: "Remove it, or change what makes it unread.",
  };
}

function conflict(path: string, sentence: string, next: string): RuleFinding {
  return { code: "CONFIG_CONFLICT", severity: "error", path, sentence, next };
}

function dataRules({ data, evaluation }: RecipeConfig, isWritten: IsWritten): RuleFinding[] {
  const found: RuleFinding[] = [];
  if (data.heldOut !== null && isWritten("data.heldOutCount"))
    found.push(unread("data.heldOutCount", "data.heldOut names a file"));
  const drawsHeldOut = data.heldOut === null && data.heldOutCount > 0;
  if (isWritten("data.seed") && data.order === "file" && !drawsHeldOut)
    found.push(unread("data.seed", "the order is that of the file and no held-out tasks are drawn"));
  const evaluates = evaluation.atStart || evaluation.atEnd || evaluation.everySteps !== null;
  const hasHeldOut = data.heldOut !== null || drawsHeldOut;
  for (const key of ["everySteps", "atStart", "atEnd", "tasks", "temperature", "maxNewTokens"] as const) {
    if (!isWritten(`evaluation.${key}`)) continue;
    const switches = key === "everySteps" || key === "atStart" || key === "atEnd";
    const isOff = switches && (evaluation[key] === false || evaluation[key] === null);
    if (!hasHeldOut && !isOff) found.push(unread(`evaluation.${key}`, "there are no held-out tasks (data.heldOut)"));
    else if (!evaluates && !switches) found.push(unread(`evaluation.${key}`, "evaluation is switched off"));
  }
  return found;
}

function samplingRules({ sampling, training }: RecipeConfig, isWritten: IsWritten): RuleFinding[] {
  const found: RuleFinding[] = [];
  if (sampling.minGroupSize !== null && sampling.minGroupSize > sampling.groupSize)
    found.push(
      conflict(
        "sampling.minGroupSize",
        `sampling.minGroupSize (${sampling.minGroupSize}) is above sampling.groupSize (${sampling.groupSize}): no group could be trained on.`,
        "Lower it, or enlarge the group.",
      ),
    );
  if (sampling.groupSize === 1 && sampling.refill.limit > 0)
    found.push(unread("sampling.refill.limit", "groups of one have no variance that could be missing"));
  if (sampling.maxNewTokens >= training.tokenBudget)
    found.push(
      conflict(
        "training.tokenBudget",
        `training.tokenBudget (${training.tokenBudget}) cannot hold one answer of sampling.maxNewTokens (${sampling.maxNewTokens}) and its prompt.`,
        "Raise the budget, or lower the limit of new tokens.",
      ),
    );
  if (isWritten("sampling.minGroupSize") && sampling.groupSize === 1 && sampling.minGroupSize === 1)
    found.push(unread("sampling.minGroupSize", "the group has one rollout"));
  return found;
}

function trainingRules({ training }: RecipeConfig, isWritten: IsWritten): RuleFinding[] {
  const found: RuleFinding[] = [];
  if (isWritten("training.decayed") && training.weightDecay === 0)
    found.push(unread("training.decayed", "training.weightDecay is 0"));
  if (isWritten("training.schedule.finalFraction") && training.schedule.kind === "constant")
    found.push(unread("training.schedule.finalFraction", "a constant schedule does not fall"));
  if (training.schedule.warmupSteps > training.steps)
    found.push(
      conflict(
        "training.schedule.warmupSteps",
        `training.schedule.warmupSteps (${training.schedule.warmupSteps}) is above training.steps (${training.steps}): the rate would never reach lr.`,
        "Shorten the warm-up, or train longer.",
      ),
    );
  return found;
}

function placeRules({ model, indexes, recordFields }: RecipeConfig, isWritten: IsWritten): RuleFinding[] {
  const found: RuleFinding[] = [];
  if (isWritten("model.revision") && parseModelSource(model.source).kind !== "huggingface")
    found.push(unread("model.revision", `${model.source} is not a Hugging Face id`));
  for (const [position, name] of indexes.entries()) {
    if (name in recordFields) continue;
    const nearest = nearestName(name, Object.keys(recordFields));
    found.push(
      conflict(
        `indexes.${position}`,
        `indexes names ${name}, which recordFields does not declare.`,
        nearest === null ? "Declare the field in recordFields." : `Did you mean ${nearest}?`,
      ),
    );
  }
  return found;
}

/** All findings about a parsed recipe; an empty list means that every written knob is read. */
export function checkRules(config: RecipeConfig, isWritten: IsWritten): RuleFinding[] {
  return [dataRules, samplingRules, trainingRules, placeRules].flatMap((rule) => rule(config, isWritten));
}
