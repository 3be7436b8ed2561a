// What the embedded engine does in a bench: one optimizer step over rows, and generation for prompts.
import type { EmbeddedInferenceEngine } from "../../agent-daemon/src/engines/embeddedInference.ts";
import type { EmbeddedTrainingEngine } from "../../agent-daemon/src/engines/embeddedTraining.ts";
import type { Cotangents } from "../../agent-daemon/src/engines/interface.ts";
import { type PackingMode, packTrajectories } from "../../agent-daemon/src/training/packing.ts";
import { asTrajectories } from "./work.ts";

const want = { logprob: true, entropy: false, value: false };

/**
 * Forward and backward of −Σ logp over the tokens from `wantedFrom` on, packing included; with `step` also clipping and AdamW.
 * Returns seconds, the loss and how many tokens were computed.
 */
export async function trainOnce(
  engine: EmbeddedTrainingEngine,
  rows: readonly number[][],
  options: { wantedFrom: number; mode: PackingMode; budget: number; step: boolean },
): Promise<{ seconds: number; loss: number; packedTokens: number }> {
  const began = performance.now();
  const forest = packTrajectories(asTrajectories(rows, options.wantedFrom), {
    mode: options.mode,
    budget: Math.min(options.budget, engine.info().capabilities.maxTokensPerBatch),
    replicas: 1,
    cost: { perToken: 1, perPair: 0 },
  });
  let loss = 0;
  await engine.accumulate(forest.batches, want, (index, scalars): Cotangents => {
    const { wanted } = forest.batches[index]!;
    const slots = new Float32Array(wanted.length);
    // Several samples may share a slot, so the cotangent of a slot is minus the number of its occurrences.
    for (const occurrence of forest.members[index]!) {
      const slot = forest.occurrences.slot[occurrence]!;
      slots[slot] = slots[slot]! - 1;
      loss -= scalars.logprob![slot]!;
    }
    return { logprob: slots };
  });
  if (options.step) {
    await engine.step({ lr: 1e-6, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0.01, decayed: "all", maxGradNorm: 1 });
  } else {
    await engine.discard();
  }
  return { seconds: (performance.now() - began) / 1000, loss, packedTokens: forest.packedTokens };
}

/** Samples `newTokens` for every prompt, all requests at once, with an empty prefix cache at the start. */
export async function generateOnce(
  engine: EmbeddedInferenceEngine,
  prompts: readonly number[][],
  newTokens: number,
): Promise<{ seconds: number; tokens: number }> {
  await engine.updateWeights({ kind: "shared" });
  const began = performance.now();
  const counts = await Promise.all(
    prompts.map(async (prompt, record) => {
      let count = 0;
      const stream = engine.generate(
        {
          tokens: Int32Array.from(prompt),
          maxNewTokens: newTokens,
          temperature: 1,
          topP: 1,
          topK: 0,
          minP: 0,
          stopIds: [],
          stopStrings: [],
          key: { seed: 1, record, call: 0 },
          topAlternatives: 0,
        },
        new AbortController().signal,
      );
      for await (const chunk of stream) count += chunk.ids.length;
      return count;
    }),
  );
  return { seconds: (performance.now() - began) / 1000, tokens: counts.reduce((sum, count) => sum + count, 0) };
}
