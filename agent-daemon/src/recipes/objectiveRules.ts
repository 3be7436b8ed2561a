// What `check` says of the objective and advantages blocks: written keys that nothing reads, and what the algorithms say of
// the values. Who reads what and what goes together belongs to the algorithms; this file only asks them.
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import { judgeObjective, type ObjectiveFinding } from "../algorithms/checkObjective.ts";
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

/** A refusal stops the run; warnings and notes do not. */
function judged({ level, path, message }: ObjectiveFinding): RuleFinding {
  const key = path.join(".");
  const said = { path: key, sentence: `${key}: ${message}.` };
  return level === "refusal"
    ? { ...said, code: "CONFIG_CONFLICT", severity: "error", next: "Remove the key, or change the other one." }
    : { ...said, code: "CONFIG_ADVICE", severity: "note", next: "Nothing needs to be done if it is meant." };
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
    ...judgeObjective(objective, advantages).map(judged),
  ];
}
