// What a configuration reads: the keys (for `check`), the columns (for the loop) and the span of its statistics (its scope).
// The one table of who reads what; the formulas themselves are elsewhere.
import type { AdvantagesConfig } from "../../../protocol/advantages.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { ObjectiveConfig, ObjectiveKind } from "../../../protocol/objective.ts";
import type { ObjectiveDefinition, ObjectiveReads } from "../../../protocol/objectiveDefinition.ts";
import type { ConstantColumn } from "./columns.ts";
import { builtInObjectives } from "./objectives.ts";

export interface ObjectiveOptions {
  /** The recipe's own objective, for kind custom. */
  readonly definition?: ObjectiveDefinition | undefined;
  /** `old` is the log-probability of this same forward (one optimizer step a window); no column is given. */
  readonly oldIsCurrent?: boolean | undefined;
}

/**
 * token: a token's cotangent needs its own scalars and constants known before the forward.
 * unit: it needs log-probabilities of its whole trajectory or turn. batch: it needs the whole optimizer batch's.
 */
export type ObjectiveScope = "token" | "unit" | "batch";

/** The function behind a kind. @throws OBJECTIVE_DEFINITION_MISSING */
export function objectiveDefinition(config: ObjectiveConfig, options: ObjectiveOptions = {}): ObjectiveDefinition {
  if (config.kind !== "custom") return builtInObjectives[config.kind];
  if (options.definition !== undefined) return options.definition;
  throw new RollscopeError("OBJECTIVE_DEFINITION_MISSING", "Kind custom needs an objective in the recipe's code.", {
    next: "Give `objective` to defineRecipe in recipe.ts, or choose a built-in kind.",
    at: { key: "objective.kind" },
  });
}

/** The ratio is one number for several tokens: GSPO's unit, TOPR's trajectory. */
export function sharedRatioSpan(config: ObjectiveConfig): "unit" | "trajectory" | null {
  if (config.kind === "gspo") return "unit";
  return config.kind === "topr" && config.ratioUnit === "trajectory" ? "trajectory" : null;
}

function readsUnitFilters({ correction }: ObjectiveConfig): boolean {
  return correction?.sequenceMask !== undefined || correction?.tokenVeto !== undefined;
}

/**
 * Scope of a configuration. Sequence masks and vetoes compare old with rollout: known before the forward unless
 * `oldIsCurrent`. With it and ratioBase old, the shared ratios are 1 and need no statistics.
 */
export function objectiveScope(config: ObjectiveConfig, options: ObjectiveOptions = {}): ObjectiveScope {
  if (config.entropy?.target !== undefined) return "batch";
  const oldIsCurrent = options.oldIsCurrent === true;
  if (objectiveDefinition(config, options).scope === "unit") return "unit";
  const ratioIsOne = oldIsCurrent && config.ratioBase === "old";
  if (sharedRatioSpan(config) !== null && !ratioIsOne) return "unit";
  return oldIsCurrent && readsUnitFilters(config) ? "unit" : "token";
}

/** The per-token constants that must be there; `old` is not among them with `oldIsCurrent`. */
export function columnsRead(config: ObjectiveConfig, options: ObjectiveOptions = {}): Set<ConstantColumn> {
  const columns = new Set<ConstantColumn>();
  for (const read of definitionReads(objectiveDefinition(config, options))) {
    if (read === "ratio") columns.add(config.ratioBase);
    else if (read !== "entropy") columns.add(read);
  }
  const { correction, kl, value } = config;
  if (correction?.tokenTruncate !== undefined || correction?.tokenMask !== undefined || readsUnitFilters(config)) {
    columns.add("old").add("rollout");
  }
  if (correction?.freshness !== undefined) columns.add("rollout").add("staleness").add("advantage");
  if (kl?.placement === "loss") columns.add(kl.base);
  if (value !== undefined) columns.add("returns");
  if (value?.clip !== undefined) columns.add("oldValue");
  if (config.unit === "turn" && readKnobs(config).has("unit")) columns.add("turn");
  if (options.oldIsCurrent === true) columns.delete("old");
  return columns;
}

export function definitionReads(definition: ObjectiveDefinition): readonly ObjectiveReads[] {
  return definition.reads ?? ["advantage", "ratio"];
}

/** What making the advantages reads from forwards of before the step. */
export function advantageColumnsRead(
  config: ObjectiveConfig,
  advantages: AdvantagesConfig,
): Set<"old" | "ref" | "value"> {
  const columns = new Set<"old" | "ref" | "value">();
  if (advantages.estimator === "gae") columns.add("value");
  if (config.kl?.placement === "reward") columns.add("old").add("ref");
  return columns;
}

/** Whether something needs a critic: its values for the advantages, or its loss. */
export function readsValues(config: ObjectiveConfig, advantages: AdvantagesConfig): boolean {
  return config.value !== undefined || advantageColumnsRead(config, advantages).has("value");
}

const ratioBounds = ["ratioBase", "clipLow", "clipHigh"] as const;

/** Keys of the objective block that only some kinds read. */
const kindKnobs: Readonly<Record<ObjectiveKind, readonly (keyof ObjectiveConfig)[]>> = {
  cross_entropy: [],
  reinforce: [],
  importance_sampling: ["ratioBase"],
  grpo: [...ratioBounds, "dualClip"],
  ppo: [...ratioBounds, "dualClip"],
  gspo: [...ratioBounds, "dualClip", "unit"],
  minirl: ratioBounds,
  cispo: ratioBounds,
  tis: ["ratioBase", "cap"],
  topr: ["ratioBase", "ratioUnit"],
  kimi: ratioBounds,
  grpo2: [...ratioBounds, "softClip"],
  custom: [...ratioBounds, "dualClip", "cap", "softClip", "ratioUnit", "unit", "options"],
};

/** Dotted keys of the objective block that this configuration reads. A key that is set and not in here changes nothing. */
export function readKnobs(config: ObjectiveConfig): Set<string> {
  const knobs = new Set<string>(["kind", "aggregation", ...kindKnobs[config.kind]]);
  if (config.aggregation !== "token-mean" || readsUnitFilters(config)) knobs.add("unit");
  if (config.aggregation === "sequence-sum") knobs.add("lengthNormalizer");
  if (config.kl !== undefined) {
    for (const key of ["kl.coef", "kl.placement"]) knobs.add(key);
    if (config.kl.placement === "loss") knobs.add("kl.estimator").add("kl.base");
  }
  if (config.entropy !== undefined) knobs.add("entropy.coef").add("entropy.target");
  if (config.value !== undefined) knobs.add("value.coef").add("value.clip");
  for (const key of ["tokenTruncate", "tokenMask", "sequenceMask", "tokenVeto"]) knobs.add(`correction.${key}`);
  if (config.correction?.freshness !== undefined) {
    for (const key of ["correction.freshness.decay", "correction.freshness.capRatio", "clipLow", "clipHigh"])
      knobs.add(key);
  }
  return knobs;
}

/** Keys of the advantages block that this configuration reads. */
export function readAdvantageKnobs(advantages: AdvantagesConfig): Set<string> {
  const knobs = new Set(["estimator", "clip", "dropZero", "minimal"]);
  if (advantages.estimator === "gae") for (const key of ["gamma", "lambda", "whiten"]) knobs.add(key);
  return knobs;
}

/** Whether the objective uses advantages at all. */
export function readsAdvantage(config: ObjectiveConfig, options: ObjectiveOptions = {}): boolean {
  return columnsRead(config, options).has("advantage");
}
