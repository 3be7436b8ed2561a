// Chat data as trajectories: every answer of the assistant is trained once, after exactly the tokens that a sampler would have
// been prompted with. A template that rewrites its history starts another trajectory; nothing is trained on a wrong prompt.
import type { ChatMessage, ToolDefinition } from "../../../protocol/agent.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import { commonLength } from "../capture/appendOnly.ts";
import type { ChatTemplate } from "../capture/chatTemplate.ts";
import { templateMessage } from "../capture/messages.ts";
import type { Tokenizer } from "../engines/tokenizer/tokenizer.ts";

export interface ChatExample {
  /** Names the record; its turns are `record/turn-N`. */
  readonly record: string;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ToolDefinition[] | undefined;
}

interface OpenTrajectory {
  /** Everything that `tokens` stand for. */
  text: string;
  readonly tokens: number[];
  readonly trainable: number[];
  /** Index into `calls`, −1 for input. */
  readonly call: number[];
  readonly turn: number[];
  readonly calls: string[];
}

/**
 * Usually one trajectory; none when no message is the assistant's. An answer is trained up to and including its end-of-turn
 * token; what the template writes behind that is input. They carry no score, group or sampler's log-probabilities.
 * @throws TEMPLATE_REFUSED, TEMPLATE_FAILED
 */
export function chatTrajectories(example: ChatExample, template: ChatTemplate, tokenizer: Tokenizer): Trajectory[] {
  const messages = example.messages.map(templateMessage);
  const tools = example.tools === undefined || example.tools.length === 0 ? null : example.tools;
  const render = (count: number, addGenerationPrompt: boolean) =>
    template.render({ messages: messages.slice(0, count), tools, addGenerationPrompt }).text;
  const encode = (text: string) => tokenizer.encode(text, { special: "parse" });
  const all: OpenTrajectory[] = [];
  let turn = 0;
  example.messages.forEach(({ role }, index) => {
    if (role !== "assistant") return;
    const whole = render(index + 1, false);
    const asked = render(index, true);
    const prompt = asked.slice(0, commonLength(asked, whole));
    let open = all.at(-1);
    if (open === undefined || !prompt.startsWith(open.text)) {
      open = { text: "", tokens: [], trainable: [], call: [], turn: [], calls: [] };
      all.push(open);
    }
    append(open, encode(prompt.slice(open.text.length)), turn, 0);
    const answer = encode(whole.slice(prompt.length));
    open.calls.push(`${example.record}/turn-${turn}`);
    append(open, answer, turn, answer.findLastIndex((token) => tokenizer.isSpecial(token)) + 1 || answer.length);
    open.text = whole;
    turn += 1;
  });
  return all.map((open) => closed(example.record, open));
}

/** Adds tokens of which the first `trained` are the newest call's. */
function append(open: OpenTrajectory, tokens: readonly number[], turn: number, trained: number): void {
  tokens.forEach((token, i) => {
    // Nothing predicts the very first token of a path.
    const predicted = open.tokens.length > 0;
    open.tokens.push(token);
    open.trainable.push(i < trained && predicted ? 1 : 0);
    open.call.push(i < trained ? open.calls.length - 1 : -1);
    open.turn.push(turn);
  });
}

function closed(record: string, open: OpenTrajectory): Trajectory {
  return {
    record,
    calls: open.calls,
    group: null,
    score: null,
    truncated: false,
    tokens: Int32Array.from(open.tokens),
    trainable: Uint8Array.from(open.trainable),
    call: Int32Array.from(open.call),
    turn: Int32Array.from(open.turn),
    temperature: new Float32Array(open.tokens.length).fill(1),
    version: new Int32Array(open.tokens.length).fill(-1),
  };
}
