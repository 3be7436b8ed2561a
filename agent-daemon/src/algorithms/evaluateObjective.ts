// The objective over a whole optimizer batch at once, as the oracles and the objective lab see it. The same code as the
// micro-batch form, with one micro-batch.
import type { ObjectiveConfig } from "../../../protocol/objective.ts";
import { checkLength, type SequenceColumns } from "./columns.ts";
import type { ObjectiveOptions } from "./objectiveReads.ts";
import { type ObjectiveResult, prepareObjective } from "./preparedObjective.ts";
import type { OccurrenceScalars } from "./tokenBlock.ts";

export interface ObjectiveEvaluation extends ObjectiveResult {
  /** One array a trajectory, one number a token; 0 where masked. */
  readonly dLossDLogp: Float64Array[];
  readonly dLossDEntropy: Float64Array[];
  readonly dLossDValue: Float64Array[];
  readonly skipReason: string | null;
}

/**
 * Loss, its parts, derivatives and metrics of a batch. Columns that the configuration does not read may be absent.
 * @throws as prepareObjective and its cotangents
 */
export function evaluateObjective(
  config: ObjectiveConfig,
  batch: readonly SequenceColumns[],
  options: ObjectiveOptions = {},
): ObjectiveEvaluation {
  const objective = prepareObjective(config, batch, options);
  const occurrences = new Int32Array(objective.counts.occurrences).map((_, o) => o);
  const scalars: OccurrenceScalars = {
    logp: concatenate(batch, objective.counts.occurrences, "logp") ?? [],
    entropy: concatenate(batch, objective.counts.occurrences, "entropy"),
    value: concatenate(batch, objective.counts.occurrences, "newValue"),
  };
  let statistics = null;
  if (objective.scope !== "token") {
    const collector = objective.collectStatistics();
    collector.add(occurrences, scalars);
    statistics = collector.finish();
  }
  const part = objective.cotangents(occurrences, scalars, statistics);
  const split = (column: Float64Array | null) => splitBySequence(batch, column);
  return {
    ...objective.finish([part]),
    dLossDLogp: split(part.dLogp),
    dLossDEntropy: split(part.dEntropy),
    dLossDValue: split(part.dValue),
    skipReason: objective.skipReason,
  };
}

/** Undefined when no trajectory has the column, NaN where one has not no such column: whoever reads it there gets the error that names the token. */
function concatenate(
  batch: readonly SequenceColumns[],
  size: number,
  name: "logp" | "entropy" | "newValue",
): Float64Array | undefined {
  if (!batch.some((sequence) => sequence[name] !== undefined)) return undefined;
  const flat = new Float64Array(size).fill(Number.NaN);
  let start = 0;
  for (const [trajectory, sequence] of batch.entries()) {
    const column = sequence[name];
    if (column !== undefined) {
      checkLength(column, sequence.mask.length, name, trajectory);
      flat.set(column, start);
    }
    start += sequence.mask.length;
  }
  return flat;
}

function splitBySequence(batch: readonly SequenceColumns[], column: Float64Array | null): Float64Array[] {
  let start = 0;
  return batch.map(({ mask }) => {
    start += mask.length;
    return column === null ? new Float64Array(mask.length) : column.subarray(start - mask.length, start);
  });
}
