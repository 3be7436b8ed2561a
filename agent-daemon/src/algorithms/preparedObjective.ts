// The objective of one optimizer batch, a micro-batch at a time: scalars of the forward in, cotangents for the backward out.
// Denominators and statistics are those of the whole batch, so any split gives the same cotangents, bit for bit.
//
//   const objective = prepareObjective(config, trajectories, { oldIsCurrent });
//   if (objective.skipReason !== null) …skip the step and say why…
//   let statistics = null;
//   if (objective.scope !== "token") {                     // two passes: one without gradient over the whole step first
//     const collector = objective.collectStatistics();
//     for each micro-batch: collector.add(occurrences, scalars);
//     statistics = collector.finish();
//   }
//   for each micro-batch: parts.push(objective.cotangents(occurrences, scalars, statistics));
//   const { loss, metrics } = objective.finish(parts);
//
// `occurrences` are numbers from `objective.occurrence(trajectory, position)`; scalars are aligned with them. An occurrence
// belongs to exactly one micro-batch; masked ones may be included (their scalars are not read, their cotangents are 0) or left
// out. Cotangents carry every denominator: add them up over occurrences that share a slot, and sum gradients.
import type { ObjectiveConfig } from "../../../protocol/objective.ts";
import type { SequenceConstants } from "./columns.ts";
import { cotangents, type ObjectivePart } from "./cotangents.ts";
import { lossesOf, mergeSums, metricsOf, type ObjectiveLosses, type ObjectiveMetrics } from "./objectiveMetrics.ts";
import { planObjective } from "./objectivePlan.ts";
import type { ObjectiveOptions, ObjectiveScope } from "./objectiveReads.ts";
import {
  collectStatistics,
  type ObjectiveStatistics,
  type StatisticsCollector,
  wrongOccurrences,
} from "./statistics.ts";
import type { OccurrenceScalars } from "./tokenBlock.ts";

export type { ObjectivePart };

export interface BatchCounts {
  readonly trajectories: number;
  readonly trainableTokens: number;
  /** Trajectories, or turns, with trainable tokens. */
  readonly units: number;
  /** All positions, masked ones included. */
  readonly occurrences: number;
}

export interface ObjectiveResult extends ObjectiveLosses {
  readonly metrics: ObjectiveMetrics;
}

export interface PreparedObjective {
  readonly scope: ObjectiveScope;
  readonly counts: BatchCounts;
  /** Scalars beside logp that `cotangents` needs. */
  readonly needs: { readonly entropy: boolean; readonly value: boolean };
  /** Why this step would train nothing; null when there is something to train. */
  readonly skipReason: string | null;
  occurrence(trajectory: number, position: number): number;
  collectStatistics(): StatisticsCollector;
  /** @throws OBJECTIVE_STATISTICS_MISSING, ALGORITHM_NON_FINITE, OBJECTIVE_DEFINITION_INVALID */
  cotangents(
    occurrences: Int32Array,
    scalars: OccurrenceScalars,
    statistics?: ObjectiveStatistics | null,
  ): ObjectivePart;
  /** @throws OBJECTIVE_OCCURRENCES_WRONG when the parts are not the whole batch */
  finish(parts: Iterable<Pick<ObjectivePart, "sums">>): ObjectiveResult;
}

/**
 * @param sequences every trajectory of the optimizer batch, with what is known before the forward
 * @throws OBJECTIVE_REFUSED, OBJECTIVE_DEFINITION_MISSING, OBJECTIVE_COLUMN_MISSING, OBJECTIVE_COLUMN_INVALID,
 *   ALGORITHM_NON_FINITE
 */
export function prepareObjective(
  config: ObjectiveConfig,
  sequences: readonly SequenceConstants[],
  options: ObjectiveOptions = {},
): PreparedObjective {
  const plan = planObjective(config, sequences, options);
  const { batch, units } = plan;
  return {
    scope: plan.scope,
    counts: {
      trajectories: sequences.length,
      trainableTokens: units.trainableTokens,
      units: units.count,
      occurrences: batch.size,
    },
    needs: { entropy: plan.reads.entropy, value: plan.reads.value },
    skipReason:
      units.trainableTokens > 0
        ? null
        : `None of the ${sequences.length} trajectories of this batch has a trainable token: nothing to train, the step is skipped.`,
    occurrence: (trajectory, position) => batch.offsets[trajectory]! + position,
    collectStatistics: () => collectStatistics(plan),
    cotangents: (occurrences, scalars, statistics = null) => cotangents(plan, occurrences, scalars, statistics),
    finish(parts) {
      const sums = mergeSums([...parts].map((part) => part.sums));
      if (sums.tokens !== units.trainableTokens) {
        throw wrongOccurrences(`The parts hold ${sums.tokens} of ${units.trainableTokens} trainable tokens.`);
      }
      return { ...lossesOf(config, sums), metrics: metricsOf(config, sums, units.count) };
    },
  };
}
