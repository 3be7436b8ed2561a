// Types of `rollscope/recipe`. Written by Rollscope; changes are lost when it is written again.
/** A JSON value; integers beyond ±(2^53 − 1) are bigint, so that an id survives exactly. */
type JsonValue = string | number | bigint | boolean | null | JsonValue[] | {
    [key: string]: JsonValue;
};
/** One row of a task file. */
type TaskRow = {
    [key: string]: JsonValue;
};
type Split = "train" | "heldOut";
/** One problem. */
interface Task<Row = TaskRow> {
    /** From the row's id field, else its index in the file. */
    readonly id: string;
    readonly split: Split;
    /** Row number in the file, from 0, blank lines not counted. */
    readonly index: number;
    readonly payload: Row;
}
interface TextPart {
    readonly type: "text";
    readonly text: string;
}
interface ToolCall {
    readonly id: string;
    readonly type: "function";
    /** Arguments are JSON text, as the model wrote it. */
    readonly function: {
        readonly name: string;
        readonly arguments: string;
    };
}
/** A message in the shape of OpenAI's chat API. */
type ChatMessage = {
    readonly role: "system" | "user";
    readonly content: string | readonly TextPart[];
    readonly name?: string;
} | {
    readonly role: "assistant";
    readonly content: string | readonly TextPart[] | null;
    readonly reasoning_content?: string | null;
    readonly tool_calls?: readonly ToolCall[];
} | {
    readonly role: "tool";
    readonly content: string | readonly TextPart[];
    readonly tool_call_id: string;
};
type AssistantMessage = Extract<ChatMessage, {
    readonly role: "assistant";
}>;
interface ToolDefinition {
    readonly type: "function";
    readonly function: {
        readonly name: string;
        readonly description?: string;
        /** JSON Schema of the arguments. */
        readonly parameters?: {
            readonly [key: string]: unknown;
        };
    };
}
interface ChatRequest {
    readonly messages: readonly ChatMessage[];
    readonly tools?: readonly ToolDefinition[];
    /** At most the recipe's sampling.maxNewTokens (evaluation.maxNewTokens in evaluation). */
    readonly maxTokens?: number;
    /** Added to the recipe's sampling.stop. */
    readonly stop?: readonly string[];
}
interface ChatResult {
    /** Append it to the history as it is: the next call then keeps its exact tokens. */
    readonly message: AssistantMessage;
    /** Text of the answer, without a stop string that ended it. */
    readonly text: string;
    readonly finishReason: "stop" | "length" | "tool_calls";
    readonly usage: {
        readonly promptTokens: number;
        readonly completionTokens: number;
        readonly cachedTokens: number;
    };
    /** Id of the recorded call. */
    readonly call: string;
}
/** The part of the `openai` package's client that is served; give the agent's one to whatever takes such a client. */
interface OpenAiClient {
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
                    readonly message: {
                        readonly role: "assistant";
                        readonly content: string | null;
                    };
                    readonly finish_reason: string;
                }[];
            }>;
        };
    };
}
/** The policy as a recipe drives it. Every call is recorded token by token. */
interface Agent {
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
    tool<Arguments, Result>(name: string, args: Arguments, run: (args: Arguments) => Result | Promise<Result>): Promise<Result>;
    /** Declares that the next call's history is a rewritten one: it starts a branch instead of counting as an edit. */
    compact(): void;
}
interface CallView {
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
interface ToolEventView {
    readonly name: string;
    readonly arguments: unknown;
    readonly result?: unknown;
    readonly error?: string;
    readonly milliseconds: number;
}
/** A finished trajectory, as evaluate sees it. */
interface RecordView<Row = TaskRow, Result = unknown> {
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
interface ScoreDetails {
    readonly score: number | null;
    /** Named parts, shown beside the score and averaged in evaluation; they need not add up to it. */
    readonly breakdown?: {
        readonly [name: string]: number;
    };
    /** Values of recordFields. */
    readonly fields?: {
        readonly [name: string]: JsonValue;
    };
    readonly labels?: readonly string[];
}
/** What evaluate returns; null = ungraded, like `score: null`. */
type Score = number | ScoreDetails | null;
type Rollout<Row = TaskRow, Result = unknown> = (task: Task<Row>, agent: Agent) => Result | Promise<Result>;
type Evaluate<Row = TaskRow, Result = unknown> = (record: RecordView<Row, Result>) => Score | Promise<Score>;

type ErrorCode = string;
interface ErrorDetails {
    /** What the person can do now, as a sentence. */
    readonly next: string;
    readonly cause?: unknown;
    /** File, line, key, record, call, token: whatever names the place. */
    readonly at?: Readonly<Record<string, string | number>>;
}
declare class RollscopeError extends Error {
    readonly code: ErrorCode;
    readonly next: string;
    readonly at: Readonly<Record<string, string | number>>;
    constructor(code: ErrorCode, sentence: string, details: ErrorDetails);
    get retryable(): boolean;
}

type ObjectiveConfig = { kind: "custom" | "cross_entropy" | "reinforce" | "importance_sampling" | "grpo" | "ppo" | "gspo" | "minirl" | "cispo" | "tis" | "topr" | "kimi" | "grpo2"; clipLow: number; clipHigh: number; ratioBase: "old" | "rollout"; ratioUnit: "token" | "trajectory"; aggregation: "token-mean" | "sequence-mean" | "sequence-sum"; unit: "trajectory" | "turn"; dualClip?: number | undefined; cap?: number | undefined; softClip?: number | undefined; lengthNormalizer?: number | undefined; kl?: { coef: number; base: "ref" | "old"; placement: "loss" | "reward"; estimator?: "k1" | "k2" | "k3" | undefined; } | undefined; entropy?: { coef: number; target?: number | undefined; } | undefined; value?: { coef: number; clip?: number | undefined; } | undefined; correction?: { tokenTruncate?: number | undefined; tokenMask?: [number, number] | undefined; sequenceMask?: [number, number] | undefined; tokenVeto?: number | undefined; freshness?: { decay: number; capRatio: number; } | undefined; } | undefined; options?: Record<string, unknown> | undefined; };
type ObjectiveKind = "custom" | "cross_entropy" | "reinforce" | "importance_sampling" | "grpo" | "ppo" | "gspo" | "minirl" | "cispo" | "tis" | "topr" | "kimi" | "grpo2";
type KlConfig = { coef: number; base: "ref" | "old"; placement: "loss" | "reward"; estimator?: "k1" | "k2" | "k3" | undefined; };
type EntropyConfig = { coef: number; target?: number | undefined; };
type CorrectionConfig = { tokenTruncate?: number | undefined; tokenMask?: [number, number] | undefined; sequenceMask?: [number, number] | undefined; tokenVeto?: number | undefined; freshness?: { decay: number; capRatio: number; } | undefined; };

/**
 * The numbers of one trainable token. A column that the batch does not have is NaN here; an objective that reads it
 * without saying so in `reads` gets an error, never a NaN loss.
 */
interface ObjectiveToken {
    /** Current log-probability lp; the loss is differentiated through it. */
    readonly logp: number;
    /** Current entropy H of the distribution that the token was chosen from. */
    readonly entropy: number;
    /** Log-probability when this optimizer window began. A constant. */
    readonly old: number;
    /** Log-probability that the sampler recorded. A constant. */
    readonly rollout: number;
    /** Log-probability under the reference model. A constant. */
    readonly ref: number;
    readonly advantage: number;
    /** Optimizer steps between the weights that sampled the token and the trainer's. */
    readonly staleness: number;
    /** r = exp(clamp(logp − base, ±20)), base by `ratioBase`. */
    readonly ratio: number;
    /** dr/dlogp: r, or 0 where the log-ratio was clamped. */
    readonly ratioSlope: number;
    /** exp(clamp(logp − rollout, ±20)), whatever `ratioBase` says. */
    readonly rolloutRatio: number;
}
/** Loss of one token, before aggregation and corrections, with its derivatives. */
interface TokenLoss {
    readonly loss: number;
    /** d loss / d logp, stop-gradients applied. */
    readonly dLogp: number;
    /** d loss / d entropy, for objectives that read `entropy`. */
    readonly dEntropy?: number | undefined;
    /** Which bound cut this token's gradient, for the clip fractions. */
    readonly clipped?: "low" | "high" | "dual" | undefined;
}
/** The parsed objective block; bounds that a recipe left out are infinite. */
type ObjectiveSettings = Omit<ObjectiveConfig, "cap" | "softClip" | "dualClip"> & {
    readonly cap: number;
    readonly softClip: number;
    readonly dualClip: number;
};
/** `ratio` stands for the column that `ratioBase` names. */
type ObjectiveReads = "advantage" | "ratio" | "old" | "rollout" | "ref" | "entropy" | "staleness";
interface NamedObjective {
    readonly name: string;
    /** Columns that the function reads; without it `advantage` and `ratio`. */
    readonly reads?: readonly ObjectiveReads[];
}
/** Each token's loss depends on that token's numbers alone. */
interface TokenObjective extends NamedObjective {
    readonly scope: "token";
    readonly token: (token: ObjectiveToken, settings: ObjectiveSettings) => TokenLoss;
}
/**
 * Losses depend on the other tokens of the unit (trajectory or turn, by `unit`); needs a forward over the step first.
 * Returns one loss a token, in order; `dLogp` of a token is the derivative of the sum of the returned losses.
 */
interface UnitObjective extends NamedObjective {
    readonly scope: "unit";
    readonly unit: (tokens: readonly ObjectiveToken[], settings: ObjectiveSettings) => readonly TokenLoss[];
}
/** A recipe's own objective: aggregated, corrected and held by KL and entropy like the built-in ones. */
type ObjectiveDefinition = TokenObjective | UnitObjective;

interface RecipeDefinition<Row = TaskRow, Result = unknown> {
    /** Drives the agent through one task. What it returns is handed to evaluate; what it throws fails the record. */
    readonly rollout: Rollout<Row, Result>;
    /** Judges the finished record. */
    readonly evaluate: Evaluate<Row, Result>;
    /** The recipe's own policy objective, for objective.kind custom. */
    readonly objective?: ObjectiveDefinition;
}

interface FoundNumber {
    /** The exact value in one spelling: no leading or trailing zeros, no commas, `-` only when not 0. */
    readonly value: string;
    /** Range in the text, sign included. */
    readonly start: number;
    readonly end: number;
}
/** What a task file may hold as the right answer. */
type Reference = string | number | bigint;
/** Every number of a text, in order. */
declare function numbersIn(text: string): Generator<FoundNumber>;
/** The first number of a text, or null. */
declare function firstNumber(text: string): string | null;
/**
 * The number a text answers with: the first one after its last `=`, and where it has no `=`, or no number after that, its
 * last number. null when it has none.
 */
declare function extractNumber(text: string): string | null;
/**
 * The right answer as a number: a number, or text with exactly one.
 * @throws VERIFIER_REFERENCE_INVALID
 */
declare function referenceNumber(reference: Reference): string;
/** 1 when the text answers (see extractNumber) with the reference, else 0. */
declare function scoreNumber(text: string, reference: Reference): number;

/** What stands in the last box, untouched; null when there is none or it is not closed. */
declare function extractBoxed(text: string): string | null;
/** One spelling for contents that count as equal. */
declare function normalizeMath(content: string): string;
/**
 * 1 when the last box of the text holds the reference, else 0.
 *
 * @param reference the content of the right box, or a solution that has one
 * @throws VERIFIER_REFERENCE_INVALID when the reference is empty
 */
declare function scoreBoxed(text: string, reference: Reference): number;

interface ExactMatchOptions {
    readonly ignoreCase?: boolean;
}
/** 1 when the text is one of the references, else 0. An empty list of references matches nothing. */
declare function scoreExactMatch(text: string, references: string | readonly string[], options?: ExactMatchOptions): number;

interface Gsm8kOptions {
    /** "preferred": a text without a mark answers with its last number; "required": it has no answer. */
    readonly mark?: "preferred" | "required";
}
/** The answer as an exact decimal, or null. */
declare function extractGsm8kAnswer(text: string, options?: Gsm8kOptions): string | null;
/**
 * 1 when the text's answer is the reference, else 0.
 *
 * @param reference the number, or a whole GSM8K answer with its mark
 * @throws VERIFIER_REFERENCE_INVALID when the reference holds no answer
 */
declare function scoreGsm8k(text: string, reference: Reference, options?: Gsm8kOptions): number;

/** Types the functions of a recipe; recipe.ts exports the result as its default. */
declare function defineRecipe<Row = TaskRow, Result = unknown>(definition: RecipeDefinition<Row, Result>): RecipeDefinition<Row, Result>;

export { RollscopeError, defineRecipe, extractBoxed, extractGsm8kAnswer, extractNumber, firstNumber, normalizeMath, numbersIn, scoreBoxed, scoreExactMatch, scoreGsm8k, scoreNumber };
export type { Agent, AssistantMessage, CallView, ChatMessage, ChatRequest, ChatResult, JsonValue, ObjectiveDefinition, ObjectiveSettings, ObjectiveToken, OpenAiClient, RecipeDefinition, RecordView, Score, ScoreDetails, Task, TaskRow, TokenLoss, ToolCall, ToolDefinition, ToolEventView };
