// What `check` says about an objective and its advantages before a run: refusals, warnings, notes, each with its key. Takes the
// blocks as written, since a default that nothing reads is nobody's mistake.
import { type AdvantagesConfig, advantagesSchema } from "../../../protocol/advantages.ts";
import { type ObjectiveConfig, objectiveSchema } from "../../../protocol/objective.ts";
import type { ObjectiveDefinition } from "../../../protocol/objectiveDefinition.ts";
import { readAdvantageKnobs, readKnobs, readsAdvantage } from "./objectiveReads.ts";

export interface ObjectiveFinding {
  /** refusal: the run does not start. warning: probably not what was meant. note: good to know. */
  readonly level: "refusal" | "warning" | "note";
  /** From the recipe's top: ["objective", "kl", "estimator"]. */
  readonly path: readonly string[];
  readonly message: string;
}

/**
 * Findings in the order refusals, warnings, notes. With a refusal about a block's shape, nothing more is said of it.
 * @param objective the `objective` block as written, before defaults
 * @param advantages the `advantages` block as written
 * @param definition the recipe's own objective, for kind custom
 */
export function checkObjective(
  objective: unknown,
  advantages?: unknown,
  definition?: ObjectiveDefinition | undefined,
): ObjectiveFinding[] {
  const parsed = objectiveSchema.safeParse(objective);
  const parsedAdvantages = advantages === undefined ? null : advantagesSchema.safeParse(advantages);
  const findings: ObjectiveFinding[] = [];
  if (!parsed.success) findings.push(...refusals("objective", parsed.error.issues));
  if (parsedAdvantages?.success === false) findings.push(...refusals("advantages", parsedAdvantages.error.issues));
  if (parsed.success) {
    const estimated = parsedAdvantages?.success === true ? parsedAdvantages.data : null;
    const written = new Set(leafPaths({ objective, advantages }).map((path) => path.join(".")));
    findings.push(
      ...definitionFindings(parsed.data, definition),
      ...unreadKeys(parsed.data, estimated, (key) => written.has(key)),
      ...judgeObjective(parsed.data, estimated, definition),
    );
  }
  const rank = { refusal: 0, warning: 1, note: 2 };
  return findings.sort((a, b) => rank[a.level] - rank[b.level]);
}

/** What the values of both blocks mean together: everything but their shape and the keys that nothing reads. */
export function judgeObjective(
  objective: ObjectiveConfig,
  advantages: AdvantagesConfig | null,
  definition?: ObjectiveDefinition | undefined,
): ObjectiveFinding[] {
  return [
    ...klFindings(objective, definition),
    ...correctionFindings(objective),
    ...(advantages === null ? [] : advantageFindings(objective, advantages, definition)),
  ];
}

interface Issue {
  readonly code: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[] | undefined;
}

function refusals(block: string, issues: readonly Issue[]): ObjectiveFinding[] {
  return issues.flatMap((issue) => {
    const path = [block, ...issue.path.map(String)];
    if (issue.keys === undefined) return [{ level: "refusal", path, message: issue.message }];
    return issue.keys.map((key) => ({
      level: "refusal" as const,
      path: [...path, key],
      message: `\`${key}\` is not a key of ${path.join(".")}`,
    }));
  });
}

/** Keys of both blocks that are set and read by nothing. @param isWritten of a dotted key from the recipe's top */
export function unreadKeys(
  objective: ObjectiveConfig,
  advantages: AdvantagesConfig | null,
  isWritten: (key: string) => boolean,
): ObjectiveFinding[] {
  const { kind, aggregation, kl } = objective;
  const placement = kl === undefined ? "" : ` and KL placement ${kl.placement}`;
  const unread = (block: string, values: object, read: ReadonlySet<string>, why: string) =>
    leafPaths(values)
      .filter((path) => isWritten([block, ...path].join(".")))
      .filter((path) => !path.some((_, depth) => read.has(path.slice(0, depth + 1).join("."))))
      .map((path): ObjectiveFinding => {
        const key = [block, ...path];
        return { level: "warning", path: key, message: `nothing reads ${key.join(".")} ${why}` };
      });
  return [
    ...unread(
      "objective",
      objective,
      readKnobs(objective),
      `with kind ${kind}, aggregation ${aggregation}${placement}`,
    ),
    ...(advantages === null
      ? []
      : unread("advantages", advantages, readAdvantageKnobs(advantages), `with estimator ${advantages.estimator}`)),
  ];
}

/** Paths of everything below that is not itself a block; lists count as values. */
function leafPaths(value: unknown, path: readonly string[] = []): string[][] {
  if (value === undefined) return [];
  if (value === null || typeof value !== "object" || Array.isArray(value)) return path.length === 0 ? [] : [[...path]];
  return Object.entries(value).flatMap(([key, below]) => leafPaths(below, [...path, key]));
}

/** Whether the recipe's code brings an objective exactly when the kind is custom. */
export function definitionFindings(
  config: ObjectiveConfig,
  definition: ObjectiveDefinition | undefined,
): ObjectiveFinding[] {
  if (config.kind === "custom" && definition === undefined) {
    return [{ level: "refusal", path: ["objective", "kind"], message: "kind custom needs an objective in recipe.ts" }];
  }
  if (config.kind !== "custom" && definition !== undefined) {
    const message = `recipe.ts brings the objective ${definition.name}, which nothing reads with kind ${config.kind}; kind custom would`;
    return [{ level: "warning", path: ["objective", "kind"], message }];
  }
  return [];
}

/** A custom objective that is not known yet is taken to read them. */
function ignoresAdvantage(config: ObjectiveConfig, definition: ObjectiveDefinition | undefined): boolean {
  if (config.kind === "custom" && definition === undefined) return false;
  return !readsAdvantage(config, { definition });
}

const klStatements = {
  k1: "as a loss, k1's expected on-policy gradient is 0: it holds nothing; use k2 or k3, or placement reward",
  k2: "as a loss, k2 has the on-policy gradient of KL(π‖base)",
  k3: "as a loss, k3's expected on-policy gradient is that of KL(base‖π)",
} as const;

function klFindings(config: ObjectiveConfig, definition: ObjectiveDefinition | undefined): ObjectiveFinding[] {
  const { kl } = config;
  if (kl === undefined) return [];
  if (kl.placement === "reward") {
    if (!ignoresAdvantage(config, definition)) return [];
    const message = `kl as a reward enters through the advantages, which nothing reads with kind ${config.kind}`;
    return [{ level: "warning", path: ["objective", "kl", "placement"], message }];
  }
  if (kl.estimator === undefined) return [];
  const level = kl.estimator === "k1" ? "warning" : "note";
  const message = klStatements[kl.estimator].replaceAll("base", kl.base);
  return [{ level, path: ["objective", "kl", "estimator"], message }];
}

function correctionFindings({ kind, correction }: ObjectiveConfig): ObjectiveFinding[] {
  if (kind !== "minirl" || correction?.tokenTruncate === undefined) return [];
  const message = "minirl already weights by logp/rollout: tokenTruncate counts old/rollout twice";
  return [{ level: "warning", path: ["objective", "correction", "tokenTruncate"], message }];
}

function advantageFindings(
  config: ObjectiveConfig,
  advantages: AdvantagesConfig,
  definition: ObjectiveDefinition | undefined,
): ObjectiveFinding[] {
  const findings: ObjectiveFinding[] = [];
  if (ignoresAdvantage(config, definition) && advantages.estimator !== "none") {
    const message = `nothing reads advantages with kind ${config.kind}; estimator none says so`;
    findings.push({ level: "warning", path: ["advantages", "estimator"], message });
  }
  if (advantages.estimator === "gae" && config.value === undefined) {
    const message = "gae reads a critic's values, and without `objective.value` no loss trains it";
    findings.push({ level: "warning", path: ["advantages", "estimator"], message });
  }
  if (advantages.estimator !== "gae" && config.value !== undefined) {
    const message = `the critic's loss needs returns, which estimator ${advantages.estimator} does not make`;
    findings.push({ level: "refusal", path: ["objective", "value"], message });
  }
  return findings;
}
