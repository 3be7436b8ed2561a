// Reference conversations replayed through a session: wherever the reference says that a template only appends, the prompt put
// together turn by turn must be the render of the whole conversation, and drift is reported only where it is not.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ChatTemplate } from "../../agent-daemon/src/capture/chatTemplate.ts";
import type { ChatMessage } from "../../protocol/agent.ts";
import { toyModel, toySession, toyTokenizer } from "../support/captured.ts";
import { oraclesPath } from "../support/paths.ts";

interface Conversation {
  id: string;
  messages: ChatMessage[];
}
interface Verdict {
  template: string;
  conversation: string;
  tools: boolean | "empty_list";
  status: string;
}

const read = (name: string): string => readFileSync(oraclesPath("chat", name), "utf8");
const conversations = JSON.parse(read("conversations.json")) as Conversation[];
const verdicts = (JSON.parse(read("append_only.json")) as { records: Verdict[] }).records;
const templates = JSON.parse(read("templates.json")) as Record<
  string,
  { file: string; special_tokens: Record<string, string> }
>;

/**
 * Conversations that an agent can have had (each answer has a prompt, roles that requests keep as they are), with answers in
 * plain text, so that what was sampled is what the message says.
 */
const plain = conversations.filter(
  ({ messages }) =>
    messages[0]?.role !== "assistant" &&
    messages.every(
      (message) =>
        ["system", "user", "assistant", "tool"].includes(message.role) &&
        typeof message.content === "string" &&
        (message.role !== "assistant" || (!message.tool_calls?.length && !message.reasoning_content)),
    ),
);

const cases = verdicts.filter(
  ({ status, tools, conversation }) =>
    status === "ok" && tools === false && plain.some(({ id }) => id === conversation),
);

describe.each(Object.keys(templates))("prompts of %s", (name) => {
  const own = cases.filter((verdict) => verdict.template === name);

  test(`put together turn by turn are the whole render in ${own.length} conversations`, async () => {
    const { file, special_tokens: specialTokens } = templates[name]!;
    const source = read(file);
    const now = () => new Date(2025, 2, 14);
    const template = new ChatTemplate(source, { specialTokens, now });
    for (const { conversation } of own) {
      const { messages } = plain.find(({ id }) => id === conversation)!;
      const turns = messages.flatMap((message, index) => (message.role === "assistant" ? [index] : []));
      const text = { ...toyModel(toyTokenizer(), source), specialTokens };
      // What the model would have to sample for the template to show it as it is: it may trim, or put a think block before.
      const answers = turns.map((index) => {
        const content = (messages[index]!.content as string).trim();
        const prompt = template.render({ messages: messages.slice(0, index), addGenerationPrompt: true }).text;
        const history = template.render({ messages: messages.slice(0, index + 1), addGenerationPrompt: false }).text;
        return history.slice(prompt.length, history.lastIndexOf(content) + content.length);
      });
      // A prompt that opens a think block leaves its end in the answer, which the template then shows otherwise.
      const answersCloseReasoning = answers.some((answer) => answer.startsWith("</think>"));
      const session = toySession({
        text,
        // The toy's end token is not the template's, so answers are cut off instead of ended.
        answer: (_, call) => [{ ids: [...new TextEncoder().encode(answers[call])], finishReason: "length" }],
        templateNow: now,
      });
      const spoken: ChatMessage[] = [];
      let turn = 0;
      for (const message of messages) {
        if (message.role !== "assistant") {
          spoken.push(message);
          continue;
        }
        const result = await session.agent.chat({ messages: spoken });
        const whole = template.render({ messages: spoken, addGenerationPrompt: true }).text;
        const prompt = session.tokenizer.decode(session.engine.requests[turn++]!.tokens);
        if (!answersCloseReasoning) expect(prompt, `${conversation} ${turn}`).toBe(whole);
        spoken.push(result.message);
      }
      await session.close();
      const drifts = session.captured().map((call) => call.drift.kind);
      expect(drifts, conversation).toEqual(
        turns.map((_, call) => (answersCloseReasoning && call > 0 ? "template" : "none")),
      );
    }
  });
});
