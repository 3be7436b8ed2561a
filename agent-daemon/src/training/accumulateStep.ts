// The gradient of one optimizer batch: forward, objective, cotangents, over all its micro-batches, with a first pass where the
// objective's statistics span several. It leaves the gradient in the engine and takes no step.
import type { ObjectiveConfig } from "../../../protocol/objective.ts";
import type { ObjectiveDefinition } from "../../../protocol/objectiveDefinition.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { SequenceConstants } from "../algorithms/columns.ts";
import {
  type ObjectivePart,
  type ObjectiveResult,
  type PreparedObjective,
  prepareObjective,
} from "../algorithms/preparedObjective.ts";
import type { ObjectiveStatistics } from "../algorithms/statistics.ts";
import { valueTerm } from "../algorithms/valueLoss.ts";
import type { CallOptions, Cotangents, Outputs, TrainingEngine } from "../engines/interface.ts";
import { withToken } from "./nonFiniteToken.ts";
import { forwardOccurrences } from "./occurrenceColumns.ts";
import type { PackedForest } from "./packing.ts";
import {
  gatherScalars,
  newOccurrenceScalars,
  type OccurrenceCotangents,
  type OccurrenceScalars,
  scatterCotangents,
} from "./slots.ts";
import type { StepTimer } from "./stepTimer.ts";

/** The trajectories of an optimizer batch with what was known of them before its forward. */
export interface OptimizerBatch {
  readonly trajectories: readonly Trajectory[];
  /** Over trainable tokens, so that the objective's occurrence numbers are those of the forest. */
  readonly constants: readonly SequenceConstants[];
  readonly oldIsCurrent: boolean;
}

export interface ObjectiveChoice {
  readonly config: ObjectiveConfig;
  readonly definition?: ObjectiveDefinition | undefined;
}

export interface Accumulated {
  readonly result: ObjectiveResult;
  /** Of the pass with gradient, by occurrence. */
  readonly scalars: OccurrenceScalars;
  /** Product of the corrections' weights by occurrence; null where none is configured. */
  readonly correction: Float64Array | null;
  /** What went to the engine, by batch: with the batches it makes the gradient anew. */
  readonly cotangents: readonly Cotangents[];
}

export function prepareBatch(choice: ObjectiveChoice, batch: OptimizerBatch): PreparedObjective {
  return prepareObjective(choice.config, batch.constants, {
    definition: choice.definition,
    oldIsCurrent: batch.oldIsCurrent,
  });
}

/**
 * Adds the gradient of the objective over `batch` to the engine's accumulated one. Cotangents are the same for any cut.
 * @throws TRAINING_NON_FINITE and what the objective throws; the engine may then hold part of the gradient
 */
export async function accumulateObjective(
  engine: TrainingEngine,
  objective: PreparedObjective,
  forest: PackedForest,
  batch: OptimizerBatch,
  timed: StepTimer["timed"],
  options: CallOptions,
): Promise<Accumulated> {
  const want: Outputs = { logprob: true, entropy: true, value: objective.needs.value };
  let statistics: ObjectiveStatistics | null = null;
  if (objective.scope !== "token" && forest.batches.length > 1) {
    statistics = await timed("time_statistics", () => firstPass(engine, objective, forest, batch, options));
  }
  const parts: ObjectivePart[] = new Array(forest.batches.length);
  const { count } = forest.occurrences;
  const correction = new Float64Array(count);
  let corrected = false;
  const { scalars, cotangents } = await timed("time_accumulate", () =>
    accumulateOccurrences(engine, forest, batch.trajectories, want, options, (occurrences, now, index) => {
      const given = { logp: now.logprob as Float64Array, entropy: now.entropy, value: now.value };
      if (objective.scope !== "token" && statistics === null) statistics = statisticsOf(objective, occurrences, given);
      const part = objective.cotangents(occurrences, given, statistics);
      parts[index] = part;
      if (part.correction !== null) {
        corrected = true;
        scatter(part.correction, occurrences, correction);
      }
      return { logprob: part.dLogp, entropy: part.dEntropy ?? undefined, value: part.dValue ?? undefined };
    }),
  );
  return { result: objective.finish(parts), scalars, correction: corrected ? correction : null, cotangents };
}

/**
 * Adds the gradient of coef · token mean of the value loss to the critic's accumulated one.
 * @returns the unscaled value loss and the fraction of tokens whose value moved further than the clip
 */
export async function accumulateValueLoss(
  critic: TrainingEngine,
  forest: PackedForest,
  batch: OptimizerBatch,
  value: { readonly coef: number; readonly clip?: number | undefined },
  options: CallOptions,
): Promise<{ loss: number; clipFraction: number; scalars: OccurrenceScalars; cotangents: readonly Cotangents[] }> {
  const { count } = forest.occurrences;
  const oldValue = joined(batch.constants, "oldValue");
  const returns = joined(batch.constants, "returns");
  const losses = new Float64Array(count);
  let clipped = 0;
  const want: Outputs = { logprob: false, entropy: false, value: true };
  const { scalars, cotangents } = await accumulateOccurrences(
    critic,
    forest,
    batch.trajectories,
    want,
    options,
    (occurrences, now) => {
      const derivative = Float64Array.from(occurrences, (o, i) => {
        const term = valueTerm(
          (now.value as Float64Array)[i] as number,
          oldValue[o] as number,
          returns[o] as number,
          value.clip ?? Number.POSITIVE_INFINITY,
        );
        losses[o] = term.loss;
        if (term.clipped) clipped += 1;
        return (value.coef * term.dValue) / count;
      });
      return { value: derivative };
    },
  );
  const loss = losses.reduce((sum, term) => sum + term, 0) / count;
  return { loss, clipFraction: clipped / count, scalars, cotangents };
}

/** Hands every batch's scalars to `derive` by occurrence and its derivatives back to the engine by slot. */
async function accumulateOccurrences(
  engine: TrainingEngine,
  forest: PackedForest,
  trajectories: OptimizerBatch["trajectories"],
  want: Outputs,
  options: CallOptions,
  derive: (occurrences: Int32Array, scalars: OccurrenceScalars, index: number) => OccurrenceCotangents,
): Promise<{ scalars: OccurrenceScalars; cotangents: readonly Cotangents[] }> {
  const scalars = newOccurrenceScalars(forest.occurrences.count, want);
  const cotangents: Cotangents[] = new Array(forest.batches.length);
  try {
    await engine.accumulate(
      forest.batches,
      want,
      (index, ofBatch) => {
        gatherScalars(forest, trajectories, index, ofBatch, scalars);
        const occurrences = forest.members[index] as Int32Array;
        const ofSlots = scatterCotangents(forest, index, derive(occurrences, pick(scalars, occurrences), index));
        cotangents[index] = ofSlots;
        return ofSlots;
      },
      options,
    );
  } catch (error) {
    throw await withToken(error, { engine, trajectories, want, weights: { kind: "policy" } });
  }
  return { scalars, cotangents };
}

async function firstPass(
  engine: TrainingEngine,
  objective: PreparedObjective,
  forest: PackedForest,
  batch: OptimizerBatch,
  options: CallOptions,
): Promise<ObjectiveStatistics> {
  const want = { logprob: true, entropy: objective.needs.entropy, value: false };
  const { logprob, entropy } = await forwardOccurrences(
    engine,
    forest,
    batch.trajectories,
    want,
    { kind: "policy" },
    options,
  );
  const all = Int32Array.from({ length: forest.occurrences.count }, (_, o) => o);
  return statisticsOf(objective, all, { logp: logprob as Float64Array, entropy });
}

function statisticsOf(
  objective: PreparedObjective,
  occurrences: Int32Array,
  scalars: { readonly logp: Float64Array; readonly entropy?: Float64Array | undefined },
): ObjectiveStatistics {
  const collector = objective.collectStatistics();
  collector.add(occurrences, scalars);
  return collector.finish();
}

function pick({ logprob, entropy, value }: OccurrenceScalars, occurrences: Int32Array): OccurrenceScalars {
  const of = (column: Float64Array) => Float64Array.from(occurrences, (o) => column[o] as number);
  return {
    ...(logprob === undefined ? {} : { logprob: of(logprob) }),
    ...(entropy === undefined ? {} : { entropy: of(entropy) }),
    ...(value === undefined ? {} : { value: of(value) }),
  };
}

function scatter(values: Float64Array, occurrences: Int32Array, target: Float64Array): void {
  occurrences.forEach((o, i) => {
    target[o] = values[i] as number;
  });
}

function joined(constants: readonly SequenceConstants[], name: "oldValue" | "returns"): Float64Array {
  return Float64Array.from(constants.flatMap((sequence) => Array.from(sequence[name] ?? [])));
}
