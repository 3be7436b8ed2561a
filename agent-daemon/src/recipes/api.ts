// What recipes import as `rollscope/recipe`: defineRecipe, the types of what a recipe handles, the verifiers. Everything a
// recipe may use is here, and nothing else is promised to it.
import type { TaskRow } from "../../../protocol/agent.ts";
import type { RecipeDefinition } from "../../../protocol/recipeDefinition.ts";

export type {
  Agent,
  AssistantMessage,
  CallView,
  ChatMessage,
  ChatRequest,
  ChatResult,
  JsonValue,
  OpenAiClient,
  RecordView,
  Score,
  ScoreDetails,
  Task,
  TaskRow,
  ToolCall,
  ToolDefinition,
  ToolEventView,
} from "../../../protocol/agent.ts";
export { RollscopeError } from "../../../protocol/errors.ts";
export type {
  ObjectiveDefinition,
  ObjectiveSettings,
  ObjectiveToken,
  TokenLoss,
} from "../../../protocol/objectiveDefinition.ts";
export type { RecipeDefinition } from "../../../protocol/recipeDefinition.ts";
export { extractBoxed, normalizeMath, scoreBoxed } from "./verifiers/boxed.ts";
export { scoreExactMatch } from "./verifiers/exactMatch.ts";
export { extractGsm8kAnswer, scoreGsm8k } from "./verifiers/gsm8k.ts";
export { extractNumber, firstNumber, numbersIn, scoreNumber } from "./verifiers/number.ts";

/** Types the functions of a recipe; recipe.ts exports the result as its default. */
export function defineRecipe<Row = TaskRow, Result = unknown>(
  definition: RecipeDefinition<Row, Result>,
): RecipeDefinition<Row, Result> {
  return definition;
}
