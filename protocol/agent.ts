// What a recipe's code sees: the task it gets, the agent it drives, the record it judges. Plain types, because values of
// them are made by the product and never parsed. Nothing here may mention an engine, a store or an objective's mathematics.

/** A JSON value; integers beyond ±(2^53 − 1) are bigint, so that an id survives exactly. */
export type JsonValue = string | number | bigint | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/** One row of a task file. */
export type TaskRow = { [key: string]: JsonValue };

export type Split = "train" | "heldOut";

/** One problem. */
export interface Task<Row = TaskRow> {
  /** From the row's id field, else its index in the file. */
  readonly id: string;
  readonly split: Split;
  /** Row number in the file, from 0, blank lines not counted. */
  readonly index: number;
  readonly payload: Row;
}

export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  /** Arguments are JSON text, as the model wrote it. */
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message in the shape of OpenAI's chat API. */
export type ChatMessage =
  | { readonly role: "system" | "user"; readonly content: string | readonly TextPart[]; readonly name?: string }
  | {
      readonly role: "assistant";
      readonly content: string | readonly TextPart[] | null;
      readonly reasoning_content?: string | null;
      readonly tool_calls?: readonly ToolCall[];
    }
  | { readonly role: "tool"; readonly content: string | readonly TextPart[]; readonly tool_call_id: string };

export type AssistantMessage = Extract<ChatMessage, { readonly role: "assistant" }>;

export interface ToolDefinition {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: string;
    /** JSON Schema of the arguments. */
    readonly parameters?: { readonly [key: string]: unknown };
  };
}

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ToolDefinition[];
  /** At most the recipe's sampling.maxNewTokens (evaluation.maxNewTokens in evaluation). */
  readonly maxTokens?: number;
  /** Added to the recipe's sampling.stop. */
  readonly stop?: readonly string[];
}

export interface ChatResult {
  /** Append it to the history as it is: the next call then keeps its exact tokens. */
  readonly message: AssistantMessage;
  /** Text of the answer, without a stop string that ended it. */
  readonly text: string;
  readonly finishReason: "stop" | "length" | "tool_calls";
  readonly usage: { readonly promptTokens: number; readonly completionTokens: number; readonly cachedTokens: number };
  /** Id of the recorded call. */
  readonly call: string;
}

/** The part of the `openai` package's client that is served; give the agent's one to whatever takes such a client. */
export interface OpenAiClient {
  readonly chat: {
    readonly completions: {
      create(body: {
        model: string;
        messages: ChatMessage[];
        tools?: ToolDefinition[];
        n?: number;
        stop?: string | string[];
        seed?: number;
        max_completion_tokens?: number;
        logprobs?: boolean;
      }): Promise<{
        readonly id: string;
        readonly choices: readonly {
          readonly message: { readonly role: "assistant"; readonly content: string | null };
          readonly finish_reason: string;
        }[];
      }>;
    };
  };
}

/** The policy as a recipe drives it. Every call is recorded token by token. */
export interface Agent {
  /** Id of the record that this rollout fills. */
  readonly record: string;
  /** For the recipe's own random choices: a hash of run seed and record, the same whenever the run is repeated. */
  readonly seed: number;
  /** Aborted on time-out, stop or pause; pass it to whatever the recipe waits for. */
  readonly signal: AbortSignal;
  /** One call of the policy. Throws RollscopeError when it fails; what was sampled until then stays on record. */
  chat(request: ChatRequest): Promise<ChatResult>;
  /** The `openai` package's client, served in this process: the same calls for code that wants an OpenAI client. */
  readonly openai: OpenAiClient;
  /** Runs `run` with `args` and records name, arguments, result or error, and duration. */
  tool<Arguments, Result>(
    name: string,
    args: Arguments,
    run: (args: Arguments) => Result | Promise<Result>,
  ): Promise<Result>;
  /** Declares that the next call's history is a rewritten one: it starts a branch instead of counting as an edit. */
  compact(): void;
}

export interface CallView {
  readonly id: string;
  /** The call whose history this one continues; null at a root. */
  readonly parent: string | null;
  readonly messages: readonly ChatMessage[];
  readonly message: AssistantMessage;
  readonly text: string;
  readonly finishReason: "stop" | "length" | "tool_calls" | "abort" | "error";
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export interface ToolEventView {
  readonly name: string;
  readonly arguments: unknown;
  readonly result?: unknown;
  readonly error?: string;
  readonly milliseconds: number;
}

/** A finished trajectory, as evaluate sees it. */
export interface RecordView<Row = TaskRow, Result = unknown> {
  readonly id: string;
  readonly task: Task<Row>;
  /** In the order they ended. */
  readonly calls: readonly CallView[];
  readonly toolEvents: readonly ToolEventView[];
  /** Text of the last call's answer; empty when there was no call. */
  readonly text: string;
  /** Some call was cut off by its token limit. */
  readonly truncated: boolean;
  /** What rollout returned. */
  readonly result: Result;
}

/** A reward with its reasons. `score: null` = ungraded: left out of the group's statistics, never counted as 0. */
export interface ScoreDetails {
  readonly score: number | null;
  /** Named parts, shown beside the score and averaged in evaluation; they need not add up to it. */
  readonly breakdown?: { readonly [name: string]: number };
  /** Values of recordFields. */
  readonly fields?: { readonly [name: string]: JsonValue };
  readonly labels?: readonly string[];
}

/** What evaluate returns; null = ungraded, like `score: null`. */
export type Score = number | ScoreDetails | null;

export type Rollout<Row = TaskRow, Result = unknown> = (task: Task<Row>, agent: Agent) => Result | Promise<Result>;
export type Evaluate<Row = TaskRow, Result = unknown> = (record: RecordView<Row, Result>) => Score | Promise<Score>;
