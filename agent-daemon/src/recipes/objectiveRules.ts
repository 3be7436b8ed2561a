// What `check` says of the objective and advantages blocks, in the recipe's terms: a code, a severity, what to do. Who reads
// what and what goes together belongs to the algorithms; this file only asks them.
import type { ObjectiveDefinition } from "../../../protocol/objectiveDefinition.ts";
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import { definitionFindings, judgeObjective, type ObjectiveFinding, unreadKeys } from "../algorithms/checkObjective.ts";
import type { IsWritten, RuleFinding } from "./configRules.ts";

type Blocks = Pick<RecipeConfig, "objective" | "advantages">;

function sentence({ path, message }: ObjectiveFinding): Pick<RuleFinding, "path" | "sentence"> {
  const key = path.join(".");
  return { path: key, sentence: message.includes(key) ? `${capital(message)}.` : `${key}: ${message}.` };
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** A refusal stops the run; warnings and notes do not. */
function judged(finding: ObjectiveFinding): RuleFinding {
  return finding.level === "refusal"
    ? {
        ...sentence(finding),
        code: "CONFIG_CONFLICT",
        severity: "error",
        next: "Remove the key, or change the other one.",
      }
    : {
        ...sentence(finding),
        code: "CONFIG_ADVICE",
        severity: "note",
        next: "Nothing needs to be done if it is meant.",
      };
}

function unread(finding: ObjectiveFinding): RuleFinding {
  return {
    ...sentence(finding),
    code: "CONFIG_KEY_UNREAD",
    severity: "error",
    next: "Remove it, or choose an objective that reads it.",
  };
}

/** Findings about the objective and advantages blocks, whatever the recipe's code is. */
export function checkObjectiveRules({ objective, advantages }: Blocks, isWritten: IsWritten): RuleFinding[] {
  return [
    ...unreadKeys(objective, advantages, isWritten).map(unread),
    ...judgeObjective(objective, advantages).map(judged),
  ];
}

/** Findings that need the recipe's code; those of checkObjectiveRules are not repeated. */
export function checkDefinitionRules(
  { objective, advantages }: Blocks,
  definition: ObjectiveDefinition | undefined,
): RuleFinding[] {
  const known = new Set(judgeObjective(objective, advantages).map((finding) => finding.message));
  return [
    ...definitionFindings(objective, definition).map((finding): RuleFinding => {
      if (finding.level !== "refusal")
        return { ...unread(finding), next: "Set it to custom, or remove the objective." };
      const next = "Give `objective` to defineRecipe, or choose a built-in kind.";
      return { ...sentence(finding), code: "OBJECTIVE_DEFINITION_MISSING", severity: "error", next };
    }),
    ...judgeObjective(objective, advantages, definition)
      .filter((finding) => !known.has(finding.message))
      .map(judged),
  ];
}
