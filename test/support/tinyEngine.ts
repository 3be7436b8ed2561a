// The smallest dense reference model on the embedded engine, for tests of what generation does rather than of numbers.
import { embeddedInferenceEngine, openEmbeddedModel } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedInferenceEngine, InferenceOptions } from "../../agent-daemon/src/engines/embeddedInference.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import { oraclesPath } from "./paths.ts";

export const openTinyModel = (): Promise<EmbeddedModel> => openEmbeddedModel(oraclesPath("models", "llama-tiny"));

/** Bytes of one cache block of 16 positions. */
export function blockBytes(model: EmbeddedModel): number {
  const { layers, kvHeads, headDim } = model.files.config;
  return 4 * layers * kvHeads * 16 * (headDim + Math.ceil(headDim / 16) * 16);
}

export async function withEngine<T>(
  model: EmbeddedModel,
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
