// What a request comes down to, whatever dialect it was spoken in, and what it is answered with. White-box agents and
// OpenAI-shaped clients both pass through here.
import type { ChatMessage, JsonValue, ToolDefinition } from "../../../protocol/agent.ts";
import type { CallDocument } from "../../../protocol/call.ts";
import type { CapturedCall } from "./capturedCall.ts";

export interface CompletionRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDefinition[];
  /** More template variables, such as enable_thinking. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** Siblings to sample from the one prompt. */
  readonly n: number;
  /** At most the recipe's; null: the recipe's. */
  readonly maxTokens: number | null;
  /** Added to the recipe's. */
  readonly stop: readonly string[];
  /** Names the random stream of this call within its record; null: the call's index does. */
  readonly seed: number | null;
  readonly topAlternatives: number;
  /** What the client asked for that the recipe decides. */
  readonly asked: { readonly [key: string]: JsonValue };
  readonly client: string | null;
  readonly dialect: CallDocument["dialect"];
  readonly signal: AbortSignal | null;
}

/** One call a sibling, all completed. */
export type Complete = (request: CompletionRequest) => Promise<readonly CapturedCall[]>;
