// The inner loop of writing a recipe: one round checks the recipe, samples two rollouts of two tasks with the same random streams as
// every round before, and says what is different now. When only evaluate changed, the rollouts of before are judged again instead.
// Keeps the model loaded between rounds; writes to a temporary folder and to nothing else.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RecordView, Task } from "../../../../protocol/agent.ts";
import type { RecipeConfig } from "../../../../protocol/recipe.ts";
import type { RecipeDefinition } from "../../../../protocol/recipeDefinition.ts";
import type { CapturedTrajectory } from "../../capture/trajectories.ts";
import { loadModelText } from "../../engines/tokenizer/load.ts";
import { type CheckOptions, checkRecipe } from "../../recipes/checkRecipe.ts";
import type { ConfigProblem } from "../../recipes/configProblem.ts";
import { bundleRecipe, findRecipeCode, loadRecipe } from "../../recipes/loadRecipe.ts";
import { loadTasks } from "../../recipes/loadTasks.ts";
import { ensureModel } from "../../recipes/models.ts";
import type { Clock } from "../../sampling/clock.ts";
import { type Sample, type SampledGroup, sampleGroup } from "../../sampling/group.ts";
import { createLimiter } from "../../sampling/limiter.ts";
import { runEvaluate } from "../../sampling/rolloutTimeouts.ts";
import { readScore } from "../../sampling/scoreOf.ts";
import { openFileBlobs } from "../../store/fileBlobs.ts";
import { openSqliteStore } from "../../store/sqliteStore.ts";
import { openSessions } from "../openSessions.ts";
import type { RunEngines } from "../runContext.ts";
import type { OpenEngines } from "../runRecipe.ts";
import { waveSettings } from "../sampleWindow.ts";

const tasksPerRound = 2;
const samplesPerTask = 2;
/** An answer that is longer says nothing more about an edit, and a round is to take seconds. */
const mostNewTokens = 64;

export interface DevSample {
  readonly task: string;
  readonly sample: number;
  readonly text: string;
  readonly score: number | null;
  readonly breakdown: Readonly<Record<string, number>>;
  /** Why there is no score; null where evaluate left it ungraded. */
  readonly error: string | null;
  /** The same place of the round before, where it differs. */
  readonly before: { readonly score: number | null; readonly text: string } | null;
}

export interface DevRound {
  readonly round: number;
  /** nothing: problems stand in the way. */
  readonly did: "nothing" | "sampled" | "scored again";
  readonly problems: readonly ConfigProblem[];
  readonly samples: readonly DevSample[];
  /** Milliseconds of the round's parts. */
  readonly times: { readonly check: number; readonly sample: number; readonly total: number };
}

export interface DevOptions {
  readonly recipe: string;
  readonly check: CheckOptions;
  readonly openEngines: OpenEngines;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface Opened {
  readonly key: string;
  readonly engines: RunEngines;
  readonly modelText: ReturnType<typeof loadModelText>;
}

type Trajectories = readonly CapturedTrajectory[];

interface Kept {
  /** Everything that decides what a rollout is: code without evaluate, and configuration. */
  readonly basis: string;
  readonly groups: readonly SampledGroup<Trajectories>[];
  readonly results: ReadonlyMap<string, unknown>;
}

export class DevRounds {
  readonly #options: DevOptions;
  readonly #scratch: Promise<string>;
  #opened: Opened | null = null;
  #kept: Kept | null = null;
  #last: ReadonlyMap<string, DevSample> = new Map();
  #round = 0;

  constructor(options: DevOptions) {
    this.#options = options;
    this.#scratch = mkdtemp(join(tmpdir(), "rollscope-dev-"));
  }

  /** @throws what fetching or opening the model throws; the next round tries again */
  async next(): Promise<DevRound> {
    this.#round += 1;
    const began = performance.now();
    const checked = await checkRecipe(this.#options.recipe, { ...this.#options.check, types: true });
    const check = performance.now() - began;
    // Errors of types do not stop the code from running, but what they say comes first.
    if (checked.config === null) return this.#report("nothing", checked.problems, [], check, began);
    const { config, folder } = checked;
    const file = await findRecipeCode(folder);
    const bundled = await bundleRecipe(file);
    const { definition } = await loadRecipe(folder, { signal: this.#options.signal });
    const basis = basisOf("code" in bundled ? bundled.code : "", definition, config);
    if (this.#kept !== null && this.#kept.basis === basis) {
      const samples = await this.#scoreAgain(this.#kept, definition, config);
      return this.#report("scored again", checked.problems, samples, check, began);
    }
    const samples = await this.#sample(config, folder, definition, basis);
    return this.#report("sampled", checked.problems, samples, check, began);
  }

  async dispose(): Promise<void> {
    await this.#opened?.engines.dispose();
    this.#opened = null;
    await rm(await this.#scratch, { recursive: true, force: true });
  }

  async #engines(config: RecipeConfig, folder: string): Promise<Opened> {
    const key = JSON.stringify([config.model, config.engine, folder]);
    if (this.#opened?.key === key) return this.#opened;
    await this.#opened?.engines.dispose();
    this.#opened = null;
    const model = await ensureModel(config.model, { folder, signal: this.#options.signal });
    const modelText = loadModelText(model.path);
    this.#opened = { key, modelText, engines: await this.#options.openEngines(model.path, modelText, config) };
    return this.#opened;
  }

  async #sample(config: RecipeConfig, folder: string, definition: RecipeDefinition, basis: string) {
    const { clock, signal } = this.#options;
    const tasks = (await loadTasks(folder, config, { signal })).train.slice(0, tasksPerRound);
    const { engines, modelText } = await this.#engines(config, folder);
    const place = join(await this.#scratch, String(this.#round));
    const store = await openSqliteStore(join(place, "records.sqlite"));
    try {
      const run = `dev-${this.#round}`;
      const { taskSchema, recordFields, indexes } = config;
      await store.applyRecipe(run, { taskSchema, recordFields, indexes });
      const openSession = openSessions({
        ...{ run, seed: config.training.seed, truncated: config.sampling.truncated, inference: engines.inference },
        ...{ text: modelText, store, blobs: await openFileBlobs(join(place, "blobs")), clock },
      });
      const results = new Map<string, unknown>();
      const recipe = {
        evaluate: definition.evaluate,
        rollout: async (task: Task, agent: Parameters<RecipeDefinition["rollout"]>[1]) => {
          const result = await definition.rollout(task, agent);
          results.set(agent.record, result);
          return result;
        },
      };
      const settings = settingsOf(config);
      const context = {
        ...{ run, attempt: 1, store, limiter: createLimiter(Number.POSITIVE_INFINITY), clock, cancel: signal },
        ...{ recipe, openSession, onRecord: () => {} },
      };
      const groups = await Promise.all(tasks.map((task) => sampleGroup({ task, epoch: 0 }, settings, context)));
      this.#kept = { basis, groups, results };
      return groups.flatMap((group) =>
        group.samples.map((sample, index) => sampled(group.scheduled.task, index, sample)),
      );
    } finally {
      await store.dispose();
      await rm(place, { recursive: true, force: true });
    }
  }

  async #scoreAgain({ groups, results }: Kept, { evaluate }: RecipeDefinition, config: RecipeConfig) {
    const { clock, signal } = this.#options;
    const { limits } = settingsOf(config);
    const judged = groups.flatMap(({ scheduled: { task }, samples }) =>
      samples.map(async (sample, index): Promise<DevSample> => {
        const before = sampled(task, index, sample);
        const { report } = sample.outcome;
        if (report === null) return before;
        const view: RecordView = {
          ...{ id: sample.record.id, task, calls: report.calls, toolEvents: report.toolEvents, text: before.text },
          ...{ truncated: report.stats.truncated, result: results.get(sample.record.id) },
        };
        const ended = await runEvaluate(() => evaluate(view), limits, clock, signal);
        try {
          if (ended.kind !== "returned") throw ended.error;
          const { score, breakdown } = readScore(ended.value);
          return { ...before, score, breakdown, error: null };
        } catch (error) {
          return {
            ...before,
            score: null,
            breakdown: {},
            error: error instanceof Error ? error.message : String(error),
          };
        }
      }),
    );
    return await Promise.all(judged);
  }

  #report(
    did: DevRound["did"],
    problems: readonly ConfigProblem[],
    now: readonly DevSample[],
    check: number,
    began: number,
  ): DevRound {
    const samples = now.map((sample) => {
      const before = this.#last.get(placeOf(sample));
      const differs = before !== undefined && saidOf(before) !== saidOf(sample);
      return { ...sample, before: differs ? { score: before.score, text: before.text } : null };
    });
    // A round that could not run leaves the one before to be compared with.
    if (did !== "nothing") this.#last = new Map(samples.map((sample) => [placeOf(sample), sample]));
    const total = performance.now() - began;
    return { round: this.#round, did, problems, samples, times: { check, sample: total - check, total } };
  }
}

const placeOf = ({ task, sample }: DevSample) => JSON.stringify([task, sample]);

const saidOf = ({ score, text, breakdown, error }: DevSample) => JSON.stringify([score, text, breakdown, error]);

function settingsOf(config: RecipeConfig) {
  const settings = waveSettings(config);
  const maxNewTokens = Math.min(settings.sampling.maxNewTokens, mostNewTokens);
  return { ...settings, groupSize: samplesPerTask, retries: 0, sampling: { ...settings.sampling, maxNewTokens } };
}

function sampled(task: Task, index: number, { outcome }: Sample<Trajectories>): DevSample {
  const graded = outcome.kind === "scored" ? outcome.score : null;
  return {
    task: task.id,
    sample: index,
    text: outcome.report?.calls.at(-1)?.text ?? "",
    score: graded?.score ?? null,
    breakdown: graded?.breakdown ?? {},
    error: outcome.kind === "scored" ? null : `${outcome.error.code}: ${outcome.error.message}`,
    before: null,
  };
}

/** Compiled code has no lines and no comments, so that what is equal here behaves alike. */
function basisOf(code: string, { evaluate }: RecipeDefinition, config: RecipeConfig): string {
  const plain = code.slice(0, code.lastIndexOf("//# sourceMappingURL"));
  const { model, engine, data, sampling, training, taskSchema } = config;
  return JSON.stringify([
    plain.replace(String(evaluate), ""),
    model,
    engine,
    data,
    sampling,
    training.seed,
    taskSchema,
  ]);
}
