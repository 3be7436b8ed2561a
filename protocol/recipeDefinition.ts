// What recipe.ts hands over: the functions of a recipe. Plain types; nothing here is parsed.
import type { Evaluate, Rollout, TaskRow } from "./agent.ts";
import type { ObjectiveDefinition } from "./objectiveDefinition.ts";

export interface RecipeDefinition<Row = TaskRow, Result = unknown> {
  /** Drives the agent through one task. What it returns is handed to evaluate; what it throws fails the record. */
  readonly rollout: Rollout<Row, Result>;
  /** Judges the finished record. */
  readonly evaluate: Evaluate<Row, Result>;
  /** The recipe's own policy objective, for objective.kind custom. */
  readonly objective?: ObjectiveDefinition;
}
