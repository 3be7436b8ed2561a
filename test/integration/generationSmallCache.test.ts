// Whatever mixture of answers, scores and aborts shares a cache of a few blocks, everybody gets what they would have got alone,
// and the engine never stops.
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { embeddedInferenceEngine } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedInferenceEngine } from "../../agent-daemon/src/engines/embeddedInference.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import { generate } from "../support/generated.ts";
import { blockBytes, openTinyModel, withEngine } from "../support/tinyEngine.ts";

let model: EmbeddedModel;
let roomy: EmbeddedInferenceEngine;
beforeAll(async () => {
  model = await openTinyModel();
  roomy = await embeddedInferenceEngine(model);
});
afterAll(async () => {
  await roomy.dispose();
  model.dispose();
});

// Few different ids, so that prompts share beginnings.
const token = fc.integer({ min: 3, max: 5 });
const percent = fc.noBias(fc.integer({ min: 0, max: 99 }));
const roots = fc.array(fc.array(token, { minLength: 160, maxLength: 160 }), { minLength: 2, maxLength: 3 });

interface Ask {
  readonly kind: "answer" | "score";
  readonly root: number;
  /** Per cent: shared beginning of the prompt, prompt of the whole, prompt and answer of the cache. */
  readonly parts: readonly [number, number, number];
  readonly own: readonly number[];
  readonly record: number;
  readonly abortAfter: number | null;
}

const ask: fc.Arbitrary<Ask> = fc.record({
  kind: fc.constantFrom("answer", "answer", "answer", "score"),
  root: fc.nat(2),
  parts: fc.tuple(percent, percent, percent),
  own: fc.array(token, { minLength: 160, maxLength: 160 }),
  record: fc.nat(3),
  abortAfter: fc.option(fc.nat(8), { freq: 3 }),
});

function wishOf({ root, parts, own, record }: Ask, prefixes: readonly (readonly number[])[], positions: number) {
  const [shared, prompt, whole] = parts;
  const total = 2 + Math.floor((whole / 100) * (positions - 2));
  const promptLength = 1 + Math.floor((prompt / 100) * (total - 2));
  const sharedLength = Math.floor((shared / 100) * promptLength);
  const tokens = [...prefixes[root % prefixes.length]!.slice(0, sharedLength), ...own].slice(0, promptLength);
  return { tokens, maxNewTokens: total - promptLength, key: { seed: 1, record, call: 0 } };
}

type Wanted = ReturnType<typeof wishOf>;

/** Ids and log-probabilities alternately, so that a prefix of an answer is a prefix of the list. */
async function numbersOf(engine: EmbeddedInferenceEngine, { kind, abortAfter }: Ask, wish: Wanted) {
  if (kind === "score") {
    const { logprobs } = await engine.score({ tokens: Int32Array.from(wish.tokens), temperature: 1, from: 1 });
    return { numbers: [...logprobs], isWhole: true };
  }
  const controller = new AbortController();
  let seen = 0;
  const { ids, logprobs, finishReason } = await generate(engine, wish, controller.signal, (chunk) => {
    seen += chunk.ids.length;
    if (abortAfter !== null && seen > abortAfter) controller.abort();
  });
  return { numbers: ids.flatMap((id, index) => [id, logprobs[index]!]), isWhole: finishReason !== "abort" };
}

test("everybody gets what they would have got alone", async () => {
  let preemptions = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        blocks: fc.noBias(fc.integer({ min: 2, max: 9 })),
        maxRunning: fc.noBias(fc.integer({ min: 1, max: 20 })),
        rowsPerIteration: fc.noBias(fc.integer({ min: 1, max: 60 })),
      }),
      roots,
      fc.array(ask, { minLength: 20, maxLength: 30 }),
      async ({ blocks, ...limits }, prefixes, asks) => {
        const wishes = asks.map((one) => wishOf(one, prefixes, blocks * 16));
        const alone: number[][] = [];
        for (const [index, one] of asks.entries()) {
          alone.push((await numbersOf(roomy, { ...one, abortAfter: null }, wishes[index]!)).numbers);
        }
        await withEngine(model, { ...limits, cacheBytes: blocks * blockBytes(model) }, async (engine) => {
          const together = await Promise.all(asks.map((one, index) => numbersOf(engine, one, wishes[index]!)));
          for (const [index, { numbers, isWhole }] of together.entries()) {
            expect(numbers).toEqual(isWhole ? alone[index] : alone[index]!.slice(0, numbers.length));
          }
          expect(engine.health()).toMatchObject({ running: 0, queued: 0 });
          preemptions += engine.statistics().preemptions;
        });
      },
    ),
    { numRuns: 40, seed: 20 },
  );
  expect(preemptions).toBeGreaterThan(20);
});
