// Which tokens are sampled and what ends an answer: distributions, truncation, random streams, stop ids and strings, scripts,
// and requests that cannot be served.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { embeddedInferenceEngine } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedInferenceEngine } from "../../agent-daemon/src/engines/embeddedInference.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import { generate, randomTokens, type Wish } from "../support/generated.ts";
import { openTinyModel } from "../support/tinyEngine.ts";

let model: EmbeddedModel;
let engine: EmbeddedInferenceEngine;
let vocabulary: number;
let prompt: number[];

/** Token i adds the letters of i in base 3 to the text: "a", "b", "c", "ba", "bb", … */
const letters = (id: number) => [...id.toString(3)].map((digit) => "abc"[Number(digit)]!).join("");

beforeAll(async () => {
  model = await openTinyModel();
  vocabulary = model.info().vocabularySize;
  prompt = randomTokens(3, 24, vocabulary);
  const texts = Array.from({ length: vocabulary }, (_, id) => letters(id));
  const offsets = Uint32Array.from([0, ...texts.map((_, id) => texts.slice(0, id + 1).join("").length)]);
  engine = await embeddedInferenceEngine(model, {
    tokenBytes: { bytes: new TextEncoder().encode(texts.join("")), offsets },
  });
});
afterAll(async () => {
  await engine.dispose();
  model.dispose();
});

/** First tokens of many answers that differ in their random stream only. */
async function firstTokens(count: number, wish: Partial<Wish>) {
  const answers = await Promise.all(
    Array.from({ length: count }, (_, record) =>
      generate(engine, { tokens: prompt, maxNewTokens: 1, ...wish, key: { seed: 7, record, call: 0 } }),
    ),
  );
  return answers.map(({ ids, logprobs, sampledLogprobs }) => ({
    id: ids[0]!,
    logprob: logprobs[0]!,
    sampledLogprob: sampledLogprobs[0],
  }));
}

/** The whole distribution of the first token, most probable first. */
async function distribution(temperature: number): Promise<Map<number, number>> {
  const { alternatives } = await generate(engine, {
    ...{ tokens: prompt, temperature, maxNewTokens: 1, topAlternatives: vocabulary },
  });
  return new Map([...alternatives[0]!].map(([id, logprob]) => [id, Math.exp(logprob)]));
}

describe("sampling", () => {
  test("alternatives are a distribution, most probable first", async () => {
    const probabilities = [...(await distribution(0.7)).values()];
    expect(probabilities).toHaveLength(vocabulary);
    expect(probabilities.reduce((sum, p) => sum + p, 0)).toBeCloseTo(1, 5);
    expect(probabilities).toEqual(probabilities.toSorted((a, b) => b - a));
  });

  test.each([0.7, 1, 1.5])("frequencies match the probabilities at T %f", async (temperature) => {
    const count = 6000;
    const probabilities = await distribution(temperature);
    const samples = await firstTokens(count, { temperature });
    const seen = new Map<number, number>();
    for (const { id } of samples) seen.set(id, (seen.get(id) ?? 0) + 1);
    // Pearson's chi-square over the ids expected five times or more; the rest is one bin.
    const bins = { rest: { observed: count, expected: count }, statistic: 0, degrees: 0 };
    for (const [id, p] of probabilities) {
      if (count * p < 5) continue;
      const observed = seen.get(id) ?? 0;
      bins.statistic += (observed - count * p) ** 2 / (count * p);
      bins.degrees += 1;
      bins.rest.observed -= observed;
      bins.rest.expected -= count * p;
    }
    if (bins.rest.expected > 1) bins.statistic += (bins.rest.observed - bins.rest.expected) ** 2 / bins.rest.expected;
    expect(bins.degrees).toBeGreaterThan(5);
    // Mean + 4 standard deviations of the chi-square distribution.
    expect(bins.statistic).toBeLessThan(bins.degrees + 4 * Math.sqrt(2 * bins.degrees));
    for (const { id, logprob } of samples.slice(0, 200))
      expect(Math.exp(logprob)).toBeCloseTo(probabilities.get(id)!, 6);
  });

  test.each([
    { name: "top-k", wish: { topK: 4 }, keep: (ranked: number[]) => ranked.slice(0, 4) },
    {
      name: "top-p",
      wish: { topP: 0.6 },
      keep: (ranked: number[]) => {
        let mass = 0;
        return ranked.filter((p) => {
          const kept = mass < 0.6;
          mass += p;
          return kept;
        });
      },
    },
    { name: "min-p", wish: { minP: 0.3 }, keep: (ranked: number[]) => ranked.filter((p) => p >= 0.3 * ranked[0]!) },
    {
      name: "top-p of what top-k kept",
      wish: { topK: 3, topP: 0.5 },
      keep: (ranked: number[]) => {
        const three = ranked.slice(0, 3);
        const total = three.reduce((sum, p) => sum + p, 0);
        let mass = 0;
        return three.filter((p) => {
          const kept = mass < 0.5 * total;
          mass += p;
          return kept;
        });
      },
    },
  ])("$name samples from exactly the ids it keeps, with their renormalised probabilities", async ({ wish, keep }) => {
    const ranked = [...(await distribution(1))];
    const kept = keep(ranked.map(([, p]) => p)).length;
    expect(kept).toBeGreaterThan(0);
    const support = new Map(ranked.slice(0, kept));
    const mass = [...support.values()].reduce((sum, p) => sum + p, 0);
    const samples = await firstTokens(1500, wish);
    expect(new Set(samples.map(({ id }) => id))).toEqual(new Set(support.keys()));
    for (const { id, logprob, sampledLogprob } of samples) {
      expect(Math.exp(logprob)).toBeCloseTo(support.get(id)!, 6);
      expect(Math.exp(sampledLogprob!)).toBeCloseTo(support.get(id)! / mass, 5);
    }
  });

  test("without truncation there is no second log-probability", async () => {
    expect((await firstTokens(1, {}))[0]?.sampledLogprob).toBeUndefined();
    expect((await firstTokens(1, { temperature: 0, topP: 0.5 }))[0]?.sampledLogprob).toBeUndefined();
  });

  test("T 0 takes the most probable id and reports its log-probability at T 1", async () => {
    const [best] = await distribution(1);
    const [first] = await firstTokens(1, { temperature: 0 });
    expect(first?.id).toBe(best?.[0]);
    expect(Math.exp(first!.logprob)).toBeCloseTo(best![1], 6);
  });

  test("seed, record, call and position each name another random number", async () => {
    const wish = { tokens: prompt, temperature: 1.5, maxNewTokens: 20 };
    const base = await generate(engine, { ...wish, key: { seed: 1, record: 2, call: 3 } });
    expect(await generate(engine, { ...wish, key: { seed: 1, record: 2, call: 3 } })).toMatchObject({ ids: base.ids });
    const others = [
      { seed: 2, record: 2, call: 3 },
      { seed: 1, record: 3, call: 3 },
      { seed: 1, record: 2, call: 4 },
      { seed: 2 ** 53 - 1, record: 2, call: 3 },
    ];
    for (const key of others) expect((await generate(engine, { ...wish, key })).ids).not.toEqual(base.ids);
    expect(new Set(base.ids).size).toBeGreaterThan(3);
  });

  test("a partial answer sent back as a prompt goes on as if never interrupted", async () => {
    const whole = await generate(engine, { tokens: prompt, maxNewTokens: 30 });
    const rest = await generate(engine, { tokens: [...prompt, ...whole.ids.slice(0, 11)], maxNewTokens: 19 });
    expect(rest.ids).toEqual(whole.ids.slice(11));
  });
});

describe("what ends an answer", () => {
  test("a stop id ends it and is the last token", async () => {
    const free = await generate(engine, { tokens: prompt, maxNewTokens: 20 });
    const stop = free.ids[6]!;
    const stopped = await generate(engine, { tokens: prompt, maxNewTokens: 20, stopIds: [2, stop] });
    expect(stopped).toMatchObject({ finishReason: "stop", stoppedBy: stop });
    expect(stopped.ids).toEqual(free.ids.slice(0, free.ids.indexOf(stop) + 1));
  });

  test("scripted ids are emitted in order with the model's own log-probabilities", async () => {
    const forced = Int32Array.from(randomTokens(8, 15, vocabulary));
    const scripted = await generate(engine, { tokens: prompt, forced, maxNewTokens: 40, temperature: 0.7, topK: 2 });
    const scored = await engine.score({
      tokens: Int32Array.from([...prompt, ...forced]),
      temperature: 0.7,
      from: prompt.length,
    });
    expect(scripted).toMatchObject({ ids: [...forced], finishReason: "stop", sampledLogprobs: [] });
    expect(scripted.stoppedBy).toBeUndefined();
    expect(scripted.logprobs).toEqual([...scored.logprobs]);
    const cut = await generate(engine, { tokens: prompt, forced, maxNewTokens: 4 });
    expect(cut).toMatchObject({ ids: [...forced.slice(0, 4)], finishReason: "length" });
  });

  test("a stop string ends it with the token that completes it, wherever token borders fall", async () => {
    const id = fc.integer({ min: 0, max: 60 });
    const text = fc
      .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 6 })
      .map((parts) => parts.join(""));
    await fc.assert(
      fc.asyncProperty(
        fc.array(id, { minLength: 1, maxLength: 25 }),
        fc.array(text, { minLength: 1, maxLength: 3 }),
        async (forced, stopStrings) => {
          const answer = await generate(engine, {
            ...{ tokens: [5], maxNewTokens: 25, stopStrings },
            forced: Int32Array.from(forced),
          });
          const whole = forced.map(letters).join("");
          const ends = stopStrings.map((stop) => (whole.includes(stop) ? whole.indexOf(stop) + stop.length : Infinity));
          const end = Math.min(...ends);
          let length = 0;
          const tokens = forced.findIndex((token) => {
            length += letters(token).length;
            return length >= end;
          });
          expect(answer.ids).toEqual(tokens < 0 ? forced : forced.slice(0, tokens + 1));
          expect(answer.stoppedBy).toBe(tokens < 0 ? undefined : stopStrings[ends.indexOf(end)]);
          expect(answer.finishReason).toBe("stop");
        },
      ),
      { numRuns: 150 },
    );
  });

  test("the model's last position ends it with reason length", async () => {
    const { maxPositions } = model.info();
    const long = await generate(engine, { tokens: randomTokens(1, maxPositions - 5, vocabulary), maxNewTokens: 50 });
    expect(long).toMatchObject({ finishReason: "length" });
    expect(long.ids).toHaveLength(5);
  });
});

describe("requests that cannot be served", () => {
  test.each<[string, Partial<Wish>]>([
    ["an empty prompt", { tokens: [] }],
    ["an id below the vocabulary", { tokens: [4, -1] }],
    ["an id beyond the vocabulary", { tokens: [4, 10 ** 6] }],
    ["a prompt that leaves no position", { tokens: Array(10 ** 5).fill(5) }],
    ["no new tokens", { maxNewTokens: 0 }],
    ["a fraction of a token", { maxNewTokens: 1.5 }],
    ["a negative temperature", { temperature: -1 }],
    ["a temperature that is no number", { temperature: Number.NaN }],
    ["top-p 0", { topP: 0 }],
    ["top-p above 1", { topP: 1.1 }],
    ["a negative top-k", { topK: -1 }],
    ["min-p above 1", { minP: 2 }],
    ["more alternatives than ids", { topAlternatives: 10 ** 6 }],
    ["a stop id beyond the vocabulary", { stopIds: [10 ** 6] }],
    ["an empty stop string", { stopStrings: [""] }],
    ["an empty script", { forced: new Int32Array(0) }],
    ["a scripted id beyond the vocabulary", { forced: Int32Array.of(10 ** 6) }],
    ["a fractional seed", { key: { seed: 0.5, record: 0, call: 0 } }],
  ])("%s is refused with a code and a next step", async (_, wish) => {
    const refused = generate(engine, { tokens: prompt, ...wish });
    await expect(refused).rejects.toMatchObject({
      code: "ENGINE_REQUEST_INVALID",
      next: expect.stringMatching(/.\.$/),
    });
  });

  test.each([
    { name: "nothing predicts the first token", from: 0 },
    { name: "the start lies beyond the end", from: 10 ** 4 },
  ])("a score is refused when $name", async ({ from }) => {
    const refused = engine.score({ tokens: Int32Array.from(prompt), temperature: 1, from });
    await expect(refused).rejects.toMatchObject({ code: "ENGINE_REQUEST_INVALID" });
  });

  test("a score of no tokens is empty", async () => {
    const scored = await engine.score({ tokens: Int32Array.from(prompt), temperature: 1, from: prompt.length });
    expect(scored).toEqual({ logprobs: new Float32Array(0), entropy: new Float32Array(0), version: 0 });
  });

  test("stop strings need the tokens' bytes", async () => {
    const plain = await embeddedInferenceEngine(model);
    const refused = generate(plain, { tokens: prompt, stopStrings: ["a"] });
    await expect(refused).rejects.toMatchObject({ code: "ENGINE_REQUEST_INVALID" });
    await plain.dispose();
  });

  test("weights that have diverged end the request with the position of the first bad number", async () => {
    const broken = await openTinyModel();
    const norm = await broken.readTensor("model.norm.weight");
    await broken.writeTensor("model.norm.weight", norm.fill(Number.NaN));
    const sampler = await embeddedInferenceEngine(broken);
    const refused = generate(sampler, { tokens: prompt });
    await expect(refused).rejects.toMatchObject({
      code: "ENGINE_NON_FINITE",
      message: expect.stringContaining(`position ${prompt.length}`),
    });
    await sampler.dispose();
    broken.dispose();
  });
});
