// White-box sessions on the real model and the embedded engine.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { captureModel, openCaptureSession } from "../../agent-daemon/src/capture/openSession.ts";
import type { CaptureModel, CaptureSessionOptions } from "../../agent-daemon/src/capture/session.ts";
import { embeddedInferenceEngine, openEmbeddedModel } from "../../agent-daemon/src/engines/embedded.ts";
import type { InferenceEngine } from "../../agent-daemon/src/engines/interface.ts";
import { tokenByteTable } from "../../agent-daemon/src/engines/tokenByteTable.ts";
import { loadModelText } from "../../agent-daemon/src/engines/tokenizer/load.ts";
import type { ChatMessage } from "../../protocol/agent.ts";
import { defaultSettings, scriptOf } from "../support/captured.ts";
import { smollm2Path } from "../support/model.ts";

let embedded: Awaited<ReturnType<typeof openEmbeddedModel>>;
let engine: InferenceEngine;
let model: CaptureModel;

beforeAll(async () => {
  const text = loadModelText(smollm2Path());
  embedded = await openEmbeddedModel(smollm2Path());
  engine = await embeddedInferenceEngine(embedded, { tokenBytes: tokenByteTable(text.tokenizer) });
  model = captureModel(engine, text);
});

afterAll(async () => {
  await engine?.dispose();
  embedded?.dispose();
});

function open(options: Partial<CaptureSessionOptions> = {}) {
  return openCaptureSession({
    record: "r0",
    model,
    key: { seed: 1, record: 2 },
    agentSeed: 3,
    signal: new AbortController().signal,
    truncated: "keep",
    store: null,
    settings: defaultSettings,
    ...options,
  });
}

const user = (content: string): ChatMessage => ({ role: "user", content });

describe("a session on the embedded engine", () => {
  test("records the model's own log-probabilities of a scripted conversation", async () => {
    const session = open({ script: scriptOf("7", "The answer is 7.") });
    const messages = [user("What is 3 + 4?")];
    messages.push((await session.agent.chat({ messages })).message, user("Say it in a sentence."));
    const second = await session.agent.chat({ messages });
    expect(second).toMatchObject({ text: "The answer is 7.", finishReason: "stop" });
    expect(second.usage.cachedTokens).toBeGreaterThan(0);
    await session.close();
    const [row] = session.trajectories();
    const trained = [...row!.trainable.keys()].filter((at) => row!.trainable[at] === 1);
    const scored = await engine.score({ tokens: row!.tokens, temperature: 1, from: 1 });
    expect(trained.length).toBe(session.captured().reduce((sum, call) => sum + call.output.length, 0));
    for (const at of trained) expect(row!.rollout![at]).toBeCloseTo(scored.logprobs[at - 1]!, 4);
  });

  test("samples the same tokens again for the same names, and stops at a stop string", async () => {
    const ask = async () => {
      const session = open({ settings: { ...defaultSettings, maxNewTokens: 12 } });
      await session.agent.chat({ messages: [user("Tell me a story.")] });
      return [...session.captured()[0]!.output];
    };
    expect(await ask()).toEqual(await ask());
    const session = open({ script: scriptOf("sum is 9\nObs: extra") });
    const result = await session.agent.chat({ messages: [user("q")], stop: ["\nObs:"] });
    expect(result).toMatchObject({ text: "sum is 9", finishReason: "stop" });
    const [call] = session.captured();
    expect(model.tokenizer.decode(call!.output)).toBe("sum is 9\nObs:");
    expect(call!.logprobs.length).toBe(call!.output.length);
  });

  test("keeps the part of an answer that was sampled before its rollout was aborted", async () => {
    const over = new AbortController();
    const session = open({ signal: over.signal, settings: { ...defaultSettings, maxNewTokens: 4000, temperature: 0 } });
    const asked = session.agent.chat({ messages: [user("Count from 1 to 500, one number a line.")] });
    const refused = expect(asked).rejects.toMatchObject({ code: "CAPTURE_CALL_CANCELLED" });
    while (engine.health().running === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    over.abort();
    await refused;
    await session.close();
    expect(session.captured()[0]).toMatchObject({ status: "cancelled", finishReason: "abort" });
  });
});
