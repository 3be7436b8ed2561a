// Opens the engines of the toy model: see toyRun.ts.
import type { OpenEngines } from "../../agent-daemon/src/runs/runRecipe.ts";
import { ReferenceEngine } from "./referenceEngine.ts";
import { ReferenceInference } from "./referenceInference.ts";

/** Tokens of the toy model's tokenizer. */
const toyVocabularySize = 16;

export const referenceEngines: OpenEngines = async () => {
  const training = new ReferenceEngine({
    seed: 3,
    shape: { vocabulary: toyVocabularySize, hidden: 6, maxPositions: 64 },
  });
  const inference = new ReferenceInference(training);
  return { training, inference, dispose: () => training.dispose() };
};
