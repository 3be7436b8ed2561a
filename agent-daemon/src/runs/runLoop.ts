// The loop of a run: sample a window, train on it step by step, write each step down, hand the weights to the sampler, evaluate
// and save when they are due. It stops at safe points only, unless it is told to stop at once.
import { join } from "node:path";
import type { LoopState } from "../../../protocol/checkpoint.ts";
import type { RecordStats } from "../../../protocol/record.ts";
import { stepDocumentId } from "../../../protocol/step.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { Progress } from "../engines/interface.ts";
import type { DataCursor } from "../recipes/dataOrder.ts";
import { commitStep, planStep } from "../store/ledger.ts";
import { checkpointName } from "../training/checkpointFolder.ts";
import { pruneCheckpoints, writeCheckpoint } from "../training/checkpoints.ts";
import type { StepResult } from "../training/optimizerStep.ts";
import { mismatchNumbers } from "../training/stepMetrics.ts";
import { writeReplay } from "../training/stepReplay.ts";
import type { TrainerSetup } from "../training/trainerSetup.ts";
import { planOf, trainWindow } from "../training/trainWindow.ts";
import { commitTrained } from "./commitTrained.ts";
import { comparePolicies, requireAgreement } from "./comparePolicies.ts";
import { evaluatedTasks, type RunContext } from "./runContext.ts";
import { evaluatePolicy, sampleWindow } from "./sampleWindow.ts";
import { evaluatesAfter, savesAfter } from "./schedule.ts";
import { trainedStats } from "./trainedStats.ts";

export interface LoopEnd {
  readonly state: LoopState;
  readonly completed: boolean;
  /** The record with the largest |advantage| of the last step. */
  readonly record: string | null;
}

type Numbers = { readonly [name: string]: number };

interface Loop {
  readonly context: RunContext;
  readonly setup: TrainerSetup;
  readonly cursor: DataCursor;
  state: LoopState;
  record: string | null;
}

/**
 * Runs from `state` to the last step, or until somebody stops it.
 *
 * @param isFresh whether nothing was done before: then the base weights are evaluated and step 0 is written
 * @throws what sampling, training, stores and engines throw; RUN_STOPPED when it was stopped at once
 */
export async function runLoop(
  context: RunContext,
  setup: TrainerSetup,
  cursor: DataCursor,
  state: LoopState,
  isFresh: boolean,
): Promise<LoopEnd> {
  const loop: Loop = { context, setup, cursor, state, record: null };
  const { steps, checkpoint } = context.config.training;
  if (isFresh && !context.stops.stopping) await beginAtZero(loop);
  let compared = false;
  let saved = state.step;
  while (loop.state.step < steps) {
    if (!(await atSafePoint(loop))) break;
    const before = loop.state.step;
    const samplingBegan = context.clock.now();
    context.report.enter("sampling", before);
    const { trajectories, wave } = await sampleWindow(context, cursor);
    context.report.event({ type: "records", step: before + 1, counts: wave.counts });
    const samplingMs = context.clock.now() - samplingBegan;
    if (!compared) await compare(loop, trajectories);
    compared = true;
    const stats = new Map(
      wave.accepted.flatMap((group) => group.samples.map(({ record }) => [record.id, record.stats] as const)),
    );
    await trainOn(loop, { trajectories, stats, metrics: { ungraded: wave.counts.ungraded }, samplingMs });
    if (savesAfter(before, loop.state.step, steps, checkpoint.every)) {
      await save(loop);
      saved = loop.state.step;
    }
  }
  const completed = loop.state.step >= steps;
  if (!completed && saved < loop.state.step) await save(loop);
  return { state: loop.state, completed, record: loop.record };
}

/** False when the run shall end here. */
async function atSafePoint({ context, state }: Loop): Promise<boolean> {
  return await context.stops.safePoint(() => context.report.enter("paused", state.step));
}

/** Step 0 is the state before any update: it consumes nothing and has the metrics of the base weights. */
async function beginAtZero(loop: Loop): Promise<void> {
  const { context } = loop;
  const began = context.clock.now();
  const metrics = await evaluateIfDue(loop);
  await commitStep(context.store, context.blobs, {
    run: context.folder.run,
    attempt: context.attempt,
    step: 0,
    window: 0,
    outcome: { kind: "applied" },
    metrics,
    weightVersion: loop.state.policyVersion,
    checkpoint: null,
    wallMs: context.clock.now() - began,
    consumed: [],
    committed: context.clock.now(),
  });
}

async function evaluateIfDue(loop: Loop): Promise<Numbers> {
  const { context, state } = loop;
  const due = evaluatesAfter(state.step, context.config.training.steps, context.config.evaluation);
  if (!due || evaluatedTasks(context).length === 0) return {};
  context.report.enter("evaluating", state.step);
  const began = context.clock.now();
  const summary = await evaluatePolicy(context, state.step);
  context.report.event({
    type: "evaluation",
    step: state.step,
    summary,
    milliseconds: context.clock.now() - began,
  });
  return Object.fromEntries(Object.entries(summary.scores).map(([name, mean]) => [`eval_${name}`, mean]));
}

async function compare({ context, setup, state }: Loop, trajectories: readonly Trajectory[]): Promise<void> {
  context.report.enter("comparing", state.step);
  const report = await comparePolicies(
    setup.policy,
    {
      trajectories,
      policyVersion: state.policyVersion,
      packing: setup.training.packing,
      tokenBudget: setup.training.tokenBudget,
    },
    { signal: context.stops.now },
  );
  context.report.event({ type: "mismatch", step: state.step, metrics: mismatchNumbers(report) as Numbers });
  requireAgreement(report, context.config.training.mismatchLimit);
}

interface SampledWindow {
  readonly trajectories: readonly Trajectory[];
  /** Of the window's records; training adds to them. */
  readonly stats: Map<string, RecordStats>;
  /** What sampling knows besides the trainer. */
  readonly metrics: Numbers;
  readonly samplingMs: number;
}

async function trainOn(loop: Loop, sampled: SampledWindow): Promise<void> {
  const { context, setup } = loop;
  const { steps, checkpoint } = context.config.training;
  const { trajectories } = sampled;
  const request = {
    trajectories,
    window: loop.state.window,
    policyVersion: loop.state.policyVersion,
    applied: loop.state.applied,
    signal: context.stops.now,
    onProgress: (progress: Progress) => context.report.progress({ ...progress, unit: "tokens" }),
  };
  const before = loop.state.step;
  // The last window may be longer than what is left of the run.
  const plan = planOf(setup, request).slice(0, steps - before);
  const training = trainWindow(setup, request);
  for (const [index, planned] of plan.entries()) {
    const step = before + index + 1;
    const key = { run: context.folder.run, attempt: context.attempt, step, window: request.window };
    context.report.enter("training", step - 1);
    const began = context.clock.now();
    await planStep(context.store, context.blobs, key, planned.consumption, began);
    // Sampling and training take turns, so they need not hold their memory at the same time.
    await context.engines.inference.releaseMemory();
    const { value: result, done } = await training.next();
    await context.engines.inference.restoreMemory();
    if (done === true) break;
    const saves = index === plan.length - 1 && savesAfter(before, step, steps, checkpoint.every);
    await finishStep(loop, result, {
      began,
      checkpoint: saves ? `checkpoints/${checkpointName(step)}` : null,
      metrics: index === 0 ? sampled.metrics : {},
      timings: index === 0 ? { time_sampling: sampled.samplingMs } : {},
    });
    const updates = trainedStats(result.rows, trajectories, request.policyVersion, sampled.stats);
    const refused = (await context.store.records.update(updates)).find((error) => error !== null);
    if (refused) throw refused;
  }
  await training.return(undefined);
  const { epoch, position } = loop.cursor.at;
  loop.state = { ...loop.state, window: loop.state.window + 1, epoch, taskPosition: position };
}

interface StepExtras {
  /** Milliseconds since 1970. */
  readonly began: number;
  readonly checkpoint: string | null;
  /** What the loop knows besides the trainer. */
  readonly metrics: Numbers;
  readonly timings: Numbers;
}

async function finishStep(loop: Loop, result: StepResult, extras: StepExtras): Promise<void> {
  const { context } = loop;
  const step = loop.state.step + 1;
  const metrics = { ...result.metrics, ...extras.metrics } as Numbers;
  await commitTrained(context.store, context.blobs, {
    run: context.folder.run,
    attempt: context.attempt,
    step,
    result,
    metrics,
    checkpoint: extras.checkpoint,
    wallMs: context.clock.now() - extras.began,
    committed: context.clock.now(),
  });
  loop.state = {
    ...loop.state,
    step,
    applied: loop.state.applied + (result.outcome.kind === "applied" ? 1 : 0),
    policyVersion: result.policyVersion,
  };
  loop.record = mostAdvantaged(result) ?? loop.record;
  const { outcome } = result;
  context.report.event({
    type: "step",
    step,
    weightVersion: result.policyVersion,
    skipped: outcome.kind === "skipped" ? { code: outcome.code, reason: outcome.reason } : null,
    metrics,
    timings: { ...result.timings, ...extras.timings } as Numbers,
  });
  if (result.replay !== null) await writeReplay(join(context.folder.path, `step_${step}.replay`), result.replay);
  if (outcome.kind === "applied") await context.engines.inference.updateWeights({ kind: "shared" });
  const evaluated = await evaluateIfDue(loop);
  if (Object.keys(evaluated).length > 0) {
    await context.store.steps.addMetrics(stepDocumentId(context.folder.run, context.attempt, step), evaluated);
  }
}

/** The record whose tokens got the largest |advantage|: the trajectory to look at first. */
function mostAdvantaged({ rows }: StepResult): string | null {
  let best: { readonly record: string; readonly size: number } | null = null;
  for (const { record, columns } of rows) {
    let size = 0;
    for (const value of columns.advantage ?? []) size = Math.max(size, Math.abs(value));
    if (best === null || size > best.size) best = { record, size };
  }
  return best?.record ?? null;
}

async function save({ context, state, setup }: Loop): Promise<void> {
  context.report.enter("saving", state.step);
  const began = context.clock.now();
  const written = await writeCheckpoint(context.folder.checkpoints, state, {
    policy: setup.policy,
    critic: setup.critic,
  });
  await pruneCheckpoints(context.folder.checkpoints, context.config.training.checkpoint.keepLast);
  context.report.event({
    type: "checkpoint",
    step: state.step,
    checkpoint: `checkpoints/${checkpointName(written.step)}`,
    milliseconds: context.clock.now() - began,
  });
}
