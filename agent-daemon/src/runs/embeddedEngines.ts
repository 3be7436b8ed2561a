// The embedded engine as a run uses it: one model in memory that trains and generates. Where the recipe needs a critic, that is
// a value head on the policy, which starts at zero and is saved with it.
import { readsValues } from "../algorithms/objectiveReads.ts";
import { embeddedInferenceEngine, embeddedTrainingEngine, openEmbeddedModel } from "../engines/embedded.ts";
import { tokenByteTable } from "../engines/tokenByteTable.ts";
import type { OpenEngines } from "./runRecipe.ts";

export const embeddedEngines: OpenEngines = async (path, text, config) => {
  const { threads, memoryLimitGb } = config.engine;
  const model = await openEmbeddedModel(path, {
    valueHead: readsValues(config.objective, config.advantages),
    ...(threads === null ? {} : { threads }),
    ...(memoryLimitGb === null ? {} : { memoryLimit: memoryLimitGb * 1e9 }),
  });
  const training = embeddedTrainingEngine(model);
  const inference = await embeddedInferenceEngine(model, { tokenBytes: tokenByteTable(text.tokenizer) });
  return {
    training,
    inference,
    async dispose() {
      await inference.dispose();
      await training.dispose();
      model.dispose();
    },
  };
};
