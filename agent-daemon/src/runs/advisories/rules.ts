// The rules, one short function each: steps in, what was seen out. A rule compares a number with what was usual in the same run
// and with a floor below which nobody needs to look; it names causes only where other numbers of the run point at them.
import type { Advisory, AdvisoryLink } from "../../../../protocol/advisory.ts";
import { baseline, median } from "./baseline.ts";
import type { RunHistory, StepPoint } from "./history.ts";

/** Steps before the one that is judged. */
const window = 20;
/** Fewer steps than this say nothing about what is usual. */
const fewest = 5;
/** A value so many spreads above the median, and so many times the median, is a spike. */
const spikeSpreads = 8;
const spikeFactor = 4;

export const shown = (value: number) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : String(value));
export const percent = (value: number) => `${Math.round(100 * value)} %`;

const at = (point: StepPoint, name: string) => point.metrics[name] ?? Number.NaN;
const values = (points: readonly StepPoint[], name: string) => points.map((point) => at(point, name));
const metric = (name: string): AdvisoryLink => ({ kind: "metric", metric: name });
const stepLink = (step: number): AdvisoryLink => ({ kind: "step", step });
const key = (name: string): AdvisoryLink => ({ kind: "recipeKey", key: name });

type Seen = Omit<Advisory, "inForce">;
export type Rule = (history: RunHistory, now: number) => Seen[];

/** Steps where `name` jumps above its usual values and above `floor`. */
function spikes(steps: readonly StepPoint[], name: string, floor: number) {
  const found: { point: StepPoint; before: StepPoint | undefined; value: number; usual: number }[] = [];
  const column = values(steps, name);
  for (const [index, value] of column.entries()) {
    const first = Math.max(0, index - window);
    // No median is below the least value: most steps are done with here.
    if (!(value > floor && value > spikeFactor * leastBetween(column, first, index))) continue;
    const usual = baseline(column.slice(first, index));
    const bound = Math.max(floor, usual.median + spikeSpreads * usual.spread, spikeFactor * usual.median);
    if (usual.count < fewest || !(value > bound)) continue;
    found.push({ point: steps[index]!, before: steps[index - 1], value, usual: usual.median });
  }
  return found;
}

/** Infinite where there is none. */
function leastBetween(column: readonly number[], from: number, to: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let index = from; index < to; index++) if (column[index]! < least) least = column[index]!;
  return least;
}

/** Runs of consecutive steps for which `holds`, at least `least` long. */
function stretches(steps: readonly StepPoint[], least: number, holds: (point: StepPoint) => boolean) {
  const found: StepPoint[][] = [];
  let open: StepPoint[] = [];
  for (const point of steps) {
    const isNext = open.length === 0 || open.at(-1)!.step + 1 === point.step;
    const isHeld = holds(point);
    if (isHeld && isNext) {
      open.push(point);
      continue;
    }
    if (open.length >= least) found.push(open);
    open = isHeld ? [point] : [];
  }
  if (open.length >= least) found.push(open);
  return found;
}

const klNames = {
  kl_k3: ["KL to the reference", "kl_k1"],
  kl_old_k3: ["KL to the policy at the window's beginning", "kl_old_k1"],
} as const;

export const klSpike: Rule = ({ steps }) =>
  (Object.keys(klNames) as (keyof typeof klNames)[]).flatMap((name) =>
    spikes(steps, name, 0.05).map(({ point, before, value, usual }): Seen => {
      const [title, k1Name] = klNames[name];
      const k1 = at(point, k1Name);
      const causes: string[] = [];
      if (Math.abs(k1) < value / 4)
        causes.push(
          `A few tokens alone: the plain estimate k1 is ${shown(k1)}. k3 grows with the exponential of the difference, so one token that the reference finds far likelier makes it. Sort the step's trajectories by mismatch and look at their reference column.`,
        );
      if (before !== undefined && spikes(steps, "grad_norm", 0).some((spike) => spike.point.step === before.step))
        causes.push(
          `The update of step ${before.step} had an unusual gradient (norm ${shown(at(before, "grad_norm"))}).`,
        );
      if (at(point, "mismatch_k3") > 1e-3)
        causes.push(
          `Sampler and trainer disagree about the same weights (mismatch k3 ${shown(at(point, "mismatch_k3"))}).`,
        );
      if (at(point, "staleness_max") > 1)
        causes.push(`Some tokens were sampled ${shown(at(point, "staleness_max"))} steps before.`);
      causes.push(`The learning rate (${shown(at(point, "lr"))}) may be too high for this stretch.`);
      return {
        kind: "klSpike",
        severity: value > 10 ? "severe" : "warning",
        from: point.step,
        to: point.step,
        sentence: `${title} jumped to ${shown(value)} in step ${point.step}; usual before was ${shown(usual)}.`,
        causes,
        numbers: { value, usual, k1, lr: at(point, "lr") },
        links: [stepLink(point.step), metric(name), key("training.lr")],
      };
    }),
  );

export const gradientNorm: Rule = ({ steps }) => {
  const jumps = spikes(steps, "grad_norm", 0).map(
    ({ point, value, usual }): Seen => ({
      kind: "gradientNorm",
      severity: "warning",
      from: point.step,
      to: point.step,
      sentence: `The gradient's norm was ${shown(value)} in step ${point.step}; usual before was ${shown(usual)}.`,
      causes: [
        ...(spikes(steps, "kl_k3", 0.05).some((spike) => spike.point.step === point.step)
          ? ["The KL term: it jumped in the same step."]
          : []),
        ...(at(point, "ratio_max") > 10
          ? [`A probability ratio of ${shown(at(point, "ratio_max"))} weighs one token by that much.`]
          : []),
        "A trajectory with a rare, much rewarded answer: sort the step's trajectories by score.",
      ],
      numbers: { value, usual },
      links: [stepLink(point.step), metric("grad_norm"), key("training.maxGradNorm")],
    }),
  );
  const zeros = stretches(steps, 3, (point) => at(point, "grad_norm") === 0).map(
    (points): Seen => ({
      kind: "gradientNorm",
      severity: "severe",
      from: points[0]!.step,
      to: points.at(-1)!.step,
      sentence: `The gradient was exactly 0 for ${points.length} steps: nothing is learned.`,
      causes: [
        ...(median(points.map(equalShare)) === 1 ? ["All groups had equal scores, so every advantage is 0."] : []),
        "Explain Why Loss Is Zero (`rollscope explain`) says which numbers make it so.",
      ],
      numbers: { steps: points.length },
      links: [stepLink(points.at(-1)!.step), metric("grad_norm")],
    }),
  );
  return [...jumps, ...zeros];
};

/** Of a step's groups, those whose scores are all equal. */
function equalShare(point: StepPoint): number {
  return at(point, "zero_variance_groups") / at(point, "groups");
}

export const groupsAllEqual: Rule = ({ steps }) => {
  return stretches(steps, 3, (point) => equalShare(point) >= 0.75).map((points): Seen => {
    const reward = median(values(points, "reward_mean"));
    const high = median(values(points, "reward_max"));
    const low = median(values(points, "reward_min"));
    const equal = median(points.map(equalShare));
    const causes =
      high === low
        ? [
            `Every score is ${shown(reward)}: evaluate gives one value, or all tasks are equally ${reward > 0 ? "easy" : "hard"} for this policy.`,
          ]
        : [
            `Groups are all right or all wrong (mean score ${shown(reward)}): tasks of middling difficulty, more samples a group, or a higher temperature give differences to learn from.`,
          ];
    const entropy = median(values(points, "entropy"));
    if (entropy < 0.1) causes.push(`The policy hardly varies any more (entropy ${shown(entropy)} nats).`);
    return {
      kind: "groupsAllEqual",
      severity: equal === 1 ? "severe" : "warning",
      from: points[0]!.step,
      to: points.at(-1)!.step,
      sentence: `${percent(equal)} of the groups had equal scores for ${points.length} steps: they give no gradient.`,
      causes,
      numbers: { share: equal, reward, entropy },
      links: [
        stepLink(points.at(-1)!.step),
        metric("zero_variance_groups"),
        key("sampling.groupSize"),
        key("sampling.temperature"),
      ],
    };
  });
};

export const entropyCollapse: Rule = ({ steps }) => {
  const start = median(values(steps.slice(0, 3), "entropy"));
  if (!(start > 0) || steps.length < fewest) return [];
  const low = (point: StepPoint) => at(point, "entropy") < 0.05 && at(point, "entropy") < 0.05 * start;
  return stretches(steps, 3, low).map((points): Seen => {
    const now = median(values(points, "entropy"));
    const before = median(values(steps.slice(0, fewest), "reward_mean"));
    const reward = median(values(points, "reward_mean"));
    const better = reward > before + 0.05;
    return {
      kind: "entropyCollapse",
      severity: better ? "note" : "warning",
      from: points[0]!.step,
      to: points.at(-1)!.step,
      sentence: `Entropy fell to ${shown(now)} nats, from ${shown(start)}: the policy answers nearly always the same${better ? ", and scores better than at the start" : ""}.`,
      causes: [
        "Nothing holds it up: an entropy bonus or a wider upper clip keeps rare tokens alive.",
        ...(better ? [] : [`The score did not rise with it (${shown(before)} → ${shown(reward)}).`]),
      ],
      numbers: { entropy: now, start, reward, rewardAtStart: before },
      links: [metric("entropy"), key("objective.entropy.coef"), key("objective.clipHigh")],
    };
  });
};

export const lengthRunaway: Rule = ({ steps }) => {
  const length = (point: StepPoint) => at(point, "tokens_sampled") / at(point, "records");
  const cut = (point: StepPoint) => at(point, "truncated") / at(point, "records");
  const start = median(steps.slice(0, fewest).map(length));
  const startCut = median(steps.slice(0, fewest).map(cut));
  if (!(start > 0) || steps.length <= fewest) return [];
  const long = (point: StepPoint) =>
    length(point) > 3 * start || (length(point) > 1.5 * start && cut(point) > startCut + 0.25);
  return stretches(steps.slice(fewest), 3, long).map((points): Seen => {
    const now = median(points.map(length));
    const truncated = median(points.map(cut));
    const rewardBefore = median(values(steps.slice(0, fewest), "reward_mean"));
    const reward = median(values(points, "reward_mean"));
    return {
      kind: "lengthRunaway",
      severity: "warning",
      from: points[0]!.step,
      to: points.at(-1)!.step,
      sentence: `A trajectory now samples ${shown(now)} tokens, ${shown(now / start)} times as many as at the start; ${percent(truncated)} are cut off by the limit.`,
      causes: [
        ...(reward > rewardBefore + 0.05
          ? []
          : [`Length does not pay: the score went ${shown(rewardBefore)} → ${shown(reward)}.`]),
        "A per-sequence mean weighs a token of a long answer less, so long wrong answers are hardly punished: token-mean aggregation weighs all tokens alike.",
        "Truncated answers count as usual: mask them, or give their length a price.",
      ],
      numbers: { length: now, start, truncated },
      links: [
        stepLink(points.at(-1)!.step),
        metric("tokens_sampled"),
        key("objective.aggregation"),
        key("sampling.maxNewTokens"),
      ],
    };
  });
};

export const mismatchTrend: Rule = ({ steps }) => {
  const start = median(values(steps.slice(0, fewest), "mismatch_k3"));
  const apart = (point: StepPoint) => at(point, "mismatch_k3") > 1e-3 && at(point, "mismatch_k3") > 10 * start;
  const found = steps.length > fewest ? stretches(steps.slice(fewest), 3, apart) : [];
  const wide = stretches(steps, 1, (point) => at(point, "mismatch_k3") > 0.05);
  return [...found, ...wide.filter((points) => !found.some((other) => other.includes(points[0]!)))].map(
    (points): Seen => {
      const now = median(values(points, "mismatch_k3"));
      const outside = median(values(points, "mismatch_ratio_outside"));
      return {
        kind: "mismatchTrend",
        severity: now > 0.05 ? "severe" : "warning",
        from: points[0]!.step,
        to: points.at(-1)!.step,
        sentence: `Sampler and trainer give the same tokens other log-probabilities: mismatch k3 is ${shown(now)}${start > 0 ? `, ${shown(now / start)} times that of the first steps` : ""}.`,
        causes: [
          "One side ignores a setting that the other applies (temperature, a penalty, a chat template, padding).",
          "Different kernels or number formats; the gap then grows as the policy gets more certain. A correction bounds what it costs.",
          ...(outside > 0.1 ? [`${percent(outside)} of the tokens differ by more than 10 %.`] : []),
        ],
        numbers: { mismatch: now, start, outside },
        links: [stepLink(points.at(-1)!.step), metric("mismatch_k3"), key("objective.correction")],
      };
    },
  );
};

export const clipFraction: Rule = ({ steps }) =>
  stretches(steps, 3, (point) => at(point, "clip_fraction") > 0.3).map((points): Seen => {
    const cut = median(values(points, "clip_fraction"));
    return {
      kind: "clipFraction",
      severity: cut > 0.6 ? "severe" : "warning",
      from: points[0]!.step,
      to: points.at(-1)!.step,
      sentence: `The clip cut ${percent(cut)} of the tokens for ${points.length} steps: most of what was sampled does not count.`,
      causes: [
        ...(median(values(points, "staleness_max")) > 0
          ? [`Tokens are up to ${shown(median(values(points, "staleness_max")))} steps old when they are trained.`]
          : []),
        "Several steps or epochs a window move the policy out of the bounds before the window ends.",
        `The learning rate (${shown(at(points.at(-1)!, "lr"))}) moves it too far in one step.`,
      ],
      numbers: { clipFraction: cut },
      links: [metric("clip_fraction"), key("objective.clipHigh"), key("training.lr")],
    };
  });

/** Consecutive steps in which the same metrics are not finite are told as one. */
export const nonFiniteMetric: Rule = ({ steps }) => {
  const found: { names: readonly string[]; first: StepPoint; last: StepPoint }[] = [];
  let before: StepPoint | null = null;
  for (const point of steps) {
    const names: string[] = [];
    for (const name in point.metrics) if (!Number.isFinite(point.metrics[name])) names.push(name);
    const open = found.at(-1);
    const isNext = open?.last === before && before?.step === point.step - 1;
    if (open !== undefined && isNext && names.join() === open.names.join()) open.last = point;
    else if (names.length > 0) found.push({ names, first: point, last: point });
    before = point;
  }
  return found.map(
    ({ names, first, last }): Seen => ({
      kind: "nonFiniteMetric",
      severity: "warning",
      from: first.step,
      to: last.step,
      sentence: `${names.join(", ")} ${names.length === 1 ? "is" : "are"} not finite in ${first === last ? `step ${first.step}` : `steps ${first.step} to ${last.step}`}.`,
      causes: [
        "A division by zero in a metric, or numbers of a trajectory that overflowed: look at the step's trajectories.",
      ],
      numbers: Object.fromEntries(names.map((name) => [name, last.metrics[name]!])),
      links: [stepLink(last.step), ...names.slice(0, 3).map(metric)],
    }),
  );
};

/** Shortest time after which a phase can be called stalled, in milliseconds; without earlier ones to compare with, the longer one. */
const stallFloor = 60_000;
const stallWithoutHistory = 600_000;

export const stalledPhase: Rule = ({ phase, durations }, now) => {
  if (phase === null || phase.phase === "paused") return [];
  const usual = median(durations.get(phase.phase) ?? []);
  const lasted = now - phase.since;
  const limit = Number.isFinite(usual) ? Math.max(stallFloor, 8 * usual) : stallWithoutHistory;
  if (lasted < limit) return [];
  const seconds = (milliseconds: number) => `${Math.round(milliseconds / 1000)} s`;
  return [
    {
      kind: "stalledPhase",
      severity: "warning",
      from: phase.step,
      to: phase.step,
      sentence: `The run has been ${phase.phase} for ${seconds(lasted)}${Number.isFinite(usual) ? `; usual is ${seconds(usual)}` : ""}.`,
      causes:
        phase.phase === "sampling" || phase.phase === "evaluating"
          ? [
              "A rollout or evaluate waits for something: its deadline ends it (sampling.rolloutTimeout).",
              "Answers run to their token limit.",
            ]
          : ["The machine is busy with something else, or its memory is full and it swaps."],
      numbers: { milliseconds: lasted, ...(Number.isFinite(usual) ? { usual } : {}) },
      links: [{ kind: "step", step: phase.step }],
    },
  ];
};
