import { describe, expect, test } from "vitest";
import { ChatTemplate } from "../../agent-daemon/src/capture/chatTemplate.ts";
import { loadModelText } from "../../agent-daemon/src/engines/tokenizer/load.ts";
import type { ChatMessage } from "../../protocol/agent.ts";
import { chatMl, scriptOf, toyModel, toySession, toyTokenizer } from "../support/captured.ts";
import { smollm2Path } from "../support/model.ts";

const user = (content: string): ChatMessage => ({ role: "user", content });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });
const tool = (content: string): ChatMessage => ({ role: "tool", content, tool_call_id: "t" });

/** Prompt tokens as text, special tokens included. */
function promptOf(session: ReturnType<typeof toySession>, call: number): string {
  return session.tokenizer.decode(session.engine.requests[call]!.tokens);
}

describe("token-exact history", () => {
  test("keeps the sampled ids when their text would be cut into other ids (P08)", async () => {
    const tokenizer = toyTokenizer(["l o", "w e", "we r", "lo wer"]);
    const [lo, wer, lower, end] = ["lo", "wer", "lower", "<|im_end|>"].map((token) => tokenizer.idOf(token) as number);
    expect(tokenizer.encode("lower", { special: "parse" })).toEqual([lower]);
    const session = toySession({
      text: toyModel(tokenizer),
      answer: (_, call) => (call === 0 ? [{ ids: [lo!, wer!] }, { ids: [end!] }] : null),
      settings: { maxNewTokens: 3 },
    });
    const first = await session.agent.chat({ messages: [user("go")] });
    expect(first.text).toBe("lower");
    await session.agent.chat({ messages: [user("go"), first.message, tool("ok")] });
    const [one, two] = session.engine.requests;
    const kept = [...one!.tokens, lo, wer, end];
    expect([...two!.tokens.subarray(0, kept.length)]).toEqual(kept);
    const { calls, stats } = await session.close();
    expect(stats.driftedCalls).toBe(1);
    expect(stats.trainableTokens).toBe(calls.reduce((sum, call) => sum + call.completionTokens, 0));
    const [row] = session.trajectories();
    expect([...row!.tokens.subarray(0, kept.length)]).toEqual(kept);
    const trained = [...row!.tokens].filter((_, index) => row!.trainable[index] === 1);
    expect(trained.slice(0, 3)).toEqual([lo, wer, end]);
    expect(row!.rollout!.filter((_, index) => row!.trainable[index] === 1).every(Number.isFinite)).toBe(true);
  });

  test.each([
    ["the toy template", () => toyModel(toyTokenizer(["a n", "t h", "th e"]))],
    ["SmolLM2", () => loadModelText(smollm2Path())],
  ])("of %s equals a render of the whole conversation at every turn", async (_, build) => {
    const text = build();
    const answers = ["the plan\n", "12  and 3", "größe 🧪", "", "an\n\nend", "the"];
    const session = toySession({ text, script: scriptOf(...answers), settings: { verifyFraction: 1 } });
    const template = new ChatTemplate(text.chatTemplate!, { specialTokens: text.specialTokens });
    const messages: ChatMessage[] = [{ role: "system", content: "Be brief. " }];
    for (const [index] of answers.entries()) {
      messages.push(user(`  question ${index}\n`));
      if (index % 2 === 1) messages.push(user("and\n\n7 more"));
      const result = await session.agent.chat({ messages });
      const whole = template.render({ messages, addGenerationPrompt: true }).text;
      expect(promptOf(session, index)).toBe(whole);
      expect([...session.engine.requests[index]!.tokens]).toEqual(text.tokenizer.encode(whole, { special: "parse" }));
      expect(result.text).toBe(answers[index]);
      messages.push(result.message);
    }
    const { stats } = await session.close();
    expect(stats).toMatchObject({ driftedCalls: 0, turns: 6, calls: 6 });
    expect(session.trajectories()).toHaveLength(1);
  });

  test("notices that an answer would be cut otherwise together with what stands before it", async () => {
    const session = toySession({ text: loadModelText(smollm2Path()), script: scriptOf(" 12") });
    const { message } = await session.agent.chat({ messages: [user("q")] });
    await session.agent.chat({ messages: [user("q"), message, user("r")] });
    await session.close();
    const { drift } = session.captured()[1]!;
    const [before] = session.engine.requests;
    // The template's line end and the answer's space are one token when they are cut together.
    expect(drift).toMatchObject({ kind: "retoken", at: before!.tokens.length - 1, trainedTokens: 0 });
  });

  test("closes an answer that was cut off the way the template closes every answer", async () => {
    const session = toySession({ script: scriptOf("abcdef"), settings: { maxNewTokens: 3 } });
    const first = await session.agent.chat({ messages: [user("q")] });
    expect(first).toMatchObject({ text: "abc", finishReason: "length" });
    await session.agent.chat({ messages: [user("q"), first.message, user("r")] });
    expect(promptOf(session, 1)).toBe(
      "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nabc<|im_end|>\n<|im_start|>user\nr<|im_end|>\n<|im_start|>assistant\n",
    );
    const [row] = session.trajectories();
    expect(row).toMatchObject({ truncated: true, calls: ["r0-c0", "r0-c1"] });
    const text = session.tokenizer.decode(
      [...row!.tokens].filter((_, at) => row!.trainable[at] === 1 && row!.turn[at] === 0),
    );
    expect(text).toBe("abc");
  });

  test("does the same work at turn 300 as at turn 3, and stores only what a turn adds", async () => {
    const text = loadModelText(smollm2Path());
    let renders = 0;
    const render = ChatTemplate.prototype.render;
    ChatTemplate.prototype.render = function (request) {
      renders = Math.max(renders, request.messages.length);
      return render.call(this, request);
    };
    try {
      const session = toySession({ text, script: ({ index }) => `answer ${index}` });
      const messages: ChatMessage[] = [user("start")];
      for (let turn = 0; turn < 300; turn++) {
        const result = await session.agent.chat({ messages });
        messages.push(result.message, user(`turn ${turn}`));
      }
      // The beginning, the last answer and what came after it: never the whole history.
      expect(renders).toBeLessThanOrEqual(3);
      const [row, ...others] = session.trajectories();
      expect(others).toEqual([]);
      expect(row!.calls).toHaveLength(300);
      const prompts = session.engine.requests.map((request) => request.tokens.length);
      const added = prompts.slice(1).map((length, index) => length - prompts[index]!);
      expect(Math.max(...added)).toBeLessThan(40);
      expect(row!.tokens.length).toBe(
        prompts.at(-1)! + [...text.tokenizer.encode("answer 299", { special: "parse" })].length + 1,
      );
    } finally {
      ChatTemplate.prototype.render = render;
    }
  });

  test("ignores what clients change without saying anything else", async () => {
    const session = toySession({ script: scriptOf("one", "two") });
    await session.agent.chat({ messages: [user("q")] });
    const changed = {
      role: "assistant",
      content: [{ type: "text", text: "one" }],
      tool_calls: [],
      refusal: null,
    } as unknown as ChatMessage;
    await session.agent.chat({ messages: [user("q"), changed, user("r")] });
    const { calls } = await session.close();
    expect(calls[1]!.parent).toBe("r0-c0");
  });
});

describe("drift", () => {
  const chat = async (session: ReturnType<typeof toySession>, ...messages: ChatMessage[]) =>
    (await session.agent.chat({ messages })).message;

  async function driftOf(session: ReturnType<typeof toySession>, call: number) {
    const { captured } = session;
    await session.close();
    return captured()[call]!.drift;
  }

  test("is template when the template rewrites an answer, and the sampled ids stay", async () => {
    const trimming = chatMl.replace("{{ m.content }}", "{{ m.content | trim }}");
    const session = toySession({ text: toyModel(toyTokenizer(), trimming), script: scriptOf("  padded ") });
    const answer = await chat(session, user("q"));
    await chat(session, user("q"), answer, user("r"));
    expect(promptOf(session, 1)).toContain("assistant\n  padded <|im_end|>\n<|im_start|>user\nr");
    const drift = await driftOf(session, 1);
    expect(drift).toMatchObject({ kind: "template", trainedTokens: 0 });
    expect(drift.text.startsWith("padded<|im_end|>")).toBe(true);
    const [row] = session.trajectories();
    expect(session.tokenizer.decode(row!.tokens.subarray(drift.at!, drift.at! + 4))).toBe("  pa");
  });

  test("is template when the history drops what stood there, and the next prompt is still what follows an answer", async () => {
    const forgetful =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n" +
      "{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content }}{% endif %}" +
      "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    const text = toyModel(toyTokenizer(), forgetful);
    const script = scriptOf("<think>hm</think>yes", "<think>so</think>no");
    const exact = toySession({ text, script });
    const answer = await chat(exact, user("q"));
    await chat(exact, user("q"), answer, user("r"));
    expect(promptOf(exact, 1)).toContain("<think>hm</think>yes<|im_end|>\n<|im_start|>user\nr<|im_end|>\n");
    expect(await driftOf(exact, 1)).toMatchObject({ kind: "template", trainedTokens: 0 });

    const again = toySession({ text, script, settings: { history: "rerender" } });
    const same = await chat(again, user("q"));
    await chat(again, user("q"), same, user("r"));
    expect(promptOf(again, 1)).not.toContain("think");
    const drift = await driftOf(again, 1);
    expect(drift.kind).toBe("template");
    expect(drift.trainedTokens).toBe("<think>hm</think>yes".length + 1);
    // Both ends of the tree are trained, each sampled token once.
    const rows = again.trajectories();
    expect(rows.map((row) => row.calls)).toEqual([["r0-c0"], ["r0-c0", "r0-c1"]]);
    const trained = rows.reduce((sum, row) => sum + row.trainable.reduce((total, one) => total + one, 0), 0);
    expect(trained).toBe("<think>hm</think>yes".length + 1 + "<think>so</think>no".length + 1);
  });

  test("is retoken under rerender too, when only the ids differ", async () => {
    const tokenizer = toyTokenizer(["l o"]);
    const [l, o, end] = ["l", "o", "<|im_end|>"].map((token) => tokenizer.idOf(token) as number);
    const session = toySession({
      text: toyModel(tokenizer),
      answer: (_, call) => (call === 0 ? [{ ids: [l!, o!, end!] }] : null),
      settings: { history: "rerender", maxNewTokens: 2 },
    });
    const answer = await chat(session, user("q"));
    await chat(session, user("q"), answer, user("r"));
    expect(await driftOf(session, 1)).toMatchObject({ kind: "retoken", trainedTokens: 3 });
  });

  test("is edit when the client changed an answer, and the conversation branches there", async () => {
    const session = toySession({ script: scriptOf("one", "two", "three") });
    const one = await chat(session, user("q"));
    const two = await chat(session, user("q"), one, user("r"));
    await chat(session, user("q"), one, user("r"), assistant("TWO"), user("s"));
    expect(two.content).toBe("two");
    expect(promptOf(session, 2)).toContain("TWO<|im_end|>");
    expect(await driftOf(session, 2)).toMatchObject({ kind: "edit", trainedTokens: "two".length + 1 });
    const rows = session.trajectories();
    expect(rows.map((row) => row.calls)).toEqual([
      ["r0-c0", "r0-c1"],
      ["r0-c0", "r0-c2"],
    ]);
    const answers = rows.map((row) =>
      session.tokenizer.decode([...row.tokens].filter((_, at) => row.trainable[at] === 1)),
    );
    expect(answers).toEqual(["one<|im_end|>two<|im_end|>", "three<|im_end|>"]);
  });

  test("is compaction when the agent says so, or a shorter history stands in the place of a longer one", async () => {
    const system: ChatMessage = { role: "system", content: "s" };
    const declared = toySession({ script: scriptOf("one", "two") });
    await chat(declared, system, user("q"));
    declared.agent.compact();
    await chat(declared, system, user("summary"));
    expect(await driftOf(declared, 1)).toMatchObject({ kind: "compaction", trainedTokens: "one".length + 1 });

    const silent = toySession({ script: scriptOf("one", "two", "three") });
    const one = await chat(silent, system, user("q"));
    await chat(silent, system, user("q"), one, user("r"));
    await chat(silent, system, user("summary"));
    expect(await driftOf(silent, 2)).toMatchObject({ kind: "compaction", trainedTokens: "onetwo".length + 2 });
  });

  test("is none for a conversation of its own, such as a sub-agent's", async () => {
    const session = toySession({ script: scriptOf("one", "two", "three") });
    await chat(session, { role: "system", content: "main" }, user("q"));
    await chat(session, { role: "system", content: "helper" }, user("look"));
    await chat(session, { role: "system", content: "main" }, user("another"));
    await session.close();
    expect(session.captured().map((call) => [call.drift.kind, call.parent])).toEqual([
      ["none", null],
      ["none", null],
      ["none", null],
    ]);
    expect(session.trajectories()).toHaveLength(3);
  });

  test("is tools when another tool list changes what the model was shown", async () => {
    const withTools = "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}".concat(chatMl);
    const session = toySession({ text: toyModel(toyTokenizer(), withTools), script: scriptOf("one", "two", "three") });
    const tools = [{ type: "function", function: { name: "add", parameters: {} } }] as const;
    const first = await session.agent.chat({ messages: [user("q")], tools });
    const second = await session.agent.chat({ messages: [user("q"), first.message, user("r")], tools });
    await session.agent.chat({ messages: [user("q"), first.message, user("r"), second.message, user("s")] });
    await session.close();
    expect(session.captured().map((call) => call.drift.kind)).toEqual(["none", "none", "tools"]);
    expect(session.captured()[2]).toMatchObject({
      keptTokens: "x".length,
      drift: { trainedTokens: "onetwo".length + 2 },
    });
    expect(session.captured().map((call) => call.tools?.length ?? null)).toEqual([1, null, 0]);
  });
});
