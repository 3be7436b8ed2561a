// A session without an engine: answers come from a function of the test, so that the scheduler can be watched by itself.

import { agentSeed } from "../../agent-daemon/src/sampling/recordIds.ts";
import type { OpenSession } from "../../agent-daemon/src/sampling/session.ts";
import type { Agent, CallView, ChatMessage } from "../../protocol/agent.ts";
import { newRecord } from "../../protocol/record.ts";

/** The trajectories of a spoken session: the texts it answered. */
export type SpokenTrajectory = { readonly record: string; readonly texts: readonly string[] };

export interface Speaker {
  /** `record` and `call` are those of the request; a promise that never settles is a call that hangs. */
  answer(request: {
    readonly record: string;
    readonly call: number;
    readonly streamKey: string;
  }): string | Promise<string>;
  readonly truncated?: (record: string) => boolean;
}

export function spokenSessions(speaker: Speaker): OpenSession<SpokenTrajectory> {
  return (request) => {
    const calls: CallView[] = [];
    const chat: Agent["chat"] = async ({ messages }) => {
      request.onCall("begun");
      try {
        const call = calls.length;
        const text = await speaker.answer({ record: request.record, call, streamKey: request.streamKey });
        request.signal.throwIfAborted();
        const id = `${request.record}-c${call}`;
        const message = { role: "assistant", content: text } as const;
        const finishReason = speaker.truncated?.(request.record) ? "length" : "stop";
        const view = { id, parent: null, messages: messages as ChatMessage[], message, text, finishReason } as const;
        calls.push({ ...view, promptTokens: 3, completionTokens: text.length });
        const usage = { promptTokens: 3, completionTokens: text.length, cachedTokens: 0 };
        return { message, text, finishReason, usage, call: id };
      } finally {
        request.onCall("ended");
      }
    };
    const agent: Agent = {
      record: request.record,
      seed: agentSeed(7, request.streamKey),
      signal: request.signal,
      chat,
      get openai(): never {
        throw new Error("a spoken session serves agent.chat only");
      },
      tool: async (_name, args, run) => await run(args),
      compact: () => {},
    };
    const truncated = () => calls.some((call) => call.finishReason === "length");
    return {
      agent,
      close: async () => ({
        calls,
        toolEvents: [],
        stats: {
          ...newRecord({ id: "x", run: "x", task: "x", sample: 0, split: "train", created: 0 }).stats,
          calls: calls.length,
          turns: calls.length,
          truncated: truncated(),
        },
        policyVersions: calls.length === 0 ? null : { min: 0, max: 0 },
      }),
      trajectories: () => ({ record: request.record, texts: calls.map((call) => call.text) }),
    };
  };
}
