// Which metrics the command line shows, under which title.
import type { StepMetricName } from "../../../protocol/metrics.ts";
import type { Color } from "./terminal/colors.ts";

export interface Curve {
  readonly title: string;
  /** The first of them that a run has is shown. */
  readonly metrics: readonly StepMetricName[];
  readonly color: Color;
}

export const curves: readonly Curve[] = [
  { title: "reward", metrics: ["reward_mean"], color: "green" },
  { title: "loss", metrics: ["loss"], color: "blue" },
  { title: "KL", metrics: ["kl_k3", "kl_old_k3"], color: "magenta" },
];

export const lineMetrics: readonly { readonly title: string; readonly metrics: readonly StepMetricName[] }[] = [
  ...curves,
  { title: "entropy", metrics: ["entropy"] },
  { title: "grad", metrics: ["grad_norm"] },
];

/** The value to show; undefined when the step has none of the metrics. */
export function shownValue(
  metrics: { readonly [name: string]: number },
  names: readonly StepMetricName[],
): number | undefined {
  const name = names.find((each) => metrics[each] !== undefined);
  return name === undefined ? undefined : metrics[name];
}
