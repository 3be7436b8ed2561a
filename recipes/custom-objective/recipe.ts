// The additions of arithmetic-grpo under an objective of its own: REINFORCE that punishes less than it praises.
import { defineRecipe, type ObjectiveDefinition } from "rollscope/recipe";
import arithmetic from "../arithmetic-grpo/recipe.ts";

/** Loss of one token: −w·A·logp, with w = negativeWeight where A < 0 and 1 elsewhere. */
const gentleReinforce: ObjectiveDefinition = {
  name: "gentle_reinforce",
  scope: "token",
  reads: ["advantage"],
  token({ advantage, logp }, { options }) {
    const weighted = advantage < 0 ? Number(options?.["negativeWeight"] ?? 1) * advantage : advantage;
    return { loss: -weighted * logp, dLogp: -weighted };
  },
};

export default defineRecipe({ ...arithmetic, objective: gentleReinforce });
