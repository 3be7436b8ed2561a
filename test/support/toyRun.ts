// A whole run in milliseconds: a model folder with a sixteen-token alphabet, a recipe for it, and engines that compute it.
import { resolve } from "node:path";
import { loadConfig } from "../../agent-daemon/src/recipes/loadConfig.ts";
import { writeConfig } from "../../agent-daemon/src/runs/configFile.ts";
import { copyRecipe } from "../../agent-daemon/src/runs/recipeCopy.ts";
import { createRunFolder, type RunFolder } from "../../agent-daemon/src/runs/runFolder.ts";
import { type OpenEngines, type RunEnd, runRecipe } from "../../agent-daemon/src/runs/runRecipe.ts";
import { createStopSwitch, type StopSwitch } from "../../agent-daemon/src/runs/stopSwitch.ts";
import { systemClock } from "../../agent-daemon/src/sampling/clock.ts";
import type { JournalEvent } from "../../protocol/journal.ts";
import type { RecipeConfig } from "../../protocol/recipe.ts";
import { temporaryFolder } from "./recipeFolder.ts";
import { referenceEngines } from "./referenceEngines.ts";

const alphabet = [..."0123456789+=QA", "Ġ"];
const endToken = alphabet.length;

const chatTemplate =
  "{% for m in messages %}{% if m['role'] == 'user' %}Q{{ m['content'] }}{% else %}A{{ m['content'] }}<end>{% endif %}{% endfor %}" +
  "{% if add_generation_prompt %}A{% endif %}";

const modelFiles = {
  "model/config.json": "{}",
  "model/tokenizer.json": JSON.stringify({
    version: "1.0",
    added_tokens: [
      {
        id: endToken,
        content: "<end>",
        special: true,
        normalized: false,
        lstrip: false,
        rstrip: false,
        single_word: false,
      },
    ],
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    model: { type: "BPE", vocab: Object.fromEntries(alphabet.map((token, id) => [token, id])), merges: [] },
  }),
  "model/tokenizer_config.json": JSON.stringify({ chat_template: chatTemplate, eos_token: "<end>" }),
};

/** Rewards answers that begin with an odd digit: a tiny model learns it in a few steps. */
const toyRecipeCode = `
import { defineRecipe } from "rollscope/recipe";
export default defineRecipe({
  async rollout(task, agent) {
    await agent.chat({ messages: [{ role: "user", content: task.payload.question }] });
  },
  evaluate(record) {
    const first = record.text[0] ?? "";
    return { score: "13579".includes(first) && first !== "" ? 1 : 0, breakdown: { digit: /[0-9]/.test(first) ? 1 : 0 } };
  },
});
`;

const toyRecipe = `
name: toy
model: { source: ./model }
data: { train: tasks.jsonl, heldOutCount: 4 }
sampling: { tasksPerStep: 2, groupSize: 4, maxNewTokens: 3 }
objective: { kind: grpo, aggregation: token-mean }
advantages: { estimator: group_normalized }
training: { steps: 4, lr: 0.05, seed: 5, tokenBudget: 64, checkpoint: { every: 2 } }
evaluation: { everySteps: 2 }
`;

/** Ids that a plain JSON.parse would change. */
const tasks = Array.from(
  { length: 24 },
  (_, index) => `{"id": ${7205759403792793600n + BigInt(index)}, "question": "${index}+${index % 7}="}`,
);

/** The toy model and its recipe, by path. */
export const toyFiles: Readonly<Record<string, string>> = {
  ...modelFiles,
  "recipe.yaml": toyRecipe,
  "recipe.ts": toyRecipeCode,
  "tasks.jsonl": `${tasks.join("\n")}\n`,
};

/** A folder with the toy model and recipe, removed at the end of the test; `files` replace or add to them. */
export function toyFolder(files: Readonly<Record<string, string>> = {}): Promise<string> {
  return temporaryFolder({ ...toyFiles, ...files });
}

export interface ToyRun {
  readonly folder: RunFolder;
  readonly config: RecipeConfig;
  readonly recipeFolder: string;
}

/** Makes the run's folder as the command line does. */
export async function newToyRun(recipeFolder: string, overrides: readonly string[] = []): Promise<ToyRun> {
  const loaded = await loadConfig(recipeFolder, { overrides });
  if (loaded.config === null) throw new Error(loaded.problems.map((problem) => problem.sentence).join("\n"));
  const folder = createRunFolder(resolve(recipeFolder, "runs"), loaded.config.name, new Date());
  writeConfig(folder, loaded.config, loaded.origins);
  copyRecipe(folder, recipeFolder);
  return { folder, config: loaded.config, recipeFolder };
}

export interface ToyAttempt {
  readonly end: RunEnd;
  readonly events: readonly JournalEvent[];
}

export interface ToyOptions {
  readonly attempt?: number;
  readonly openEngines?: OpenEngines;
  /** Called with every event, before the run goes on. */
  readonly onEvent?: (event: JournalEvent, stops: StopSwitch) => void;
}

export async function attemptToyRun(run: ToyRun, options: ToyOptions = {}): Promise<ToyAttempt> {
  const events: JournalEvent[] = [];
  const stops = createStopSwitch();
  const end = await runRecipe({
    ...run,
    attempt: options.attempt ?? 1,
    version: "0.0.0",
    stops,
    observer: {
      event: (event) => {
        events.push(event);
        options.onEvent?.(event, stops);
      },
      progress: () => {},
    },
    clock: systemClock,
    openEngines: options.openEngines ?? referenceEngines,
  });
  return { end, events };
}
