// What an optimizer window needs besides its trajectories, and which forwards a configuration asks for. Refuses a set-up that
// lacks an engine before anything is computed.
import type { AdvantagesConfig } from "../../../protocol/advantages.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { ObjectiveConfig } from "../../../protocol/objective.ts";
import type { ObjectiveDefinition } from "../../../protocol/objectiveDefinition.ts";
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import { advantageColumnsRead, columnsRead, readsAdvantage, readsValues } from "../algorithms/objectiveReads.ts";
import type { TrainingEngine, WeightsRef } from "../engines/interface.ts";

export interface ReferenceModel {
  readonly engine: TrainingEngine;
  /** A snapshot or the base weights of the policy's engine, or those of an engine of its own. */
  readonly weights: WeightsRef;
}

export type TrainingConfig = Pick<
  RecipeConfig["training"],
  | "steps"
  | "seed"
  | "lr"
  | "schedule"
  | "betas"
  | "eps"
  | "weightDecay"
  | "decayed"
  | "maxGradNorm"
  | "tokenBudget"
  | "packing"
  | "stepsPerWindow"
  | "epochsPerWindow"
>;

export interface TrainerSetup {
  readonly policy: TrainingEngine;
  /** Needed when the objective or the reward reads the reference; otherwise only for the KL metrics. */
  readonly reference?: ReferenceModel | undefined;
  /** A value model with weights of its own. Without it values come from the policy's value head, where it has one. */
  readonly critic?: TrainingEngine | undefined;
  readonly objective: ObjectiveConfig;
  /** The recipe's own objective, for kind custom. */
  readonly definition?: ObjectiveDefinition | undefined;
  readonly advantages: AdvantagesConfig;
  readonly training: TrainingConfig;
  /** Milliseconds, never going back; for timings alone. */
  readonly now: () => number;
}

/** Which forwards a window runs before its steps. */
export interface WindowNeeds {
  readonly old: boolean;
  readonly reference: boolean;
  readonly value: boolean;
  readonly advantage: boolean;
  /** Advantages are made from one of these forwards; otherwise they are known before any. */
  readonly forwardsBeforeAdvantages: boolean;
}

/**
 * @param steps optimizer steps of the window
 * @throws TRAINING_SETUP_INVALID when an engine or a value head is missing
 */
export function windowNeeds(setup: TrainerSetup, steps: number): WindowNeeds {
  const { objective, definition } = setup;
  const read = columnsRead(objective, { definition });
  const readByAdvantages = advantageColumnsRead(objective, setup.advantages);
  const advantage = readsAdvantage(objective, { definition });
  const needs = {
    old: steps > 1 || readByAdvantages.has("old"),
    reference: setup.reference !== undefined || read.has("ref") || readByAdvantages.has("ref"),
    value: readByAdvantages.has("value") || read.has("oldValue"),
    advantage,
    forwardsBeforeAdvantages: readByAdvantages.size > 0,
  };
  if (needs.reference && setup.reference === undefined) {
    refuse("The objective reads the reference, but there is no reference model.", "Give the run a reference model.");
  }
  if (readsValues(objective, setup.advantages) && !valueEngine(setup).info().capabilities.value) {
    refuse(
      "The objective reads values, but no engine of this run has a value head.",
      "Give the run a critic, or change advantages.estimator.",
    );
  }
  if (objective.value !== undefined && setup.advantages.estimator !== "gae") {
    refuse(
      "objective.value needs returns, which only advantages.estimator gae makes.",
      "Set advantages.estimator: gae, or remove objective.value.",
    );
  }
  return needs;
}

export function valueEngine(setup: TrainerSetup): TrainingEngine {
  return setup.critic ?? setup.policy;
}

function refuse(sentence: string, next: string): never {
  throw new RollscopeError("TRAINING_SETUP_INVALID", sentence, { next });
}
