// A trainer on the reference engine, with a configuration that a test changes where it matters.

import type { TrainingEngine } from "../../agent-daemon/src/engines/interface.ts";
import type { StepResult } from "../../agent-daemon/src/training/optimizerStep.ts";
import type { TrainerSetup, TrainingConfig } from "../../agent-daemon/src/training/trainerSetup.ts";
import { trainWindow, type WindowRequest } from "../../agent-daemon/src/training/trainWindow.ts";
import { parseAdvantages } from "../../protocol/advantages.ts";
import { parseObjective } from "../../protocol/objective.ts";
import { trainingSchema } from "../../protocol/recipeLoop.ts";
import type { Trajectory } from "../../protocol/trajectory.ts";
import { ReferenceEngine } from "./referenceEngine.ts";

const grpo = { kind: "grpo", aggregation: "token-mean" };

export interface SetupSketch {
  readonly policy?: ReferenceEngine;
  readonly reference?: TrainerSetup["reference"];
  readonly critic?: ReferenceEngine;
  readonly definition?: TrainerSetup["definition"];
  readonly objective?: unknown;
  readonly advantages?: unknown;
  readonly training?: { readonly [key: string]: unknown };
}

export function sketchSetup(sketch: SetupSketch = {}): TrainerSetup & { readonly policy: ReferenceEngine } {
  const policy = sketch.policy ?? new ReferenceEngine();
  return { ...setupOn(policy, sketch), policy };
}

/** The same on any engine. */
export function setupOn(policy: TrainingEngine, sketch: Omit<SetupSketch, "policy"> = {}): TrainerSetup {
  const training: TrainingConfig = trainingSchema.parse({ lr: 0.01, steps: 100, ...sketch.training });
  return {
    policy,
    reference: sketch.reference,
    critic: sketch.critic,
    objective: parseObjective(sketch.objective ?? grpo),
    definition: sketch.definition,
    advantages: parseAdvantages(sketch.advantages ?? { estimator: "group_mean" }),
    training,
    now: () => performance.now(),
  };
}

export async function runWindow(
  setup: TrainerSetup,
  trajectories: readonly Trajectory[],
  request: Partial<WindowRequest> = {},
): Promise<StepResult[]> {
  const results: StepResult[] = [];
  const whole = { trajectories, window: 0, policyVersion: 0, applied: 0, ...request };
  for await (const result of trainWindow(setup, whole)) results.push(result);
  return results;
}
