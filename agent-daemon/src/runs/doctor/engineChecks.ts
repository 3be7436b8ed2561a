// The engine, tried: the addon loads, a tiny model generates, the trainer's forward agrees with what was sampled, and a gradient
// comes out.
import { join } from "node:path";
import { embeddedInferenceEngine, embeddedTrainingEngine, openEmbeddedModel } from "../../engines/embedded.ts";
import { nativeAddon } from "../../engines/embeddedAddon.ts";
import type { PackedBatch } from "../../engines/interface.ts";
import type { DoctorContext, Finding } from "./finding.ts";
import { tinyVocabulary, writeTinyModel } from "./tinyModel.ts";

export function checkAddon(): Finding {
  const { kernels, processors } = nativeAddon().cpu();
  return { status: "ok", detail: `${kernels} kernels, ${processors} processors`, next: null };
}

function batchOf(tokens: Int32Array, from: number): PackedBatch {
  return {
    tokens,
    positions: [Int32Array.from(tokens, (_, index) => index)],
    nodes: [{ start: 0, end: tokens.length, parent: -1 }],
    temperature: new Float32Array(tokens.length).fill(1),
    wanted: Uint8Array.from(tokens, (_, index) => Number(index >= from)),
  };
}

const prompt = Int32Array.from([1, 7, 21, 3]);
/** Two ways of computing one number in single precision. */
const tolerance = 1e-4;

export async function checkEngine({ scratch }: DoctorContext): Promise<Finding> {
  const folder = join(scratch, "model");
  writeTinyModel(folder);
  const began = performance.now();
  const model = await openEmbeddedModel(folder, { threads: 0 });
  try {
    const inference = await embeddedInferenceEngine(model, {});
    const training = embeddedTrainingEngine(model);
    const ids: number[] = [];
    const logprobs: number[] = [];
    try {
      const request = {
        ...{ tokens: prompt, maxNewTokens: 8, temperature: 1, topP: 1, topK: 0, minP: 0 },
        ...{ stopIds: [], stopStrings: [], key: { seed: 1, record: 1, call: 0 }, topAlternatives: 0 },
      };
      for await (const chunk of inference.generate(request, AbortSignal.timeout(8000))) {
        ids.push(...chunk.ids);
        logprobs.push(...chunk.logprobs);
      }
      if (ids.length !== 8 || ids.some((id) => id < 0 || id >= tinyVocabulary))
        return wrong(`it generated ${ids.length} tokens of 8`);
      const batch = batchOf(Int32Array.from([...prompt, ...ids]), prompt.length);
      const want = { logprob: true, entropy: false, value: false };
      let gap = 0;
      for await (const { scalars } of training.forward([batch], want, { kind: "policy" })) {
        const trained = scalars.logprob?.subarray(prompt.length) ?? [];
        gap = Math.max(...logprobs.map((logprob, index) => Math.abs(logprob - (trained[index] ?? Number.NaN))));
      }
      if (!(gap <= tolerance)) return wrong(`trainer and sampler differ by ${gap}`);
      await training.accumulate([batch], want, () => ({
        logprob: Float32Array.from(batch.wanted, (wanted) => -wanted),
      }));
      const { norm, finite } = await training.gradient();
      await training.discard();
      if (!finite || !(norm > 0)) return wrong(`the gradient has the norm ${norm}`);
      const time = Math.round(performance.now() - began);
      return {
        status: "ok",
        detail: `8 tokens sampled, trainer and sampler agree to ${gap.toExponential(0)}, a gradient; ${time} ms`,
        next: null,
      };
    } finally {
      await inference.dispose();
      await training.dispose();
    }
  } finally {
    model.dispose();
  }
}

function wrong(what: string): Finding {
  return {
    status: "failed",
    detail: `The engine computes, and computes wrongly: ${what}.`,
    next: "Set ROLLSCOPE_ENGINE_ISA=sse and try again; report which CPU this is.",
  };
}
