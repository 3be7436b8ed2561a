// The metrics of a run that learns, and the troubles that can be planted in it, one for each kind of advisory.
import type { Advisory } from "../../protocol/advisory.ts";
import type { JournalEvent, JournalEventBody } from "../../protocol/journal.ts";

type Numbers = Record<string, number>;

/** A run that learns: KL grows and levels off, entropy falls, lengths shrink, all with some noise. */
export function healthyMetrics(step: number): Numbers {
  const wave = Math.sin(7 * step) * 0.3;
  const progress = Math.min(1, step / 15);
  return {
    loss: 0.05 + 0.04 * wave,
    kl_k1: 0.4 * progress * (1 + wave),
    kl_k3: 0.5 * progress * (1 + wave),
    kl_old_k1: 0,
    kl_old_k3: 0,
    entropy: 2.3 * Math.exp(-step / 12) + 0.12,
    grad_norm: (2 + 4 * progress) * (1 + wave),
    reward_mean: 0.1 + 0.7 * progress + 0.1 * wave,
    reward_min: 0,
    reward_max: 1,
    clip_fraction: 0,
    mismatch_k3: 2e-11 * (1 + wave),
    mismatch_ratio_outside: 0,
    groups: 8,
    zero_variance_groups: Math.round(2 + 2 * wave),
    tokens_sampled: 1400 - 600 * progress,
    records: 64,
    truncated: Math.round(20 * (1 - progress)),
    staleness_max: 0,
    ratio_max: 1,
    lr: 2e-5,
  };
}

/** Seen after three steps of it. */
export const lastingTroubles = [
  ["gradientNorm", (m: Numbers) => Object.assign(m, { grad_norm: 0 })],
  ["groupsAllEqual", (m: Numbers) => Object.assign(m, { zero_variance_groups: 8 })],
  ["entropyCollapse", (m: Numbers) => Object.assign(m, { entropy: 0.003 })],
  ["lengthRunaway", (m: Numbers) => Object.assign(m, { tokens_sampled: 9000, truncated: 50 })],
  ["mismatchTrend", (m: Numbers) => Object.assign(m, { mismatch_k3: 0.01 })],
  ["clipFraction", (m: Numbers) => Object.assign(m, { clip_fraction: 0.5 })],
] as const;

/** All that metrics can show: those that last, a spike, a value that is no number. */
export const metricTroubles: readonly (readonly [Advisory["kind"], (metrics: Numbers) => unknown])[] = [
  ...lastingTroubles,
  ["klSpike", (m) => Object.assign(m, { kl_k3: 37 })],
  ["nonFiniteMetric", (m) => Object.assign(m, { entropy: Number.NaN })],
];

/** Milliseconds that a phase of the run takes. */
const usualPhase = 10_000;

/**
 * The journal of a run that is sampling for its next step: `steps` of them, the last three with each of the troubles. Event n is written
 * when n · 10 s have passed.
 */
export function troubledJournal(steps: number, troubles: readonly ((metrics: Numbers) => unknown)[]): JournalEvent[] {
  const bodies: JournalEventBody[] = [
    { type: "started", run: "r", recipe: "toy", model: "m", steps: 100, seed: 1, evaluations: [], resumed: null },
  ];
  for (let step = 1; step <= steps; step++) {
    const metrics = healthyMetrics(step);
    if (step > steps - 3) for (const change of troubles) change(metrics);
    bodies.push({ type: "phase", step: step - 1, phase: "sampling" });
    bodies.push({ type: "phase", step: step - 1, phase: "training" });
    bodies.push({ type: "step", step, weightVersion: step, skipped: null, metrics, timings: {} });
  }
  bodies.push({ type: "phase", step: steps, phase: "sampling" });
  return bodies.map((body, index) => ({ n: index + 1, at: (index + 1) * usualPhase, attempt: 1, ...body }));
}
