// A recipe that the embedded engine runs many steps of a second: a tiny model that learns to answer with different letters.
import { tinyModelFiles } from "./tinyModelFolder.ts";

const code = (score: string) => `import { defineRecipe } from "rollscope/recipe";

/** Rewards answers with many different letters. */
function variety(text: string): number {
  const letters = new Set(text).size;
  return letters / 8;
}

export default defineRecipe({
  async rollout(task, agent) {
    await agent.chat({ messages: [{ role: "user", content: String(task.payload.question) }] });
  },
  evaluate(record) {
    return { score: ${score} };
  },
});
`;

/** Files of the recipe's folder, below `folder/`. */
export function tinyRecipeFiles(
  folder: string,
  options: {
    readonly steps: number;
    /** An expression over `record` and `variety`. */
    readonly score?: string;
  },
): Readonly<Record<string, string | Uint8Array>> {
  const tasks = Array.from({ length: 12 }, (_, index) =>
    JSON.stringify({ id: `${index}+2`, question: `${index} + 2` }),
  );
  const files = {
    ...tinyModelFiles(),
    "recipe.yaml": recipeYaml(folder, options.steps),
    "recipe.ts": code(options.score ?? "variety(record.text)"),
    "tasks.jsonl": `${tasks.join("\n")}\n`,
  };
  return Object.fromEntries(Object.entries(files).map(([name, content]) => [`${folder}/${name}`, content]));
}

function recipeYaml(name: string, steps: number): string {
  return `name: ${name}
model: { source: ./model }
data: { train: tasks.jsonl, heldOutCount: 2 }
sampling: { tasksPerStep: 2, groupSize: 4, maxNewTokens: 6 }
objective: { kind: grpo, aggregation: token-mean, kl: { estimator: k3, coef: 0.01 } }
advantages: { estimator: group_normalized }
training: { steps: ${steps}, lr: 0.0005, seed: 5, tokenBudget: 512, checkpoint: { every: 50 } }
evaluation: { everySteps: null }
`;
}
