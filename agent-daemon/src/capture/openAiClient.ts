// The `openai` client of a session: the real package, whose requests never leave the process. They take the same way as those
// of agent.chat, and one day those of a black box over HTTP.
import OpenAI from "openai";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { Tokenizer } from "../engines/tokenizer/tokenizer.ts";
import type { Complete } from "./completion.ts";
import { chatCompletionBody, chatCompletionError, readChatCompletion } from "./openAiDialect.ts";

/** Nothing is ever looked up under this name. */
const baseURL = "http://session.invalid/v1";
/** Milliseconds; timers keep no longer one. */
const longestTimeout = 2 ** 31 - 1;

export function openAiClient(complete: Complete, tokenizer: Tokenizer): OpenAI {
  return new OpenAI({
    apiKey: "in-process",
    baseURL,
    maxRetries: 0,
    // The session has limits of its own, which stand still at a breakpoint.
    timeout: longestTimeout,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      return await handle(request, complete, tokenizer);
    },
  });
}

async function handle(request: Request, complete: Complete, tokenizer: Tokenizer): Promise<Response> {
  const path = new URL(request.url).pathname;
  if (request.method !== "POST" || path !== "/v1/chat/completions") {
    return reply(404, {
      error: { message: `${request.method} ${path} is not served.`, type: "invalid_request_error" },
    });
  }
  try {
    const parsed = readChatCompletion(await request.json(), request.headers.get("user-agent"), request.signal);
    return reply(200, chatCompletionBody(await complete(parsed.request), parsed, tokenizer));
  } catch (error) {
    if (!(error instanceof RollscopeError)) throw error;
    const { status, body } = chatCompletionError(error);
    return reply(status, body);
  }
}

function reply(status: number, body: object): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
}
