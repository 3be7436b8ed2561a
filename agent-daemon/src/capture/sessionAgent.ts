// The white-box agent of a session: what a recipe's rollout drives. Every call goes the way a client's request goes.
import type { Agent, JsonValue, OpenAiClient, ToolEventView } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { isJsonValue } from "../../../protocol/json.ts";
import { readMessages, readTools } from "./messages.ts";
import { openAiClient } from "./openAiClient.ts";
import type { CaptureSession } from "./session.ts";

export interface ToolEvent extends ToolEventView {
  /** Order within the record, from 0. */
  readonly index: number;
  /** The last call that had ended when the tool began. */
  readonly call: string | null;
  readonly arguments: JsonValue;
  readonly result: JsonValue;
  readonly started: number;
}

export interface SessionAgent {
  readonly agent: Agent;
  /** In the order they began; grows while the rollout runs. */
  readonly toolEvents: readonly ToolEvent[];
}

/** `seed`: for the recipe's own random choices. */
export function sessionAgent(
  session: CaptureSession,
  seed: number,
  signal: AbortSignal,
  now: () => number = Date.now,
): SessionAgent {
  const toolEvents: ToolEvent[] = [];
  let begun = 0;
  const complete = session.complete.bind(session);
  let client: OpenAiClient | undefined;
  const agent: Agent = {
    record: session.record,
    seed,
    signal,
    get openai() {
      // The package's own types want mutable messages; what is served is what OpenAiClient says.
      client ??= openAiClient(complete, session.tokenizer) as unknown as OpenAiClient;
      return client;
    },
    async chat(request) {
      const [call] = await complete({
        messages: readMessages(request.messages),
        tools: request.tools ? readTools(request.tools) : [],
        variables: {},
        n: 1,
        maxTokens: request.maxTokens ?? null,
        stop: request.stop ?? [],
        seed: null,
        topAlternatives: 0,
        asked: {},
        client: null,
        dialect: "whiteBox",
        signal: null,
      });
      if (!call?.message || (call.finishReason !== "stop" && call.finishReason !== "length")) {
        throw new RollscopeError("CAPTURE_ENGINE_FAILED", `Call ${call?.id} came back without an answer.`, {
          next: "Look at the call with `rollscope inspect`.",
          at: { record: session.record },
        });
      }
      return {
        message: call.message,
        text: call.text,
        finishReason: call.finishReason,
        usage: call.usage,
        call: call.id,
      };
    },
    async tool(name, args, run) {
      const index = begun++;
      const call = session.calls.at(-1)?.id ?? null;
      const started = now();
      const record = (outcome: { result: JsonValue } | { error: string }): void => {
        const milliseconds = Math.max(0, now() - started);
        toolEvents.push({
          index,
          call,
          name,
          arguments: asJson(args),
          result: null,
          ...outcome,
          started,
          milliseconds,
        });
        toolEvents.sort((a, b) => a.index - b.index);
      };
      try {
        const result = await run(args);
        record({ result: asJson(result) });
        return result;
      } catch (error) {
        record({ error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) });
        throw error;
      }
    },
    compact: () => session.compact(),
  };
  return { agent, toolEvents };
}

/** The value when it is JSON, else what JSON makes of it, else its text: an event must never fail a rollout. */
function asJson(value: unknown): JsonValue {
  if (value === undefined) return null;
  try {
    if (isJsonValue(value)) return value;
    const text = JSON.stringify(value);
    return text === undefined ? String(value) : (JSON.parse(text) as JsonValue);
  } catch {
    return String(value);
  }
}
