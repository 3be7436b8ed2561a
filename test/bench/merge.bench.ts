// npm run bench merge: what merging equal prefixes saves, against the same engine without it. The speed-up can be at most
// the token ratio; the value says which part of that arrives.
import { availableParallelism } from "node:os";
import { embeddedTrainingEngine, openEmbeddedModel } from "../../agent-daemon/src/engines/embedded.ts";
import { smollm2Path } from "../support/model.ts";
import { trainOnce } from "./engineWork.ts";
import { groupRows, median, report } from "./work.ts";

const rounds = Number(process.argv[2] ?? 5);
const shape = { prompts: 8, promptTokens: 96, samples: 8, sampleTokens: 16 };

const model = await openEmbeddedModel(smollm2Path(), { threads: availableParallelism() });
try {
  const training = embeddedTrainingEngine(model);
  const rows = groupRows(shape, model.info().vocabularySize);
  const options = { wantedFrom: shape.promptTokens, budget: 2048, step: false };
  const ratios: number[] = [];
  let tokenRatio = 0;
  for (let round = 0; round <= rounds; round++) {
    const merged = await trainOnce(training, rows, { ...options, mode: "tree" });
    const packed = await trainOnce(training, rows, { ...options, mode: "packed" });
    if (Math.abs(merged.loss - packed.loss) > 1e-5 * Math.abs(packed.loss)) throw new Error("the losses differ");
    tokenRatio = packed.packedTokens / merged.packedTokens;
    const speedup = packed.seconds / merged.seconds;
    console.log(
      `round ${round}: ${packed.seconds.toFixed(2)} s flat, ${merged.seconds.toFixed(2)} s merged, ${speedup.toFixed(2)}×`,
    );
    if (round > 0) ratios.push(speedup / tokenRatio);
  }
  report("merge", { speedup_over_token_ratio: median(ratios) }, { rounds, tokenRatio, device: model.info().device });
} finally {
  model.dispose();
}
