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
import { type TrainerSetup, valueEngine, windowNeeds } from "./trainerSetup.ts";
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
  const columns = await windowColumns(setup, request, needs, timer);
  const oldIsCurrent = columns.old === undefined;
  let { policyVersion, applied } = request;
  for (const [index, planned] of plan.entries()) {
    if (index < (request.stepsDone ?? 0)) continue;
    const members = planned.trajectories.map((t) => trajectories[t] as Trajectory);
    const ofMembers = chooseColumns(columns, planned.trajectories);
    const advantages = needs.advantage
      ? stepAdvantages(setup.advantages, setup.objective.kl, members, ofMembers)
      : null;
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

/** Forwards under the weights of the window's beginning, over every trajectory that a step may use. */
async function windowColumns(
  setup: TrainerSetup,
  request: WindowRequest,
  needs: { readonly old: boolean; readonly reference: boolean; readonly value: boolean },
  timer: StepTimer,
): Promise<WindowColumns> {
  const run = async (phase: PhaseName, engine: TrainingEngine, weights: WeightsRef, column: keyof Outputs) => {
    const forest = await timer.timed("time_packing", () =>
      packTrajectories(
        request.trajectories,
        packingFor(engine.info(), setup.training.packing, setup.training.tokenBudget),
      ),
    );
    const want = { logprob: false, entropy: false, value: false, [column]: true };
    const scalars = await timer.timed(phase, () =>
      forwardOccurrences(engine, forest, request.trajectories, want, weights, callOptions(request)),
    );
    return splitByTrajectory(forest.occurrences.offsets, scalars[column] as Float64Array);
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
