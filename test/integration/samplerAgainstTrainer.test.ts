// Before any update the sampler and the trainer agree about every sampled token: k3 below 1e-10 and no difference of a
// log-probability above 1e-4, at T 0.7 and 1, with the prompt computed and with the prompt found in the cache.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  embeddedInferenceEngine,
  embeddedTrainingEngine,
  openEmbeddedModel,
} from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedInferenceEngine } from "../../agent-daemon/src/engines/embeddedInference.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import type { EmbeddedTrainingEngine } from "../../agent-daemon/src/engines/embeddedTraining.ts";
import { rows } from "../support/batches.ts";
import { generate, randomTokens } from "../support/generated.ts";
import { modelOracles } from "../support/modelOracles.ts";

const largestDifference = 1e-4;
const largestK3 = 1e-10;

describe.each(modelOracles())("$name", ({ dir }) => {
  let model: EmbeddedModel;
  let trainer: EmbeddedTrainingEngine;
  let sampler: EmbeddedInferenceEngine;

  beforeAll(async () => {
    model = await openEmbeddedModel(dir);
    trainer = embeddedTrainingEngine(model);
    sampler = await embeddedInferenceEngine(model);
  });
  afterAll(async () => {
    await sampler.dispose();
    await trainer.dispose();
    model.dispose();
  });

  test.each([0.7, 1])("agrees with the trainer at T %f, whether the prompt was cached or not", async (temperature) => {
    const prompts = Array.from({ length: 6 }, (_, index) =>
      randomTokens(index + 1, 9 + 17 * index, model.info().vocabularySize),
    );
    for (const cache of ["miss", "hit"] as const) {
      if (cache === "miss") {
        await sampler.releaseMemory();
        await sampler.restoreMemory();
      }
      const answers = await Promise.all(
        prompts.map((tokens, record) =>
          generate(sampler, { tokens, temperature, maxNewTokens: 24, key: { seed: 3, record, call: 0 } }),
        ),
      );
      expect(answers.map((answer) => answer.cachedTokens)).toEqual(
        prompts.map((prompt) => (cache === "hit" ? prompt.length - 1 : 0)),
      );
      const batch = rows(
        prompts.map((prompt, index) => [...prompt, ...answers[index]!.ids]),
        temperature,
      );
      const differences: number[] = [];
      for await (const { scalars } of trainer.forward(
        [batch],
        { logprob: true, entropy: false, value: false },
        { kind: "policy" },
      )) {
        for (const [index, answer] of answers.entries()) {
          const first = batch.nodes[index]!.start + prompts[index]!.length;
          differences.push(...answer.logprobs.map((logprob, i) => scalars.logprob![first + i]! - logprob));
        }
      }
      expect(differences).toHaveLength(6 * 24);
      const k3 = differences.reduce((sum, d) => sum + Math.expm1(d) - d, 0) / differences.length;
      expect(Math.max(...differences.map(Math.abs))).toBeLessThan(largestDifference);
      expect(k3).toBeLessThan(largestK3);
    }
  });
});
