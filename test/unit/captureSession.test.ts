import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type OpenAI from "openai";
import { afterAll, describe, expect, test } from "vitest";
import { callDocument, toolEventDocument } from "../../agent-daemon/src/capture/callDocuments.ts";
import { conversationTokens, requestMessages } from "../../agent-daemon/src/capture/capturedCall.ts";
import type { CapturedTrajectory } from "../../agent-daemon/src/capture/trajectories.ts";
import { versionsOf } from "../../agent-daemon/src/capture/trajectories.ts";
import { runRollout } from "../../agent-daemon/src/sampling/rollout.ts";
import type { OpenSession } from "../../agent-daemon/src/sampling/session.ts";
import { openFileBlobs } from "../../agent-daemon/src/store/fileBlobs.ts";
import { loadTrajectory } from "../../agent-daemon/src/store/loadTrajectory.ts";
import { openSqliteStore } from "../../agent-daemon/src/store/sqliteStore.ts";
import { checkTrajectories } from "../../agent-daemon/src/training/trajectoryCheck.ts";
import type { ChatMessage } from "../../protocol/agent.ts";
import { callDocumentSchema } from "../../protocol/call.ts";
import { toolEventDocumentSchema } from "../../protocol/record.ts";
import { scriptOf, toySession } from "../support/captured.ts";
import * as documents from "../support/documents.ts";
import { manualClock } from "../support/manualClock.ts";

const folder = mkdtempSync(join(tmpdir(), "rollscope-capture-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const user = (content: string): ChatMessage => ({ role: "user", content });
const client = (session: ReturnType<typeof toySession>) => session.agent.openai as unknown as OpenAI;

describe("the openai client of a session", () => {
  test("takes the same way as agent.chat: same prompt, same numbers, same record", async () => {
    const messages = [user("q")];
    const spoken = toySession({ script: scriptOf("hello", "again") });
    const direct = toySession({ script: scriptOf("hello", "again") });
    const { message } = await direct.agent.chat({ messages });
    await direct.agent.chat({ messages: [...messages, message, user("r")] });

    const first = await client(spoken).chat.completions.create({
      model: "policy",
      messages: [{ role: "user", content: "q" }],
    });
    expect(first.choices[0]).toMatchObject({ finish_reason: "stop", message: { role: "assistant", content: "hello" } });
    await client(spoken).chat.completions.create({
      model: "policy",
      messages: [{ role: "user", content: "q" }, first.choices[0]!.message, { role: "user", content: "r" }],
    });
    await Promise.all([spoken.close(), direct.close()]);
    expect(spoken.captured().map((call) => [...conversationTokens(call)])).toEqual(
      direct.captured().map((call) => [...conversationTokens(call)]),
    );
    expect(spoken.captured()[1]!.parent!.id).toBe("r0-c0");
    expect(spoken.captured()[0]).toMatchObject({ dialect: "chat", client: expect.stringContaining("OpenAI") });
    expect(first.usage).toMatchObject({
      completion_tokens: 6,
      prompt_tokens: direct.engine.requests[0]!.tokens.length,
    });
  });

  test("samples n siblings with random streams of their own; each is a trajectory", async () => {
    const session = toySession({ settings: { maxNewTokens: 6 } });
    const { choices, usage } = await client(session).chat.completions.create({
      model: "policy",
      messages: [{ role: "user", content: "q" }],
      n: 3,
    });
    expect(new Set(choices.map((choice) => choice.message.content)).size).toBe(3);
    expect(choices.map((choice) => choice.index)).toEqual([0, 1, 2]);
    expect(usage!.completion_tokens).toBe(18);
    expect(session.trajectories().map((row) => row.calls)).toEqual([["r0-c0"], ["r0-c1"], ["r0-c2"]]);
    expect(session.engine.requests.map((request) => request.key)).toEqual(
      [0, 1, 2].map((call) => ({ seed: 1, record: 2, call })),
    );
  });

  test("repeats an answer for a repeated seed, and records what the recipe decides otherwise", async () => {
    const session = toySession({ settings: { maxNewTokens: 6 } });
    const ask = async (seed: number) =>
      (
        await client(session).chat.completions.create({
          model: "policy",
          messages: [{ role: "user", content: "q" }],
          seed,
          temperature: 0.3,
        })
      ).choices[0]!.message.content;
    const [one, two, three] = [await ask(7), await ask(7), await ask(8)];
    expect(one).toBe(two);
    expect(three).not.toBe(one);
    expect(session.captured()[0]!.asked).toEqual({ seed: 7, temperature: 0.3 });
    expect(session.captured()[0]!.temperature).toBe(1);
  });

  test("gives the log-probability of every sampled token, with alternatives when asked", async () => {
    const session = toySession({ script: scriptOf("hi") });
    const { choices } = await client(session).chat.completions.create({
      model: "policy",
      messages: [{ role: "user", content: "q" }],
      logprobs: true,
      top_logprobs: 2,
    });
    const content = choices[0]!.logprobs!.content!;
    expect(content.map((entry) => entry.token)).toEqual(["h", "i", "<|im_end|>"]);
    expect(content.map((entry) => Math.fround(entry.logprob))).toEqual([...session.captured()[0]!.logprobs]);
    expect(content.every((entry) => entry.top_logprobs.length === 2)).toBe(true);
  });

  test("cuts at the request's and the recipe's stop strings and at the smaller token limit", async () => {
    const session = toySession({ script: scriptOf("one;two|three", "one|two;x", "abcdef"), settings: { stop: ["|"] } });
    const ask = async (more: object) =>
      (await client(session).chat.completions.create({
        model: "policy",
        messages: [{ role: "user", content: "q" }],
        ...more,
      })) as OpenAI.ChatCompletion;
    expect((await ask({ stop: ";" })).choices[0]!.message.content).toBe("one");
    expect((await ask({ stop: [";"] })).choices[0]!.message.content).toBe("one");
    expect((await ask({ max_completion_tokens: 2, max_tokens: 9 })).choices[0]).toMatchObject({
      finish_reason: "length",
      message: { content: "ab" },
    });
  });

  test("answers in OpenAI's own errors, never by dropping a wish", async () => {
    const session = toySession({ maxPositions: 60 });
    const ask = (more: object) =>
      client(session)
        .chat.completions.create({ model: "policy", messages: [{ role: "user", content: "q" }], ...more } as never)
        .then(
          () => "answered",
          (error: { status?: number; code?: string }) => [error.status, error.code],
        );
    const tools = [{ type: "function", function: { name: "add" } }];
    expect(await ask({ tools, tool_choice: "required" })).toEqual([400, "CONSTRAINT_UNSUPPORTED"]);
    expect(await ask({ response_format: { type: "json_object" } })).toEqual([400, "CONSTRAINT_UNSUPPORTED"]);
    expect(await ask({ messages: [{ role: "user", content: "x".repeat(100) }] })).toEqual([
      400,
      "context_length_exceeded",
    ]);
    expect(await ask({ messages: [] })).toEqual([400, "CAPTURE_REQUEST_INVALID"]);
    expect(await ask({ n: 0 })).toEqual([400, "CAPTURE_REQUEST_INVALID"]);
    expect(await ask({ stream: true })).toEqual([400, "CAPTURE_STREAM_UNSUPPORTED"]);
    await session.close();
    expect(await ask({})).toEqual([404, "CAPTURE_SESSION_CLOSED"]);
  });
});

describe("tool events", () => {
  test("record name, arguments, result or error, and how long it took", async () => {
    let time = 1000;
    const session = toySession({ script: scriptOf("x"), now: () => time });
    await session.agent.chat({ messages: [user("q")] });
    const sum = await session.agent.tool("add", { a: 4, b: 5 }, ({ a, b }) => {
      time += 250;
      return a + b;
    });
    expect(sum).toBe(9);
    const failing = session.agent.tool("fail", undefined, async () => {
      throw new TypeError("no");
    });
    await expect(failing).rejects.toThrow("no");
    const loop: { self?: unknown } = {};
    loop.self = loop;
    await session.agent.tool("odd", loop, () => new Date(0));
    const { toolEvents, stats } = await session.close();
    expect(toolEvents).toMatchObject([
      { name: "add", arguments: { a: 4, b: 5 }, result: 9, milliseconds: 250, call: "r0-c0" },
      { name: "fail", arguments: null, error: "TypeError: no", milliseconds: 0 },
      { name: "odd", result: "1970-01-01T00:00:00.000Z" },
    ]);
    expect(stats.toolErrors).toBe(1);
    const event = toolEvents[1] as Parameters<typeof toolEventDocument>[0];
    expect(toolEventDocumentSchema.parse(toolEventDocument(event, "r0", "run"))).toMatchObject({
      id: "r0-t1",
      error: { message: "TypeError: no", call: "r0-c0" },
    });
  });
});

describe("a session's trajectories", () => {
  test("carry token, mask, number, version, turn and temperature of every token", async () => {
    const session = toySession({ script: scriptOf("one", "two"), settings: { temperature: 0.7 } });
    const { message } = await session.agent.chat({ messages: [user("q")] });
    session.engine.version = 3;
    await session.agent.chat({ messages: [user("q"), message, user("r")] });
    const { policyVersions } = await session.close();
    expect(policyVersions).toEqual({ min: 0, max: 3 });
    const [row] = session.trajectories();
    checkTrajectories([{ ...row!, group: null, score: 1 }]);
    const sampled = session.captured().map((call) => call.output.length);
    const trained = [...row!.trainable.entries()].flatMap(([at, one]) => (one === 1 ? [at] : []));
    expect(trained.length).toBe(sampled[0]! + sampled[1]!);
    expect(trained.map((at) => row!.turn[at])).toEqual([...Array(4).fill(0), ...Array(4).fill(1)]);
    expect(trained.map((at) => row!.version[at])).toEqual([...Array(4).fill(0), ...Array(4).fill(3)]);
    expect(trained.map((at) => row!.call[at])).toEqual([...Array(4).fill(0), ...Array(4).fill(1)]);
    expect(new Set(trained.map((at) => row!.temperature[at]))).toEqual(new Set([Math.fround(0.7)]));
    expect(trained.map((at) => row!.rollout![at])).toEqual(session.captured().flatMap((call) => [...call.logprobs]));
    const inputs = [...row!.tokens.keys()].filter((at) => row!.trainable[at] === 0);
    expect(inputs.every((at) => row!.version[at] === -1 && row!.call[at] === -1 && row!.temperature[at] === 1)).toBe(
      true,
    );
    expect(inputs.every((at) => Number.isNaN(row!.rollout![at]))).toBe(true);
  });

  test("train nothing that was greedy, and mask cut-off answers when the recipe says so", async () => {
    const greedy = toySession({ script: scriptOf("one"), settings: { temperature: 0 } });
    await greedy.agent.chat({ messages: [user("q")] });
    expect((await greedy.close()).stats).toMatchObject({ trainableTokens: 0, outputTokens: 4 });
    const cut = toySession({ script: scriptOf("a long one"), settings: { maxNewTokens: 3 }, truncated: "mask" });
    await cut.agent.chat({ messages: [user("q")] });
    expect((await cut.close()).stats).toMatchObject({ trainableTokens: 0, truncated: true });
  });

  test("do not depend on whether calls ran at the same time", async () => {
    const ask = (session: ReturnType<typeof toySession>, index: number) =>
      session.agent.chat({ messages: [user(`q${index}`)] });
    const settings = { maxNewTokens: 5 };
    const [together, apart] = [toySession({ settings }), toySession({ settings })];
    await Promise.all([0, 1, 2].map((index) => ask(together, index)));
    for (const index of [0, 1, 2]) await ask(apart, index);
    const rows = (session: typeof together) => session.trajectories().map((row) => [row.calls, ...row.tokens]);
    expect(rows(together)).toEqual(rows(apart));
  });
});

test("documents of the store hold exactly what was captured, and only what each call adds", async () => {
  const blobs = await openFileBlobs(join(folder, "blobs"));
  const session = toySession({ script: scriptOf("one", "two"), settings: { maxNewTokens: 50 } });
  const { message } = await session.agent.chat({ messages: [user("q".repeat(5000))] });
  await session.agent.chat({ messages: [user("q".repeat(5000)), message, user("r")] });
  await session.close();
  const documents = await Promise.all(session.captured().map((call) => callDocument(call, "run", blobs)));
  for (const document of documents) callDocumentSchema.parse(document);
  const [first, second] = documents;
  expect(second).toMatchObject({ parent: first!.id, keptMessages: 2, request: { messages: [user("r")], tools: null } });
  expect(second!.keptTokens + second!.promptDelta.length).toBe(session.engine.requests[1]!.tokens.length);
  expect(second!.promptDelta.length).toBeLessThan(60);
  expect(requestMessages(session.captured()[1]!)).toEqual([user("q".repeat(5000)), message, user("r")]);
  expect([...versionsOf(session.captured()[1]!)]).toEqual([0, 0, 0, 0]);
});

test("a scheduler's rollout runs on a session, and the store gives its conversation back token by token", async () => {
  const store = await openSqliteStore(join(folder, "records.sqlite"));
  const blobs = await openFileBlobs(join(folder, "rollout-blobs"));
  await store.tasks.insert([documents.task("task-1")]);
  await store.records.insert([documents.record("r0")]);
  const sessions: ReturnType<typeof toySession>[] = [];
  const openSession: OpenSession<readonly CapturedTrajectory[]> = (request) => {
    const session = toySession({
      ...request,
      store: { run: documents.run, records: store, blobs },
      script: scriptOf("one", "two"),
    });
    sessions.push(session);
    return session;
  };
  const outcome = await runRollout(
    {
      record: "r0",
      streamKey: "k",
      task: { id: "t", split: "train", index: 0, payload: {} },
      settings: { maxNewTokens: 9, maxTurns: 2, temperature: 1, topP: 1, topK: 0, minP: 0, stop: [] },
      limits: { start: null, callGap: null, total: 10_000, evaluate: 10_000 },
      cancel: new AbortController().signal,
    },
    {
      openSession,
      clock: manualClock(),
      recipe: {
        rollout: async (_, agent) => {
          const messages = [user("q")];
          messages.push((await agent.chat({ messages })).message, user("r"));
          await agent.tool("look", { at: 1 }, () => "seen");
          await agent.chat({ messages });
        },
        evaluate: ({ calls, text }) => (calls.length === 2 && text === "two" ? 1 : 0),
      },
    },
  );
  expect(outcome).toMatchObject({ kind: "scored", score: { score: 1 }, report: { stats: { turns: 2 } } });
  const loaded = await loadTrajectory(store, blobs, "r0");
  const [session] = sessions;
  expect(loaded.calls.map((call) => [...call.promptTokens()])).toEqual(
    session!.engine.requests.map((request) => [...request.tokens]),
  );
  expect(loaded.calls[1]!.messages()).toEqual([user("q"), { role: "assistant", content: "one" }, user("r")]);
  expect(loaded.calls.map((call) => [...call.logprobs])).toEqual(session!.captured().map((call) => [...call.logprobs]));
  expect(loaded.toolEvents).toMatchObject([{ name: "look", arguments: { at: 1 }, result: "seen", call: "r0-c0" }]);
  await store.dispose();
});
