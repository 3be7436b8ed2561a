// How requests share the engine: prefixes computed once, caches that are too small, pauses, new weights, aborts.
import { afterAll, beforeAll, expect, test } from "vitest";
import { embeddedTrainingEngine } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import { rows } from "../support/batches.ts";
import { generate, randomTokens, requestOf } from "../support/generated.ts";
import { blockBytes, openTinyModel, withEngine } from "../support/tinyEngine.ts";

let model: EmbeddedModel;
let vocabulary: number;
beforeAll(async () => {
  model = await openTinyModel();
  vocabulary = model.info().vocabularySize;
});
afterAll(() => model.dispose());

/** Changes the weights by one optimizer step; returns the new version. */
async function trainOneStep(): Promise<number> {
  const trainer = embeddedTrainingEngine(model);
  const batch = rows([randomTokens(99, 40, vocabulary)]);
  await trainer.accumulate([batch], { logprob: true, entropy: false, value: false }, (_, { logprob }) => ({
    logprob: Float32Array.from(logprob!, (value) => (Number.isNaN(value) ? 0 : -1)),
  }));
  const { version } = await trainer.step({
    ...{ lr: 1e-2, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0 },
    ...{ decayed: "matrices", maxGradNorm: null },
  });
  return version;
}

test("64 requests with 8 distinct prompts compute 8 prompts", async () => {
  await withEngine(model, {}, async (engine) => {
    const prompts = Array.from({ length: 8 }, (_, index) => randomTokens(index, 90 + index, vocabulary));
    await engine.pause("hold");
    const answers = Array.from({ length: 64 }, (_, record) =>
      generate(engine, { tokens: prompts[record >> 3]!, maxNewTokens: 12, key: { seed: 1, record, call: 0 } }),
    );
    expect(engine.health()).toMatchObject({ paused: true, running: 0, queued: 64 });
    await engine.resume();
    const cached = (await Promise.all(answers)).map((answer) => answer.cachedTokens);
    expect(cached).toEqual(prompts.flatMap((prompt) => [0, ...Array(7).fill(prompt.length)]));
    const { prefilledTokens, decodedTokens } = engine.statistics();
    expect(prefilledTokens).toBe(prompts.reduce((sum, prompt) => sum + prompt.length, 0));
    expect(decodedTokens).toBe(64 * 11);
  });
});

test("the next turn computes only what was added", async () => {
  await withEngine(model, {}, async (engine) => {
    const first = randomTokens(1, 45, vocabulary);
    const answer = await generate(engine, { tokens: first, maxNewTokens: 30 });
    const history = [...first, ...answer.ids];
    const turn = await generate(engine, { tokens: [...history, ...randomTokens(2, 10, vocabulary)] });
    // The last sampled token was never an input, so its keys and values are not there.
    expect(turn.cachedTokens).toBe(history.length - 1);
  });
});

test("requests whose prompts share a beginning compute it once, whichever comes first", async () => {
  await withEngine(model, { rowsPerIteration: 32 }, async (engine) => {
    const shared = randomTokens(5, 64, vocabulary);
    await engine.pause("hold");
    const answers = Array.from({ length: 6 }, (_, record) =>
      generate(engine, { tokens: [...shared, ...randomTokens(record + 10, 20, vocabulary)] }),
    );
    await engine.resume();
    await Promise.all(answers);
    expect(engine.statistics().prefilledTokens).toBe(64 + 6 * 20);
  });
});

test("a request that can never fit is refused with the numbers, others go on", async () => {
  await withEngine(model, { cacheBytes: 4 * blockBytes(model) }, async (engine) => {
    const fitting = generate(engine, { tokens: randomTokens(1, 30, vocabulary), maxNewTokens: 34 });
    await expect(generate(engine, { tokens: randomTokens(2, 40, vocabulary), maxNewTokens: 25 })).rejects.toMatchObject(
      { code: "ENGINE_CACHE_TOO_SMALL", message: expect.stringMatching(/65 positions.*64/) },
    );
    expect((await fitting).ids).toHaveLength(34);
  });
});

test("abort ends the stream at once and keeps what was sampled", async () => {
  await withEngine(model, {}, async (engine) => {
    const controller = new AbortController();
    let seen = 0;
    const answer = await generate(
      engine,
      { tokens: randomTokens(1, 10, vocabulary), maxNewTokens: 480 },
      controller.signal,
      ({ ids }) => {
        seen += ids.length;
        if (seen === 5) controller.abort();
      },
    );
    expect(answer.finishReason).toBe("abort");
    expect(answer.ids.length).toBeGreaterThanOrEqual(5);
    expect(answer.ids.length).toBeLessThan(480);
    expect(answer.logprobs).toHaveLength(answer.ids.length);
    expect(engine.health()).toMatchObject({ running: 0, queued: 0 });
    const whole = await generate(engine, { tokens: randomTokens(1, 10, vocabulary), maxNewTokens: 480 });
    expect(whole.ids.slice(0, answer.ids.length)).toEqual(answer.ids);
  });
});

test("leaving the loop early aborts the request", async () => {
  await withEngine(model, {}, async (engine) => {
    const request = requestOf({ tokens: randomTokens(1, 10, vocabulary), maxNewTokens: 480 });
    for await (const _ of engine.generate(request, new AbortController().signal)) break;
    await engine.pause("wait");
    expect(engine.health()).toMatchObject({ running: 0, queued: 0 });
    expect(engine.statistics().decodedTokens).toBeLessThan(479);
  });
});

test("pause wait lets what runs finish and starts nothing new before resume", async () => {
  await withEngine(model, {}, async (engine) => {
    let paused: Promise<void> | undefined;
    const running = generate(engine, { tokens: randomTokens(1, 10, vocabulary), maxNewTokens: 40 }, undefined, () => {
      paused ??= engine.pause("wait");
    });
    expect((await running).finishReason).toBe("length");
    await paused;
    const late = generate(engine, { tokens: randomTokens(2, 10, vocabulary) });
    await engine.pause("wait");
    expect(engine.health()).toMatchObject({ paused: true, running: 0, queued: 1 });
    await engine.resume();
    expect((await late).ids).toHaveLength(8);
  });
});

test("pause abort ends all requests, running and queued, and resume serves again", async () => {
  await withEngine(model, { maxRunning: 1 }, async (engine) => {
    const answers = [1, 2].map((seed) =>
      generate(engine, { tokens: randomTokens(seed, 10, vocabulary), maxNewTokens: 480 }),
    );
    await engine.pause("abort");
    expect((await Promise.all(answers)).map((answer) => answer.finishReason)).toEqual(["abort", "abort"]);
    await engine.resume();
    expect((await generate(engine, { tokens: [5, 6, 7] })).finishReason).toBe("length");
  });
});

test("a request held across new weights goes on under them, with the version of each token", async () => {
  const copy = await openTinyModel();
  const original = model;
  model = copy;
  try {
    await withEngine(copy, {}, async (engine) => {
      const prompt = randomTokens(4, 20, vocabulary);
      let updating: Promise<number> | undefined;
      const update = async () => {
        await engine.pause("hold");
        const trained = await trainOneStep();
        const served = await engine.updateWeights({ kind: "shared" });
        await engine.resume();
        expect(served).toBe(trained);
        return served;
      };
      let seen = 0;
      const answer = await generate(engine, { tokens: prompt, maxNewTokens: 480 }, undefined, ({ ids }) => {
        seen += ids.length;
        if (seen === 6) updating = update();
      });
      const version = await updating;
      expect(version).toBe(1);
      const changed = answer.versions.indexOf(1);
      expect(changed).toBeGreaterThanOrEqual(6);
      expect(answer.versions).toEqual([...Array(changed).fill(0), ...Array(480 - changed).fill(1)]);
      // What came after is what the new weights sample for that prefix: nothing of the old cache is left in it.
      const continued = await generate(engine, {
        tokens: [...prompt, ...answer.ids.slice(0, changed)],
        maxNewTokens: 480 - changed,
      });
      expect(continued.ids).toEqual(answer.ids.slice(changed));
      expect(continued.logprobs).toEqual(answer.logprobs.slice(changed));
    });
  } finally {
    model = original;
    copy.dispose();
  }
});

test("the trainer's steps are not seen before updateWeights", async () => {
  const copy = await openTinyModel();
  const original = model;
  model = copy;
  try {
    await withEngine(copy, {}, async (engine) => {
      const wish = { tokens: randomTokens(4, 20, vocabulary), maxNewTokens: 30 };
      const before = await generate(engine, wish);
      await trainOneStep();
      expect(await generate(engine, wish)).toEqual({ ...before, cachedTokens: 19 });
      expect(await engine.updateWeights({ kind: "shared" })).toBe(1);
      const after = await generate(engine, wish);
      expect(after.cachedTokens).toBe(0);
      expect(new Set(after.versions)).toEqual(new Set([1]));
      expect(after.logprobs).not.toEqual(before.logprobs);
    });
  } finally {
    model = original;
    copy.dispose();
  }
});

test("released memory makes requests wait, and they go on after it is restored", async () => {
  await withEngine(model, {}, async (engine) => {
    const wish = { tokens: randomTokens(4, 20, vocabulary), maxNewTokens: 480 };
    const undisturbed = await generate(engine, wish);
    let seen = 0;
    let released: Promise<void> | undefined;
    const answer = generate(engine, wish, undefined, ({ ids }) => {
      seen += ids.length;
      if (seen === 3) {
        released = engine.releaseMemory().then(() => {
          expect(engine.health()).toMatchObject({ ok: false, running: 0, queued: 1, cachedTokens: 0 });
          expect(engine.statistics().cacheBlocks).toBe(0);
          return engine.restoreMemory();
        });
      }
    });
    expect((await answer).ids).toEqual(undisturbed.ids);
    await released;
  });
});

test("dispose ends running requests with what they have", async () => {
  let answer: ReturnType<typeof generate> | undefined;
  await withEngine(model, {}, async (engine) => {
    answer = generate(engine, { tokens: randomTokens(1, 10, vocabulary), maxNewTokens: 480 });
  });
  expect((await answer)?.finishReason).toBe("abort");
});
