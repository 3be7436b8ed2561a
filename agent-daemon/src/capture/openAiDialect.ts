// OpenAI's chat completions: body to request, calls to body, errors to errors. What the recipe decides (sampling) is noted and
// not obeyed; what cannot be done (grammar, streams here) is refused and never dropped silently.

import { z } from "zod";
import type { JsonValue } from "../../../protocol/agent.ts";
import { type ErrorCode, RollscopeError } from "../../../protocol/errors.ts";
import { isJsonValue } from "../../../protocol/json.ts";
import type { Tokenizer } from "../engines/tokenizer/tokenizer.ts";
import type { CapturedCall } from "./capturedCall.ts";
import type { CompletionRequest } from "./completion.ts";
import { invalid, readMessages, readTools } from "./messages.ts";

const tokenLimit = z.int().min(1).nullish();

const bodySchema = z.looseObject({
  model: z.string().default(""),
  messages: z.unknown(),
  tools: z.unknown().optional(),
  tool_choice: z.unknown().optional(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
  n: z.int().min(1).max(128).nullish(),
  max_tokens: tokenLimit,
  max_completion_tokens: tokenLimit,
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  seed: z.int().nullish(),
  stream: z.boolean().nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  chat_template_kwargs: z.record(z.string(), z.unknown()).nullish(),
});

/** Sampling wishes: on record, decided by the recipe. */
const decidedByRecipe = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "frequency_penalty",
  "presence_penalty",
  "repetition_penalty",
  "logit_bias",
  "seed",
];

export interface ChatCompletionRequest {
  readonly request: CompletionRequest;
  readonly model: string;
  readonly logprobs: boolean;
}

/** Errors: CAPTURE_REQUEST_INVALID, CONSTRAINT_UNSUPPORTED, CAPTURE_STREAM_UNSUPPORTED, ENGINE_MEDIA_UNSUPPORTED. */
export function readChatCompletion(
  value: unknown,
  client: string | null,
  signal: AbortSignal | null,
): ChatCompletionRequest {
  const parsed = bodySchema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw invalid(issue?.path.join(".") || "body", issue?.message ?? "is not a chat completion request");
  }
  const body = parsed.data;
  if (body.stream) {
    throw new RollscopeError("CAPTURE_STREAM_UNSUPPORTED", "This endpoint does not stream.", {
      next: "Leave out `stream`, or set it to false.",
    });
  }
  refuseConstraints(body);
  const stop =
    body.stop === null || body.stop === undefined ? [] : typeof body.stop === "string" ? [body.stop] : body.stop;
  const asked: Record<string, JsonValue> = {};
  for (const key of decidedByRecipe) {
    const wish = body[key];
    if (wish !== undefined && wish !== null && isJsonValue(wish)) asked[key] = wish;
  }
  return {
    model: body.model,
    logprobs: body.logprobs === true,
    request: {
      messages: readMessages(body.messages),
      tools: body.tools === undefined || body.tools === null ? [] : readTools(body.tools),
      variables: body.chat_template_kwargs ?? {},
      n: body.n ?? 1,
      maxTokens: body.max_completion_tokens ?? body.max_tokens ?? null,
      stop,
      seed: body.seed ?? null,
      topAlternatives: body.logprobs ? (body.top_logprobs ?? 0) : 0,
      asked,
      client,
      dialect: "chat",
      signal,
    },
  };
}

function refuseConstraints(body: z.infer<typeof bodySchema>): void {
  const choice = body.tool_choice;
  if (choice !== undefined && choice !== null && choice !== "auto" && choice !== "none") {
    throw constraint("a required tool", "Use tool_choice auto or none.");
  }
  const format = body.response_format?.type;
  if (format !== undefined && format !== "text") {
    throw constraint(`the response format ${format}`, "Ask for the format in the prompt and check the answer.");
  }
}

function constraint(what: string, next: string): RollscopeError {
  return new RollscopeError("CONSTRAINT_UNSUPPORTED", `This engine cannot be held to ${what}.`, { next });
}

/** The response body for the siblings of one request. */
export function chatCompletionBody(
  calls: readonly CapturedCall[],
  { model, logprobs }: ChatCompletionRequest,
  tokenizer: Tokenizer,
) {
  const [first] = calls;
  const promptTokens = first?.usage.promptTokens ?? 0;
  const completionTokens = calls.reduce((sum, call) => sum + call.usage.completionTokens, 0);
  return {
    id: first?.id ?? "",
    object: "chat.completion",
    created: Math.floor((first?.started ?? 0) / 1000),
    model,
    choices: calls.map((call, index) => ({
      index,
      message: { role: "assistant", content: call.text, refusal: null },
      logprobs: logprobs ? { content: tokenLogprobs(call, tokenizer), refusal: null } : null,
      finish_reason: call.finishReason,
    })),
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
      prompt_tokens_details: { cached_tokens: first?.usage.cachedTokens ?? 0 },
    },
  };
}

/** Of every sampled token, those of a stop string and the end token included: what was sampled is not hidden here. */
function tokenLogprobs(call: CapturedCall, tokenizer: Tokenizer) {
  const entry = (id: number, logprob: number) => {
    const bytes = tokenizer.tokenBytes(id);
    return { token: new TextDecoder().decode(bytes), logprob, bytes: [...bytes] };
  };
  return Array.from(call.output, (id, index) => ({
    ...entry(id, call.logprobs[index] as number),
    top_logprobs: (call.alternatives?.[index] ?? []).map((other) => entry(other.id, other.logprob)),
  }));
}

const statusOf: { readonly [Code in ErrorCode]?: number } = {
  CAPTURE_REQUEST_INVALID: 400,
  CAPTURE_CONTEXT_OVERFLOW: 400,
  CAPTURE_STREAM_UNSUPPORTED: 400,
  CAPTURE_TURN_LIMIT: 400,
  CONSTRAINT_UNSUPPORTED: 400,
  ENGINE_MEDIA_UNSUPPORTED: 400,
  TEMPLATE_REFUSED: 400,
  TEMPLATE_FAILED: 400,
  CAPTURE_SESSION_CLOSED: 404,
  CAPTURE_CALL_TIMEOUT: 504,
  CAPTURE_CALL_CANCELLED: 499,
};

/** The dialect's own error; a full context has the code that clients know. */
export function chatCompletionError(error: RollscopeError): { status: number; body: object } {
  const status = statusOf[error.code] ?? 500;
  const code = error.code === "CAPTURE_CONTEXT_OVERFLOW" ? "context_length_exceeded" : error.code;
  const type = status < 500 ? "invalid_request_error" : "server_error";
  const param = typeof error.at["key"] === "string" ? error.at["key"] : null;
  return { status, body: { error: { message: `${error.message} ${error.next}`, type, code, param } } };
}
