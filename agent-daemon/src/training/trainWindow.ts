// One optimizer window: what its records were worth when it began (old, reference, values), then its steps one after another.
// It owns the order of things; formulas are in algorithms, matrices in the engine, and nothing is stored here.

import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { SequenceConstants } from "../algorithms/columns.ts";
import type { CallOptions, Outputs, TrainingEngine, WeightsRef } from "../engines/interface.ts";
import { forwardOccurrences, ownColumns, splitByTrajectory } from "./occurrenceColumns.ts";
import { type StepResult, takeStep } from "./optimizerStep.ts";
import { packingFor, packTrajectories } from "./packing.ts";
import { type StepAdvantages, stepAdvantages, type WindowColumns } from "./stepAdvantages.ts";
import { type PhaseName, StepTimer } from "./stepTimer.ts";
import { type TrainerSetup, valueEngine, type WindowNeeds, windowNeeds } from "./trainerSetup.ts";
import { checkTrajectories } from "./trajectoryCheck.ts";
import { type PlannedStep, planWindow } from "./windowPlan.ts";

export interface WindowRequest extends CallOptions {
  readonly trajectories: readonly Trajectory[];
  /** Number of the window in the run. */
  readonly window: number;
  /** Steps behind the weights now. */
  readonly policyVersion: number;
  /** Steps of the run that changed the weights; the schedule counts these. */
  readonly applied: number;
  /** Steps of this window that were committed before; they are not taken again. */
  readonly stepsDone?: number;
}

/** The steps that a window will take, from nothing but its trajectories and the configuration. */
export function planOf(setup: TrainerSetup, request: Pick<WindowRequest, "trajectories" | "window">): PlannedStep[] {
  return planWindow(request.trajectories, { ...setup.training, window: request.window });
}

/**
 * Takes the window's steps, one per `next()`: whoever iterates can write a step's plan before it and commit it after.
 * An error leaves no gradient in the engines; steps that were yielded stand.
 * @throws TRAINING_SETUP_INVALID, TRAINING_TRAJECTORY_INVALID, TRAINING_PATH_TOO_LONG, TRAINING_NON_FINITE, and what objective,
 * advantages and engine throw
 */
export async function* trainWindow(setup: TrainerSetup, request: WindowRequest): AsyncGenerator<StepResult> {
  const { trajectories } = request;
  let timer = new StepTimer(setup.now);
  checkTrajectories(trajectories);
  const plan = planOf(setup, request);
  const needs = windowNeeds(setup, plan.length);
  const early =
    needs.advantage && !needs.forwardsBeforeAdvantages
      ? plan.map((step) => advantagesOf(setup, step, request, {}))
      : null;
  const used = early === null ? trajectories.map((_, t) => t) : usedBy(plan, early);
  const columns = await windowColumns(setup, request, used, needs, timer);
  const oldIsCurrent = columns.old === undefined;
  let { policyVersion, applied } = request;
  for (const [index, planned] of plan.entries()) {
    if (index < (request.stepsDone ?? 0)) continue;
    const members = planned.trajectories.map((t) => trajectories[t] as Trajectory);
    const ofMembers = chooseColumns(columns, planned.trajectories);
    const advantages = needs.advantage ? (early?.[index] ?? advantagesOf(setup, planned, request, columns)) : null;
    const kept = advantages?.kept ?? members.map((_, t) => t);
    const result = await takeStep(setup, {
      consumed: members,
      trajectories: kept.map((t) => members[t] as Trajectory),
      constants: kept.map((t) => constantsOf(members[t] as Trajectory, t, policyVersion, ofMembers, advantages)),
      oldIsCurrent,
      planned,
      window: request.window,
      windowVersion: request.policyVersion,
      policyVersion,
      applied,
      counts: advantages?.counts ?? null,
      timer,
      options: callOptions(request),
    });
    if (result.outcome.kind === "applied") {
      policyVersion = result.policyVersion;
      applied += 1;
    }
    yield result;
    timer = new StepTimer(setup.now);
  }
}

/** Advantages of a planned step; `columns` are the window's. */
function advantagesOf(
  { advantages, objective }: TrainerSetup,
  { trajectories: members }: PlannedStep,
  { trajectories }: WindowRequest,
  columns: WindowColumns,
): StepAdvantages {
  const chosen = members.map((t) => trajectories[t] as Trajectory);
  return stepAdvantages(advantages, objective.kl, chosen, chooseColumns(columns, members));
}

/** Trajectories that some step trains: a forward of the others would be for nothing. */
function usedBy(plan: readonly PlannedStep[], early: readonly StepAdvantages[]): number[] {
  const used = new Set(
    plan.flatMap((step, index) => early[index]?.kept.map((k) => step.trajectories[k] as number) ?? []),
  );
  return [...used].sort((a, b) => a - b);
}

/** Forwards under the weights of the window's beginning. By trajectory of the window; empty where it is not in `used`. */
async function windowColumns(
  setup: TrainerSetup,
  request: WindowRequest,
  used: readonly number[],
  needs: WindowNeeds,
  timer: StepTimer,
): Promise<WindowColumns> {
  const trajectories = used.map((t) => request.trajectories[t] as Trajectory);
  const run = async (phase: PhaseName, engine: TrainingEngine, weights: WeightsRef, column: keyof Outputs) => {
    const { packing, tokenBudget } = setup.training;
    const forest = await timer.timed("time_packing", () =>
      packTrajectories(trajectories, packingFor(engine.info(), packing, tokenBudget)),
    );
    const want = { logprob: false, entropy: false, value: false, [column]: true };
    const scalars = await timer.timed(phase, () =>
      forwardOccurrences(engine, forest, trajectories, want, weights, callOptions(request)),
    );
    const columns: Float64Array[] = request.trajectories.map(() => new Float64Array());
    splitByTrajectory(forest.occurrences.offsets, scalars[column] as Float64Array).forEach((numbers, k) => {
      columns[used[k] as number] = numbers;
    });
    return columns;
  };
  const { policy, reference } = setup;
  const now: WeightsRef = { kind: "policy" };
  return {
    ...(needs.old ? { old: await run("time_old", policy, now, "logprob") } : {}),
    ...(needs.reference && reference !== undefined
      ? { reference: await run("time_reference", reference.engine, reference.weights, "logprob") }
      : {}),
    ...(needs.value ? { value: await run("time_value", valueEngine(setup), now, "value") } : {}),
  };
}

function chooseColumns(columns: WindowColumns, members: readonly number[]): WindowColumns {
  const choose = (column: readonly Float64Array[]) => members.map((t) => column[t] as Float64Array);
  return {
    ...(columns.old === undefined ? {} : { old: choose(columns.old) }),
    ...(columns.reference === undefined ? {} : { reference: choose(columns.reference) }),
    ...(columns.value === undefined ? {} : { value: choose(columns.value) }),
  };
}

function constantsOf(
  trajectory: Trajectory,
  index: number,
  policyVersion: number,
  columns: WindowColumns,
  advantages: StepAdvantages | null,
): SequenceConstants {
  return {
    ...ownColumns(trajectory, policyVersion),
    old: columns.old?.[index],
    ref: columns.reference?.[index],
    oldValue: columns.value?.[index],
    advantage: advantages?.advantages[index] ?? undefined,
    returns: advantages?.returns[index] ?? undefined,
  };
}

function callOptions({ signal, onProgress }: CallOptions): CallOptions {
  return { ...(signal === undefined ? {} : { signal }), ...(onProgress === undefined ? {} : { onProgress }) };
}
