// A row's logits do not depend on what is computed beside it, bit for bit: other requests, the cutting of prompts into chunks,
// cache hits, evictions. Every alternative of every token is compared, so whole distributions are.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { embeddedInferenceEngine, openEmbeddedModel } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedInferenceEngine, InferenceOptions } from "../../agent-daemon/src/engines/embeddedInference.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import { type Generated, generate, randomTokens, type Wish } from "../support/generated.ts";
import { modelOracles } from "../support/modelOracles.ts";

const requests = 64;
const newTokens = 20;

/** Prompts of many lengths; every third continues the beginning of the one before. */
function wishes(vocabulary: number): Wish[] {
  const prompts: number[][] = [];
  for (let index = 0; index < requests; index++) {
    const own = randomTokens(index + 1, 2 + ((index * 37) % 90), vocabulary);
    prompts.push(index % 3 === 1 ? [...prompts[index - 1]!.slice(0, 40), ...own.slice(0, 30)] : own);
  }
  return prompts.map((tokens, record) => ({
    tokens,
    maxNewTokens: newTokens,
    temperature: [0, 0.7, 1, 1.3][record % 4]!,
    topAlternatives: vocabulary,
    key: { seed: 11, record, call: 0 },
  }));
}

/** Everything of an answer, whole distributions as a digest of their bits. */
function facts({ ids, logprobs, alternatives, finishReason }: Generated) {
  const distributions = createHash("sha256");
  for (const ranks of alternatives) {
    distributions.update(Int32Array.from(ranks.keys())).update(Float32Array.from(ranks.values()));
  }
  return { ids, logprobs, finishReason, distributions: distributions.digest("hex") };
}

describe.each(modelOracles())("$name", ({ dir }) => {
  let model: EmbeddedModel;
  let all: Wish[];
  let alone: ReturnType<typeof facts>[];

  beforeAll(async () => {
    model = await openEmbeddedModel(dir);
    all = wishes(model.info().vocabularySize);
    alone = await withEngine({}, async (engine) => {
      const answers = [];
      for (const wish of all) {
        answers.push(facts(await generate(engine, wish)));
        await flushed(engine);
      }
      return answers;
    });
  });
  afterAll(() => model.dispose());

  async function withEngine<T>(
    options: InferenceOptions,
    work: (engine: EmbeddedInferenceEngine) => Promise<T>,
  ): Promise<T> {
    const engine = await embeddedInferenceEngine(model, options);
    try {
      return await work(engine);
    } finally {
      await engine.dispose();
    }
  }

  /** Every answer so far leaves the cache. */
  async function flushed(engine: EmbeddedInferenceEngine): Promise<void> {
    await engine.releaseMemory();
    await engine.restoreMemory();
  }

  const answersOf = async (engine: EmbeddedInferenceEngine, some: readonly Wish[]) =>
    (await Promise.all(some.map((wish) => generate(engine, wish)))).map(facts);

  test.each([1, 2, 7, 64])("%i rows in a batch give the bits of one", async (rows) => {
    await withEngine({ maxRunning: rows }, async (engine) => {
      expect(await answersOf(engine, all)).toEqual(alone);
    });
  });

  test.each([1, 5, 16, 100])("prompts cut into chunks of %i give the same bits", async (rowsPerIteration) => {
    await withEngine({ rowsPerIteration }, async (engine) => {
      expect(await answersOf(engine, all.slice(0, 16))).toEqual(alone.slice(0, 16));
    });
  });

  test("a prompt found in the cache gives the same bits as a computed one", async () => {
    await withEngine({}, async (engine) => {
      for (const [index, wish] of all.slice(0, 12).entries()) {
        expect(facts(await generate(engine, wish))).toEqual(alone[index]);
        const again = await generate(engine, wish);
        expect(again.cachedTokens).toBe(wish.tokens.length - 1);
        expect(facts(again)).toEqual(alone[index]);
      }
    });
  });

  test("a cache too small for all requests changes no bit", async () => {
    const { config } = model.files;
    const stride = Math.ceil(config.headDim / 16) * 16;
    const blockBytes = 4 * config.layers * config.kvHeads * 16 * (config.headDim + stride);
    await withEngine({ cacheBytes: 20 * blockBytes }, async (engine) => {
      expect(await answersOf(engine, all)).toEqual(alone);
      const { preemptions, evictedBlocks, cacheCapacity } = engine.statistics();
      expect(cacheCapacity).toBe(20);
      expect(preemptions).toBeGreaterThan(0);
      expect(evictedBlocks).toBeGreaterThan(0);
    });
  });

  test("scores of a sampled answer are the logprobs it was sampled with, bit for bit", async () => {
    await withEngine({ rowsPerIteration: 33 }, async (engine) => {
      for (const [index, wish] of all.slice(0, 12).entries()) {
        const { ids, logprobs } = alone[index]!;
        const scored = await engine.score({
          tokens: Int32Array.from([...wish.tokens, ...ids]),
          temperature: wish.temperature ?? 1,
          from: wish.tokens.length,
        });
        expect([...scored.logprobs]).toEqual(logprobs);
      }
    });
  });
});
