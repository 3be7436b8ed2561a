import { describe, expect, test } from "vitest";
import { RollscopeError } from "../../protocol/errors.ts";
import { scriptOf, toyModel, toySession } from "../support/captured.ts";
import { manualClock } from "../support/manualClock.ts";

const messages = [{ role: "user", content: "q" }] as const;
const ids = (text: string) => [...new TextEncoder().encode(text)];

function reasonOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error("it was answered");
    },
    (error: unknown) => error,
  );
}

describe("a call that does not end well keeps what was sampled", () => {
  test("when the rollout is aborted: cancelled, and the abort reaches the engine", async () => {
    const over = new AbortController();
    const session = toySession({
      signal: over.signal,
      answer: () => [{ ids: ids("par") }, { ids: ids("tial"), hangs: true }],
    });
    const reason = reasonOf(session.agent.chat({ messages }));
    await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
    over.abort(new RollscopeError("SAMPLING_ROLLOUT_TIMEOUT", "Too long.", { next: "Wait." }));
    expect(await reason).toMatchObject({ code: "SAMPLING_ROLLOUT_TIMEOUT", at: { call: "r0-c0", record: "r0" } });
    const { calls } = await session.close();
    expect(session.captured()[0]).toMatchObject({ status: "cancelled", text: "par", finishReason: "abort" });
    expect(session.captured()[0]!.logprobs.length).toBe(3);
    expect(calls[0]!.text).toBe("par");
    expect(session.engine.aborted).toBe(1);
    expect(session.trajectories()).toEqual([]);
  });

  test("when it takes too long: failed with a code of its own", async () => {
    const clock = manualClock();
    const session = toySession({
      answer: () => [{ ids: ids("par") }, { ids: [], hangs: true }],
      settings: { callLimit: 5000 },
      after: (milliseconds, then) => clock.after(milliseconds, then),
    });
    const reason = reasonOf(session.agent.chat({ messages }));
    await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));
    await clock.advance(5000);
    expect(await reason).toMatchObject({ code: "CAPTURE_CALL_TIMEOUT", retryable: true });
    expect(session.captured()[0]).toMatchObject({ status: "failed", text: "par" });
  });

  test("when the engine fails, stops without an end, or reports a number that is none", async () => {
    const cases = [
      { chunk: { ids: [], throws: new Error("boom") }, code: "CAPTURE_ENGINE_FAILED" },
      {
        chunk: { ids: [], throws: new RollscopeError("ENGINE_OUT_OF_MEMORY", "No memory.", { next: "Buy some." }) },
        code: "ENGINE_OUT_OF_MEMORY",
      },
      { chunk: { ids: [], finishReason: "error" as const }, code: "CAPTURE_ENGINE_FAILED" },
      { chunk: { ids: ids("x"), logprobs: [Number.NaN] }, code: "ENGINE_NON_FINITE" },
    ];
    for (const { chunk, code } of cases) {
      const session = toySession({ answer: () => [{ ids: ids("ab") }, chunk] });
      expect(await reasonOf(session.agent.chat({ messages }))).toMatchObject({
        code,
        at: { record: "r0", call: "r0-c0" },
      });
      await session.close();
      expect(session.captured()[0]).toMatchObject({ status: "failed", text: "ab", error: { code } });
    }
  });

  test("and the next call goes on from the last one that was answered", async () => {
    const session = toySession({
      answer: (_, call) => (call === 1 ? [{ ids: [], throws: new Error("boom") }] : null),
      settings: { maxNewTokens: 4 },
    });
    const first = await session.agent.chat({ messages });
    const next = [...messages, first.message, { role: "user", content: "r" } as const];
    await reasonOf(session.agent.chat({ messages: next }));
    await session.agent.chat({ messages: next });
    await session.close();
    expect(session.captured().map((call) => [call.id, call.status, call.parent?.id ?? null])).toEqual([
      ["r0-c0", "completed", null],
      ["r0-c1", "failed", "r0-c0"],
      ["r0-c2", "completed", "r0-c0"],
    ]);
    expect(session.trajectories().map((row) => row.calls)).toEqual([["r0-c0", "r0-c2"]]);
  });
});

describe("a call is refused with a code, and is on record", () => {
  test("when its prompt fills the context", async () => {
    const session = toySession({ maxPositions: 20 });
    expect(await reasonOf(session.agent.chat({ messages }))).toMatchObject({
      code: "CAPTURE_CONTEXT_OVERFLOW",
      at: { call: "r0-c0", limit: 20 },
    });
    expect(session.captured()[0]).toMatchObject({ status: "failed", error: { code: "CAPTURE_CONTEXT_OVERFLOW" } });
    expect(session.captured()[0]!.promptDelta.length).toBeGreaterThan(19);
    expect(session.engine.requests).toEqual([]);
  });

  test("when the template refuses the conversation", async () => {
    const session = toySession({
      text: { ...toyModel(), chatTemplate: "{{ raise_exception('no') }}" },
    });
    expect(await reasonOf(session.agent.chat({ messages }))).toMatchObject({ code: "TEMPLATE_REFUSED" });
    expect(session.captured()[0]).toMatchObject({ status: "failed", error: { code: "TEMPLATE_REFUSED" } });
  });

  test("when the rollout makes more calls than it may, or one after its end", async () => {
    const session = toySession({ settings: { maxTurns: 1, maxNewTokens: 2 } });
    await session.agent.chat({ messages });
    expect(await reasonOf(session.agent.chat({ messages }))).toMatchObject({ code: "CAPTURE_TURN_LIMIT" });
    await session.close();
    expect(await reasonOf(session.agent.chat({ messages }))).toMatchObject({ code: "CAPTURE_SESSION_CLOSED" });
  });

  test("when its messages are not messages", async () => {
    const session = toySession();
    for (const wrong of [[], [{ role: "bot", content: "x" }], [{ role: "user" }], "hello"]) {
      const refused = reasonOf(session.agent.chat({ messages: wrong as never }));
      expect(await refused).toMatchObject({ code: "CAPTURE_REQUEST_INVALID" });
    }
    const image = [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }];
    expect(await reasonOf(session.agent.chat({ messages: image as never }))).toMatchObject({
      code: "ENGINE_MEDIA_UNSUPPORTED",
    });
  });
});

test("an answer is never longer than recipe, client and context allow", async () => {
  const limits: number[] = [];
  for (const [maxTokens, maxPositions] of [
    [undefined, 1000],
    [5, 1000],
    [500, 1000],
    [undefined, 50],
  ] as const) {
    const session = toySession({ settings: { maxNewTokens: 64 }, maxPositions });
    await session.agent.chat({ messages, ...(maxTokens ? { maxTokens } : {}) });
    limits.push(session.engine.requests[0]!.maxNewTokens);
  }
  const prompt = toySession().tokenizer.encode("<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n", {
    special: "parse",
  }).length;
  expect(limits).toEqual([64, 5, 64, 50 - prompt]);
});

test("scripted mode forces the ids of a text, once tokenised, and ends them", async () => {
  const session = toySession({ script: scriptOf("hello") });
  const result = await session.agent.chat({ messages });
  const [call] = session.captured();
  expect(result).toMatchObject({ text: "hello", finishReason: "stop" });
  expect(session.tokenizer.decode(call!.output)).toBe("hello<|im_end|>");
  expect(new Set(call!.logprobs).size).toBeGreaterThan(1);
});
