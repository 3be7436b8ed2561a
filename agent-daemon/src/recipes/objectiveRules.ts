// Which written keys of the objective and advantages blocks nothing reads. The table of who reads what belongs to the
// algorithms; this file only compares it with what was written.
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import { readAdvantageKnobs, readKnobs } from "../algorithms/objectiveReads.ts";
import type { IsWritten, RuleFinding } from "./configRules.ts";

/** Dotted paths of the leaves of a block; lists are leaves. */
function leavesOf(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [path.join(".")];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}

function unreadKeys(
  block: "objective" | "advantages",
  settings: object,
  read: ReadonlySet<string>,
  because: string,
  isWritten: IsWritten,
): RuleFinding[] {
  return leavesOf(settings)
    .filter((key) => isWritten(`${block}.${key}`))
    .filter((key) => !key.split(".").some((_, depth, keys) => read.has(keys.slice(0, depth + 1).join("."))))
    .map((key) => ({
      code: "CONFIG_KEY_UNREAD",
      severity: "error",
      path: `${block}.${key}`,
      sentence: `Nothing reads ${block}.${key} here: ${because}.`,
      next: "Remove it, or choose an objective that reads it.",
    }));
}

function describeObjective({ kind, aggregation, kl }: RecipeConfig["objective"]): string {
  return `kind ${kind} with aggregation ${aggregation}${kl === undefined ? "" : ` and KL placement ${kl.placement}`} does not`;
}

/** Findings about the objective and advantages blocks. */
export function checkObjectiveRules({ objective, advantages }: RecipeConfig, isWritten: IsWritten): RuleFinding[] {
  return [
    ...unreadKeys("objective", objective, readKnobs(objective), describeObjective(objective), isWritten),
    ...unreadKeys(
      "advantages",
      advantages,
      readAdvantageKnobs(advantages),
      `estimator ${advantages.estimator} does not`,
      isWritten,
    ),
  ];
}
