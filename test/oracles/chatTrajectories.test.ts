import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ChatTemplate } from "../../agent-daemon/src/capture/chatTemplate.ts";
import { definitionFromJson } from "../../agent-daemon/src/engines/tokenizer/definition.ts";
import { Tokenizer } from "../../agent-daemon/src/engines/tokenizer/tokenizer.ts";
import { chatTrajectories } from "../../agent-daemon/src/training/chatTrajectories.ts";
import { packTrajectories } from "../../agent-daemon/src/training/packing.ts";
import { checkTrajectories } from "../../agent-daemon/src/training/trajectoryCheck.ts";
import type { ChatMessage } from "../../protocol/agent.ts";
import type { Trajectory } from "../../protocol/trajectory.ts";
import { oraclesPath } from "../support/paths.ts";

const tokenizer = new Tokenizer(
  definitionFromJson(JSON.parse(readFileSync(oraclesPath("chat", "tokenizer", "tokenizer.json"), "utf8")), "oracle"),
);
const templateOf = (name: string) =>
  new ChatTemplate(readFileSync(oraclesPath("chat", "templates", `${name}.jinja`), "utf8"));

const messages: ChatMessage[] = [
  { role: "user", content: "What is 4 + 5?" },
  { role: "assistant", content: "It is 9." },
  { role: "user", content: "And 6 + 7?" },
  { role: "assistant", content: "It is 13." },
];

const trained = ({ tokens, trainable }: Trajectory) => tokenizer.decode(tokens.filter((_, i) => trainable[i] === 1));

describe("chat data", () => {
  it("becomes one trajectory whose answers, with their end-of-turn tokens, are trained", () => {
    const template = templateOf("smollm2");
    const [trajectory, ...more] = chatTrajectories({ record: "r", messages }, template, tokenizer);
    expect(more).toEqual([]);
    const text = template.render({ messages, addGenerationPrompt: false }).text;
    expect(tokenizer.decode(trajectory!.tokens)).toBe(text);
    expect(trained(trajectory!)).toBe("It is 9.<|im_end|>It is 13.<|im_end|>");
    expect(trajectory!.calls).toEqual(["r/turn-0", "r/turn-1"]);
    const turns = trajectory!.turn.filter((_, i) => trajectory!.trainable[i] === 1);
    expect(new Set(turns)).toEqual(new Set([0, 1]));
    checkTrajectories([trajectory!]);
  });

  it("of a template that rewrites its history becomes one trajectory a rewriting; each answer is trained once", () => {
    const thinking = messages.map(
      (message): ChatMessage =>
        message.role === "assistant"
          ? { ...message, content: `<think>\nAdd.\n</think>\n\n${message.content}` }
          : message,
    );
    const trajectories = chatTrajectories({ record: "r", messages: thinking }, templateOf("qwen3"), tokenizer);
    expect(trajectories.length).toBe(2);
    expect(trajectories.map(trained)).toEqual([
      expect.stringMatching(/Add\.[\s\S]*It is 9\.<\|im_end\|>$/),
      expect.stringMatching(/Add\.[\s\S]*It is 13\.<\|im_end\|>$/),
    ]);
    checkTrajectories(trajectories);
  });

  it("without an answer becomes nothing", () => {
    expect(chatTrajectories({ record: "r", messages: messages.slice(0, 1) }, templateOf("smollm2"), tokenizer)).toEqual(
      [],
    );
  });

  it("of many turns packs into as many tokens as it has", () => {
    const long = Array.from({ length: 40 }, () => messages).flat();
    const [trajectory] = chatTrajectories({ record: "r", messages: long }, templateOf("smollm2"), tokenizer);
    const forest = packTrajectories([trajectory!, trajectory!], {
      mode: "tree",
      budget: 100_000,
      replicas: 1,
      cost: { perToken: 1, perPair: 0 },
    });
    expect(forest.packedTokens).toBe(trajectory!.trainable.lastIndexOf(1) + 1);
  });
});
