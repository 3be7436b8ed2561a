// Sampling as a run does it: the recipe's settings in the scheduler's terms, one wave for a window, one pass over the held-out
// tasks for an evaluation, and the trajectories with their scores for the trainer.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { EvaluationSummary } from "../../../protocol/journal.ts";
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { CapturedTrajectory } from "../capture/trajectories.ts";
import type { DataCursor } from "../recipes/dataOrder.ts";
import { evaluateTasks } from "../sampling/evaluation.ts";
import { type GroupContext, gradedScore, type SampledGroup } from "../sampling/group.ts";
import { defaultMinGroupSize } from "../sampling/groupGate.ts";
import { createLimiter } from "../sampling/limiter.ts";
import type { RolloutLimits } from "../sampling/rolloutTimeouts.ts";
import type { SamplingSettings } from "../sampling/session.ts";
import { sampleWave, type Wave, type WaveSettings } from "../sampling/wave.ts";
import { evaluatedTasks, type RunContext } from "./runContext.ts";

type Trajectories = readonly CapturedTrajectory[];

const milliseconds = (seconds: number | null) => (seconds === null ? null : seconds * 1000);

function limitsOf({ sampling }: RecipeConfig): RolloutLimits {
  return {
    start: milliseconds(sampling.startTimeout),
    callGap: milliseconds(sampling.callGapTimeout),
    total: sampling.rolloutTimeout * 1000,
    evaluate: sampling.evaluateTimeout * 1000,
  };
}

function trainSettings({ sampling }: RecipeConfig): SamplingSettings {
  const { maxNewTokens, maxTurns, temperature, topP, topK, minP, stop } = sampling;
  return { maxNewTokens, maxTurns, temperature, topP, topK, minP, stop };
}

/** Evaluation draws from the whole distribution, greedy unless the recipe says otherwise. */
function evaluationSettings(config: RecipeConfig): SamplingSettings {
  const { maxNewTokens, temperature } = config.evaluation;
  return {
    ...trainSettings(config),
    maxNewTokens: maxNewTokens ?? config.sampling.maxNewTokens,
    temperature,
    topP: 1,
    topK: 0,
    minP: 0,
  };
}

export function waveSettings(config: RecipeConfig): WaveSettings {
  const { sampling, training } = config;
  return {
    groups: sampling.tasksPerStep * training.stepsPerWindow,
    groupSize: sampling.groupSize,
    minGroupSize: sampling.minGroupSize ?? defaultMinGroupSize(sampling.groupSize),
    refillLimit: sampling.refill.limit * training.stepsPerWindow,
    retries: sampling.retries,
    deadline: milliseconds(sampling.groupDeadline),
    sampling: trainSettings(config),
    limits: limitsOf(config),
  };
}

/** @param total rollouts that are expected, for the progress */
function groupContext(context: RunContext, total: number): GroupContext<Trajectories> {
  const { concurrency } = context.config.sampling;
  let done = 0;
  return {
    run: context.folder.run,
    attempt: context.attempt,
    store: context.store,
    limiter: createLimiter(concurrency ?? Number.POSITIVE_INFINITY),
    clock: context.clock,
    cancel: context.stops.now,
    recipe: context.definition,
    openSession: context.openSession,
    onRecord: () => {
      done += 1;
      context.report.progress({ done, total: Math.max(total, done), unit: "rollouts" });
    },
  };
}

/**
 * Samples the records of a window, in data order from where the cursor stands.
 *
 * @throws SAMPLING_NOTHING_USABLE when no group has enough graded records; RUN_STOPPED
 */
export async function sampleWindow(
  context: RunContext,
  cursor: DataCursor,
): Promise<{ readonly trajectories: readonly Trajectory[]; readonly wave: Wave<Trajectories> }> {
  const settings = waveSettings(context.config);
  const nextTask = () => {
    const { item, epoch } = cursor.next();
    const task = context.tasks.train[item];
    return task === undefined ? null : { task, epoch };
  };
  const wave = await sampleWave(nextTask, settings, groupContext(context, settings.groups * settings.groupSize));
  if (wave.accepted.length === 0) throw nothingUsable(wave);
  return { trajectories: wave.accepted.flatMap(gradedTrajectories), wave };
}

function gradedTrajectories(group: SampledGroup<Trajectories>): Trajectory[] {
  return group.samples.flatMap((sample) => {
    const score = gradedScore(sample);
    const { session } = sample.outcome;
    if (score === null || session === null) return [];
    return session.trajectories().map((trajectory) => ({ ...trajectory, group: group.taskDocument, score }));
  });
}

function nothingUsable(wave: Wave<Trajectories>): RollscopeError {
  const failed = wave.dropped.flatMap((group) => group.tries).find((record) => record.error !== null);
  const { records, graded, ungraded } = wave.counts;
  const why =
    failed?.error == null
      ? `${graded} of ${records} records were graded, ${ungraded} were left ungraded.`
      : `The first failure is that of record ${failed.id}: ${failed.error.code}: ${failed.error.message}`;
  return new RollscopeError("SAMPLING_NOTHING_USABLE", `Not one group of the window can be trained on. ${why}`, {
    next: "Look at the record with `rollscope inspect`, correct the recipe and resume the run.",
    at: failed === undefined ? {} : { record: failed.id },
  });
}

export async function evaluatePolicy(context: RunContext, step: number): Promise<EvaluationSummary> {
  const tasks = evaluatedTasks(context);
  return await evaluateTasks(
    tasks,
    step,
    {
      retries: context.config.sampling.retries,
      sampling: evaluationSettings(context.config),
      limits: limitsOf(context.config),
    },
    groupContext(context, tasks.length),
  );
}
