// One optimizer step: pack, accumulate, look at the gradient, step or skip. The only place where weights change. A skipped
// step leaves weights, optimizer state and schedule as they were and says why.
import type { StepMetrics, StepTimings } from "../../../protocol/metrics.ts";
import type { LedgerEntry, StepDocument } from "../../../protocol/step.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { AdvantageCounts } from "../algorithms/advantages.ts";
import type { MismatchReport } from "../algorithms/mismatch.ts";
import type { CallOptions, TrainingEngine } from "../engines/interface.ts";
import {
  type Accumulated,
  accumulateObjective,
  accumulateValueLoss,
  type OptimizerBatch,
  prepareBatch,
} from "./accumulateStep.ts";
import { learningRate } from "./learningRate.ts";
import { type PackedForest, packingFor, packTrajectories } from "./packing.ts";
import { consumptionNumbers, mismatchNumbers, objectiveNumbers, packingNumbers } from "./stepMetrics.ts";
import type { StepReplay } from "./stepReplay.ts";
import { compareWithSampler, ledgerEntries, rowsOf } from "./stepReport.ts";
import type { StepTimer } from "./stepTimer.ts";
import type { TrainerSetup } from "./trainerSetup.ts";
import type { TrainingRow } from "./trainingRows.ts";
import type { PlannedStep } from "./windowPlan.ts";

export interface StepInput extends OptimizerBatch {
  /** All trajectories of the plan; `trajectories` are those of them that stayed in the batch. */
  readonly consumed: readonly Trajectory[];
  readonly planned: PlannedStep;
  readonly window: number;
  /** Policy version when the window began, and now. */
  readonly windowVersion: number;
  readonly policyVersion: number;
  readonly applied: number;
  readonly counts: AdvantageCounts | null;
  readonly timer: StepTimer;
  readonly options: CallOptions;
}

export interface StepResult {
  readonly outcome: StepDocument["outcome"];
  readonly window: number;
  readonly pass: number;
  /** Policy version after the step. */
  readonly policyVersion: number;
  readonly metrics: StepMetrics;
  readonly timings: StepTimings;
  /** What was consumed, for the ledger: every planned record, also one of which nothing was trained. */
  readonly consumed: readonly LedgerEntry[];
  /** Per-token numbers of the trained trajectories. */
  readonly rows: readonly TrainingRow[];
  /** Trainer against sampler under the version that sampled; null where nothing was sampled. */
  readonly mismatch: MismatchReport | null;
  /** Everything that made a gradient that is not finite; null otherwise. */
  readonly replay: StepReplay | null;
}

/** @throws see trainWindow */
export async function takeStep(setup: TrainerSetup, input: StepInput): Promise<StepResult> {
  const objective = prepareBatch({ config: policyObjective(setup), definition: setup.definition }, input);
  if (objective.skipReason !== null) return nothingTrained(setup, input, objective.skipReason);
  try {
    return await takeRealStep(setup, input, objective);
  } catch (error) {
    await setup.policy.discard();
    await setup.critic?.discard();
    throw error;
  }
}

async function takeRealStep(
  setup: TrainerSetup,
  input: StepInput,
  objective: ReturnType<typeof prepareBatch>,
): Promise<StepResult> {
  const { policy, critic, training } = setup;
  const { timer, options } = input;
  const pack = (engine: TrainingEngine) =>
    timer.timed("time_packing", () =>
      packTrajectories(input.trajectories, packingFor(engine.info(), training.packing, training.tokenBudget)),
    );
  const forest = await pack(policy);
  const done = await accumulateObjective(policy, objective, forest, input, timer.timed, options);
  const value = await accumulateCritic(setup, input, pack);
  const [gradient, criticGradient] = await timer.timed("time_optimizer", async () => [
    await policy.gradient(),
    value === null ? null : await value.engine.gradient(),
  ]);
  const lr = learningRate(training, input.applied);
  const metrics: StepMetrics = {
    ...objectiveNumbers(done.result),
    ...(value === null ? {} : valueNumbers(setup, done, value)),
    ...consumptionNumbers(input.consumed, input.trajectories, input.counts),
    ...packingNumbers(forest),
    lr,
    grad_norm: gradient.norm,
    ...(criticGradient === null ? {} : { critic_grad_norm: criticGradient.norm }),
  };
  const mismatch = compareWithSampler(input, input.windowVersion, forest, done);
  const result = {
    window: input.window,
    pass: input.planned.pass,
    consumed: ledgerEntries(input.planned, input.trajectories),
    rows: rowsOf(input, { window: input.window, pass: input.planned.pass }, forest, done, value?.scalars.value),
    mismatch,
  };
  const numbers = { ...metrics, ...(mismatch === null ? {} : mismatchNumbers(mismatch)) };
  const finish = () => timer.finish({ packed: forest.packedTokens, flat: forest.flatTokens });
  if (!gradient.finite || criticGradient?.finite === false) {
    await policy.discard();
    await critic?.discard();
    return {
      ...result,
      outcome: {
        kind: "skipped",
        code: "TRAINING_GRADIENT_NON_FINITE",
        reason: `The gradient's norm is ${gradient.finite ? criticGradient?.norm : gradient.norm}: the step was skipped, weights, optimizer and schedule are as before.`,
      },
      policyVersion: input.policyVersion,
      metrics: { ...numbers, skipped: 1 },
      timings: finish(),
      replay: {
        policyVersion: input.policyVersion,
        records: input.planned.consumption.map(({ record }) => record),
        batches: forest.batches,
        cotangents: done.cotangents,
      },
    };
  }
  const step = { ...optimizerOptions(training), lr };
  const { version } = await timer.timed("time_optimizer", async () => {
    if (value !== null) await value.engine.step(step);
    return policy.step(step);
  });
  return {
    ...result,
    outcome: { kind: "applied" },
    policyVersion: version,
    metrics: { ...numbers, skipped: 0 },
    timings: finish(),
    replay: null,
  };
}

/** A critic with weights of its own takes the value part out of the policy's objective. */
function policyObjective({ objective, critic }: TrainerSetup): TrainerSetup["objective"] {
  if (critic === undefined) return objective;
  const { value: _critics, ...rest } = objective;
  return rest;
}

type CriticPass = Awaited<ReturnType<typeof accumulateValueLoss>> & { readonly engine: TrainingEngine };

async function accumulateCritic(
  { objective, critic }: TrainerSetup,
  input: StepInput,
  pack: (engine: TrainingEngine) => Promise<PackedForest>,
): Promise<CriticPass | null> {
  const { value } = objective;
  if (critic === undefined || value === undefined) return null;
  const forest = await pack(critic);
  const pass = await input.timer.timed("time_accumulate", () =>
    accumulateValueLoss(critic, forest, input, value, input.options),
  );
  return { ...pass, engine: critic };
}

function valueNumbers({ objective }: TrainerSetup, { result }: Accumulated, value: CriticPass): StepMetrics {
  return {
    loss: result.loss + (objective.value?.coef ?? 0) * value.loss,
    value_loss: value.loss,
    value_clip_fraction: value.clipFraction,
  };
}

function optimizerOptions({ betas, eps, weightDecay, decayed, maxGradNorm }: TrainerSetup["training"]) {
  return { betas, eps, weightDecay, decayed, maxGradNorm };
}

function nothingTrained(setup: TrainerSetup, input: StepInput, reason: string): StepResult {
  return {
    outcome: { kind: "skipped", code: "TRAINING_NO_TRAINABLE_TOKENS", reason },
    window: input.window,
    pass: input.planned.pass,
    policyVersion: input.policyVersion,
    metrics: {
      loss: 0,
      lr: learningRate(setup.training, input.applied),
      ...consumptionNumbers(input.consumed, input.trajectories, input.counts),
      skipped: 1,
    },
    timings: input.timer.finish({ packed: 0, flat: 0 }),
    consumed: ledgerEntries(input.planned, []),
    rows: [],
    mismatch: null,
    replay: null,
  };
}
