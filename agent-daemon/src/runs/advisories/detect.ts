// All advisories of a run, worst and newest first. Pure: the same history gives the same words.
import type { Advisory } from "../../../../protocol/advisory.ts";
import type { RunHistory } from "./history.ts";
import * as rules from "./rules.ts";

const all: readonly rules.Rule[] = [
  rules.stalledPhase,
  rules.nonFiniteMetric,
  rules.klSpike,
  rules.gradientNorm,
  rules.mismatchTrend,
  rules.groupsAllEqual,
  rules.entropyCollapse,
  rules.lengthRunaway,
  rules.clipFraction,
];

/** Steps after its last one during which an advisory still is in force. */
const aftermath = 2;
/** Advisories kept of one kind: the newest. */
const keptOfKind = 8;

const weight = { severe: 2, warning: 1, note: 0 } as const;

/** @param now milliseconds since 1970, for phases that last too long */
export function detectAdvisories(history: RunHistory, now: number): Advisory[] {
  const last = history.steps.at(-1)?.step ?? 0;
  return all
    .flatMap((rule) => rule(history, now).slice(-keptOfKind))
    .map((seen) => ({ ...seen, inForce: seen.kind === "stalledPhase" || seen.to >= last - aftermath }))
    .sort((a, b) => Number(b.inForce) - Number(a.inForce) || weight[b.severity] - weight[a.severity] || b.to - a.to);
}
