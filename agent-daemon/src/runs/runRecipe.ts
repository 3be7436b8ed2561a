// The coordinator of a run: opens its parts, goes back to the last checkpoint when it is resumed, runs the loop, and closes
// everything again, telling in the journal how it ended. It is the only writer of the run's journal and ledger.
import { relative, sep } from "node:path";
import type { LoopState } from "../../../protocol/checkpoint.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { EndStatus, JournalError } from "../../../protocol/journal.ts";
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import { advantageColumnsRead, columnsRead } from "../algorithms/objectiveReads.ts";
import type { TrainingEngine } from "../engines/interface.ts";
import { loadModelText, type ModelText } from "../engines/tokenizer/load.ts";
import { DataCursor } from "../recipes/dataOrder.ts";
import { loadRecipe } from "../recipes/loadRecipe.ts";
import { dataSeed, loadTasks } from "../recipes/loadTasks.ts";
import { ensureModel } from "../recipes/models.ts";
import { catchStrayErrors, forbidExit, ofRecipe, strayError } from "../recipes/processGuard.ts";
import type { Clock } from "../sampling/clock.ts";
import { openFileBlobs } from "../store/fileBlobs.ts";
import { openSqliteStore } from "../store/sqliteStore.ts";
import type { TrainerSetup } from "../training/trainerSetup.ts";
import { type BlockedLimits, watchBlocked } from "./blockedWatch.ts";
import { startControlServer } from "./controlServer.ts";
import { hashDataFiles, requireSameData } from "./dataFiles.ts";
import { describeEnvironment, readRunEnvironment, writeRunEnvironment } from "./environment.ts";
import { goBack, requireUnfinished } from "./goBack.ts";
import { openJournal } from "./journal.ts";
import { openSessions } from "./openSessions.ts";
import {
  createReport,
  journalError,
  type RunContext,
  type RunEngines,
  type RunObserver,
  type RunReport,
} from "./runContext.ts";
import { folderError, type RunFolder } from "./runFolder.ts";
import { lockRun } from "./runLock.ts";
import { runLoop } from "./runLoop.ts";
import { evaluationSteps } from "./schedule.ts";
import type { StopSwitch } from "./stopSwitch.ts";

/** Loads a model and opens what trains it and what samples from it. */
export type OpenEngines = (model: string, text: ModelText, config: RecipeConfig) => Promise<RunEngines>;

export interface RunRequest {
  readonly folder: RunFolder;
  /** From 1; above 1 the run is resumed. */
  readonly attempt: number;
  readonly config: RecipeConfig;
  /** Absolute path of the recipe's folder. */
  readonly recipeFolder: string;
  readonly version: string;
  readonly stops: StopSwitch;
  readonly observer: RunObserver;
  readonly clock: Clock;
  readonly openEngines: OpenEngines;
}

export interface RunEnd {
  readonly status: EndStatus;
  readonly step: number;
  readonly error: unknown;
  readonly record: string | null;
}

/** Recipe code that fails in the background of every rollout shall not fill the journal. */
const mostStrayErrors = 20;

/** Undoes openings in reverse order; the first error is thrown after all were tried. */
class Closing {
  readonly #steps: (() => void | Promise<void>)[] = [];

  add<T>(opened: T, close: (opened: T) => void | Promise<void>): T {
    this.#steps.push(() => close(opened));
    return opened;
  }

  async dispose(): Promise<void> {
    const errors: unknown[] = [];
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}

/**
 * Runs a recipe to its end. Never rejects for what happens inside the run: that is its end, status failed.
 *
 * @throws RUN_ACTIVE, RUN_NOT_RESUMABLE, RUN_FOLDER_UNWRITABLE when the attempt may not begin; then nothing was written
 */
export async function runRecipe(request: RunRequest): Promise<RunEnd> {
  const { folder, attempt, clock } = request;
  const closing = new Closing();
  closing.add(lockRun(folder), (lock) => lock.dispose());
  try {
    if (attempt > 1) requireUnfinished(folder);
    return await runAttempt(request, closing, attempt, clock);
  } finally {
    await closing.dispose();
  }
}

async function runAttempt(request: RunRequest, closing: Closing, attempt: number, clock: Clock): Promise<RunEnd> {
  const { folder } = request;
  const journal = closing.add(openJournal(folder.journal, attempt, clock.now), (opened) => opened.dispose());
  const report = createReport(journal, request.observer, 0);
  closing.add(guardRecipeCode(report, request), (guard) => guard.dispose());
  closing.add(watchBlocked(blockedLimits(request.config)), (watch) => watch.dispose());
  let end: RunEnd;
  try {
    end = await runUntilEnd(request, report, closing, journal.tornBytes);
  } catch (error) {
    const { failure, now } = request.stops;
    const stopped = failure === null && now.aborted;
    end = {
      status: stopped ? "stopped" : "failed",
      step: report.step,
      error: stopped ? null : folderError(failure?.error ?? error, folder),
      record: null,
    };
  }
  const error: JournalError | null = end.error === null ? null : journalError(end.error);
  const peakMemory = process.resourceUsage().maxRSS * 1024;
  try {
    report.event({ type: "ended", status: end.status, step: end.step, error, peakMemory, record: end.record });
  } catch (unwritten) {
    // On a disk that is full the journal cannot say how the run ended; what ended it says more than that.
    if (end.error === null) throw unwritten;
  }
  return end;
}

/** As long as the recipe lets its own code take, at least a minute. */
function blockedLimits({ sampling }: RecipeConfig): BlockedLimits {
  return { warn: 10_000, kill: 1000 * Math.max(60, sampling.rolloutTimeout, sampling.evaluateTimeout) };
}

/** Recipe code fails its own record at most; an error of anybody else's code ends the run. The same stray error is told once. */
function guardRecipeCode(report: RunReport, { recipeFolder, stops }: RunRequest): { dispose(): void } {
  const told = new Set<string>();
  const exit = forbidExit();
  const stray = catchStrayErrors((thrown) => {
    if (!ofRecipe(thrown, recipeFolder)) {
      stops.fail(thrown);
      return;
    }
    const error = strayError(thrown);
    if (told.has(error.message) || told.size >= mostStrayErrors) return;
    told.add(error.message);
    report.warn(error, report.step);
  });
  return {
    dispose() {
      stray.dispose();
      exit.dispose();
    },
  };
}

async function runUntilEnd(
  request: RunRequest,
  report: RunReport,
  closing: Closing,
  tornBytes: number,
): Promise<RunEnd> {
  const { folder, attempt, config, recipeFolder, stops, clock } = request;
  const { steps, seed } = config.training;
  await startControl(request, report, closing);
  const { definition, codeHash } = await loadRecipe(recipeFolder, { bundleFolder: folder.recipe, signal: stops.now });
  const tasks = await loadTasks(recipeFolder, config, { signal: stops.now });
  const data = await hashDataFiles(recipeFolder, config, stops.now);
  const earlier = attempt === 1 ? null : readRunEnvironment(folder);
  if (earlier !== null) requireSameData(earlier.data, data);
  const model = await ensureModel(config.model, { folder: recipeFolder, signal: stops.now });
  stops.now.throwIfAborted();

  const store = closing.add(await openSqliteStore(folder.records), (opened) => opened.dispose());
  const blobs = await openFileBlobs(folder.blobs);
  const { taskSchema, recordFields, indexes } = config;
  await store.applyRecipe(folder.run, { taskSchema, recordFields, indexes });
  const text = loadModelText(model.path);
  const engines = closing.add(await request.openEngines(model.path, text, config), (opened) => opened.dispose());
  writeRunEnvironment(
    folder,
    await describeEnvironment(engines.training.info(), {
      attempt,
      version: request.version,
      model: { source: config.model.source, path: model.path },
      recipe: { folder: recipeFolder, codeSha256: codeHash },
      data,
    }),
  );
  const setup = await trainerSetup(config, definition.objective, engines.training, clock);
  const initial = initialState(seed);
  const back =
    attempt === 1 ? null : await goBack(folder, attempt, initial, { policy: engines.training }, { store, blobs });
  const state = back?.state ?? initial;
  if (state.policyVersion > 0) await engines.inference.updateWeights({ kind: "shared" });

  report.event({
    type: "started",
    run: folder.run,
    recipe: config.name,
    model: config.model.source,
    steps,
    seed,
    evaluations: tasks.heldOut.length === 0 ? [] : evaluationSteps(steps, config.evaluation),
    resumed:
      back === null
        ? null
        : {
            step: state.step,
            checkpoint:
              back.checkpoint === null ? null : relative(folder.path, back.checkpoint.path).split(sep).join("/"),
            voidedSteps: back.voidedSteps,
          },
  });
  for (const { step, path, reason } of back?.skipped ?? []) report.warn(skippedCheckpoint(step, path, reason), step);
  if (tornBytes > 0) report.warn(tornJournal(folder, tornBytes), null);
  if (earlier !== null && earlier.recipe.codeSha256 !== codeHash) report.warn(changedCode(recipeFolder), null);

  const openSession = openSessions({
    run: folder.run,
    seed,
    truncated: config.sampling.truncated,
    inference: engines.inference,
    text,
    store,
    blobs,
    clock,
  });
  const context: RunContext = {
    folder,
    attempt,
    config,
    definition,
    tasks,
    engines,
    store,
    blobs,
    openSession,
    stops,
    clock,
    report,
  };
  const cursor = new DataCursor(tasks.train.length, config.data.order === "shuffled" ? dataSeed(config) : null, {
    epoch: state.epoch,
    position: state.taskPosition,
  });
  const end = await runLoop(context, setup, cursor, state, back === null || back.checkpoint === null);
  return { status: end.completed ? "completed" : "stopped", step: end.state.step, error: null, record: end.record };
}

function initialState(seed: number): LoopState {
  return {
    step: 0,
    applied: 0,
    window: 0,
    stepOfWindow: 0,
    epoch: 0,
    taskPosition: 0,
    seed,
    policyVersion: 0,
    criticVersion: null,
  };
}

async function startControl(request: RunRequest, report: RunReport, closing: Closing): Promise<void> {
  const { folder, attempt, stops, config } = request;
  const server = await startControlServer(folder.control, attempt, (command) => {
    if (command === "stop") stops.stop();
    else if (command === "stop-now") stops.stopNow();
    else if (command === "pause") stops.pause();
    else if (command === "resume") stops.resume();
    return {
      run: folder.run,
      pid: process.pid,
      attempt,
      phase: stops.stopping && report.phase !== "paused" ? "stopping" : report.phase,
      step: report.step,
      steps: config.training.steps,
      pausing: stops.pausing,
      stopping: stops.stopping,
    };
  });
  closing.add(server, (opened) => opened.dispose());
}

const referenceSnapshot = "reference";

/** The frozen reference is a copy of the initial weights, kept only when the objective or the reward reads it. */
async function trainerSetup(
  config: RecipeConfig,
  definition: TrainerSetup["definition"],
  policy: TrainingEngine,
  clock: Clock,
): Promise<TrainerSetup> {
  const { objective, advantages, training } = config;
  const reads =
    columnsRead(objective, { definition }).has("ref") || advantageColumnsRead(objective, advantages).has("ref");
  if (reads) await policy.snapshot(referenceSnapshot);
  return {
    policy,
    objective,
    definition,
    advantages,
    training,
    now: clock.now,
    ...(reads ? { reference: { engine: policy, weights: { kind: "snapshot", id: referenceSnapshot } } } : {}),
  };
}

function skippedCheckpoint(step: number, path: string, reason: string): RollscopeError {
  return new RollscopeError("CHECKPOINT_INVALID", `The checkpoint of step ${step} was not used: ${reason}.`, {
    next: "Nothing needs to be done: it is written anew when the run gets there.",
    at: { path },
  });
}

function tornJournal(folder: RunFolder, bytes: number): RollscopeError {
  return new RollscopeError(
    "JOURNAL_INVALID",
    `The journal ended in the middle of a line; ${bytes} bytes were cut off.`,
    {
      next: "Nothing needs to be done: one event of the earlier attempt is missing.",
      at: { path: folder.journal },
    },
  );
}

function changedCode(folder: string): RollscopeError {
  return new RollscopeError("RUN_NOT_RESUMABLE", `The recipe's code in ${folder} has changed since the run began.`, {
    next: "The attempt goes on with the new code; start a new run when both halves must be alike.",
    at: { path: folder },
  });
}
