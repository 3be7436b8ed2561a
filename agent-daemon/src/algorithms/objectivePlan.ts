// Everything about one optimizer batch that is known before its forward: flat constants, units, weights, who reads what.
// Built once a step; the same for every split into micro-batches.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { ObjectiveConfig } from "../../../protocol/objective.ts";
import type { ObjectiveDefinition, ObjectiveSettings } from "../../../protocol/objectiveDefinition.ts";
import { findUnits, type Units, unitWeights } from "./aggregation.ts";
import { type FlatBatch, flattenBatch, type SequenceConstants } from "./columns.ts";
import {
  columnsRead,
  definitionReads,
  type ObjectiveOptions,
  type ObjectiveScope,
  objectiveDefinition,
  objectiveScope,
  sharedRatioSpan,
} from "./objectiveReads.ts";
import { type UnitFilters, unitFilters } from "./unitFilters.ts";

export interface ObjectivePlan {
  readonly config: ObjectiveConfig;
  readonly settings: ObjectiveSettings;
  readonly definition: ObjectiveDefinition;
  readonly scope: ObjectiveScope;
  readonly oldIsCurrent: boolean;
  readonly batch: FlatBatch;
  readonly units: Units;
  /** Units that a shared ratio is computed over; null when each token has its own. */
  readonly ratioUnits: Units | null;
  /** [units.count] */
  readonly weights: Float64Array;
  /** Known now unless `oldIsCurrent`; then they come with the statistics. */
  readonly filters: UnitFilters;
  readonly reads: {
    readonly entropy: boolean;
    readonly value: boolean;
    readonly rolloutRatio: boolean;
  };
}

const noFilters: UnitFilters = { sequenceMask: null, tokenVeto: null };

/**
 * @throws OBJECTIVE_REFUSED, OBJECTIVE_DEFINITION_MISSING, OBJECTIVE_COLUMN_MISSING, OBJECTIVE_COLUMN_INVALID,
 *   ALGORITHM_NON_FINITE
 */
export function planObjective(
  config: ObjectiveConfig,
  sequences: readonly SequenceConstants[],
  options: ObjectiveOptions = {},
): ObjectivePlan {
  refuseDoubleCorrection(config);
  const definition = objectiveDefinition(config, options);
  const oldIsCurrent = options.oldIsCurrent === true;
  const batch = flattenBatch(sequences, columnsRead(config, options));
  const units = findUnits(batch, config.unit);
  const { old, rollout } = batch.columns;
  const { correction } = config;
  const span = sharedRatioSpan(config);
  return {
    config,
    settings: {
      ...config,
      cap: config.cap ?? Number.POSITIVE_INFINITY,
      softClip: config.softClip ?? Number.POSITIVE_INFINITY,
      dualClip: config.dualClip ?? Number.POSITIVE_INFINITY,
    },
    definition,
    scope: objectiveScope(config, options),
    oldIsCurrent,
    batch,
    units,
    ratioUnits:
      span === null ? null : span === "unit" || config.unit === "trajectory" ? units : findUnits(batch, "trajectory"),
    weights: unitWeights(units, config),
    filters:
      correction === undefined || oldIsCurrent || old === null || rollout === null
        ? noFilters
        : unitFilters(correction, units, old, rollout),
    reads: {
      entropy: config.entropy !== undefined || definitionReads(definition).includes("entropy"),
      value: config.value !== undefined,
      rolloutRatio:
        batch.columns.rollout !== null &&
        (config.kind === "minirl" || config.kind === "custom" || correction?.freshness !== undefined),
    },
  };
}

/** The schema refuses this too; a configuration that was built in code is held to the same rule. */
function refuseDoubleCorrection(config: ObjectiveConfig): void {
  if (config.correction?.tokenTruncate === undefined || config.ratioBase !== "rollout") return;
  throw new RollscopeError(
    "OBJECTIVE_REFUSED",
    "objective.correction.tokenTruncate with ratioBase rollout would count old/rollout twice.",
    {
      next: "Use ratioBase old, or leave tokenTruncate out.",
      at: { key: "objective.correction.tokenTruncate" },
    },
  );
}
