// Greedy generation of the embedded engine against reference continuations computed in float64.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { embeddedInferenceEngine, openEmbeddedModel } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedInferenceEngine } from "../../agent-daemon/src/engines/embeddedInference.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import { generate } from "../support/generated.ts";
import { modelOracles } from "../support/modelOracles.ts";

describe.each(modelOracles())("$name", ({ dir, expected }) => {
  let model: EmbeddedModel;
  let engine: EmbeddedInferenceEngine;
  const tolerance = 10 * (expected.float32_tolerance["greedy"]?.["logprobs"] ?? Number.NaN);
  const scoreTolerance = 10 * (expected.float32_tolerance["sequences"]?.["logprobs"] ?? Number.NaN);
  const entropyTolerance = 10 * (expected.float32_tolerance["sequences"]?.["entropy"] ?? Number.NaN);

  beforeAll(async () => {
    model = await openEmbeddedModel(dir);
    engine = await embeddedInferenceEngine(model);
  });
  afterAll(async () => {
    await engine.dispose();
    model.dispose();
  });

  test.each(expected.greedy.map((reference, index) => ({ index, reference })))(
    "continues greedy prompt $index as the reference does",
    async ({ reference }) => {
      const generated = await generate(engine, {
        tokens: reference.prompt,
        temperature: 0,
        maxNewTokens: reference.tokens.length,
      });
      expect(generated.ids).toEqual(reference.tokens);
      expect(generated.finishReason).toBe("length");
      for (const [index, logprob] of reference.logprobs.entries()) {
        expect(Math.abs(generated.logprobs[index]! - logprob), `token ${index}`).toBeLessThanOrEqual(tolerance);
      }
    },
  );

  test("scores given sequences as the reference does, entropies included", async () => {
    for (const { tokens, logprobs, entropy } of expected.sequences) {
      const scored = await engine.score({ tokens: Int32Array.from(tokens), temperature: 1, from: 1 });
      expect(scored.logprobs.length).toBe(tokens.length - 1);
      for (let index = 1; index < tokens.length; index++) {
        expect(Math.abs(scored.logprobs[index - 1]! - logprobs[index]!)).toBeLessThanOrEqual(scoreTolerance);
        expect(Math.abs(scored.entropy[index - 1]! - entropy[index]!)).toBeLessThanOrEqual(entropyTolerance);
      }
    }
  });
});
