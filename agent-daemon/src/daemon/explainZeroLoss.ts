// Why a step's loss is zero, answered from what the step stored: the causes that its numbers show, strongest first, and no others.
// A loss of zero with a gradient is no fault, and is told apart from one without; a loss without a gradient teaches as little.
import type { Explanation } from "../../../protocol/runView.ts";
import type { StepDocument } from "../../../protocol/step.ts";
import { shown } from "../runs/advisories/rules.ts";
import { readLedger } from "../store/ledger.ts";
import { loadStepRows } from "./stepNumbers.ts";
import { stepWaterfall, type WaterfallSource } from "./waterfall.ts";

type Cause = Explanation["causes"][number];

/** A loss this small is called zero: float32 sums of losses near 1 are no better. */
const zero = 1e-6;
/** Records named with a cause. */
const namedRecords = 8;

/** null when the step was not committed. */
export async function explainZeroLoss(source: WaterfallSource, step: number): Promise<Explanation | null> {
  const document = (await source.store.steps.query({ run: source.run, step }, { limit: 1 })).items[0];
  if (document === undefined) return null;
  const metric = (name: string) => document.metrics[name] ?? Number.NaN;
  const loss = metric("loss");
  const norm = metric("grad_norm");
  if (document.outcome.kind === "applied" && Math.abs(loss) > zero && norm !== 0) {
    const kl = metric("kl_loss");
    const parts = Number.isFinite(kl) ? ` (policy part ${shown(metric("policy_loss"))}, KL term ${shown(kl)})` : "";
    return { step, answer: `The loss of step ${step} is not zero: it is ${shown(loss)}${parts}.`, causes: [] };
  }
  const causes = [
    ...(await maskedAnswers(source, document)),
    ...(await noTokens(source, document)),
    ...(await equalGroups(source, document)),
    ...(await noAdvantage(source, document)),
    ...(await lostTokens(source, step)),
    ...cancelled(document),
  ];
  if (metric("lr") === 0) {
    const still = {
      sentence: stillSentence(source),
      evidence: { lr: 0 },
      records: [],
      key: source.config.training.lr === 0 ? "training.lr" : "training.schedule",
    };
    // With a gradient there is nothing else that keeps the step from teaching.
    if (norm > 0) causes.unshift(still);
    else causes.push(still);
  }
  return { step, answer: answerOf(document, causes), causes };
}

function stillSentence({ config }: WaterfallSource): string {
  const why = config.training.lr === 0 ? "The learning rate is 0" : "The schedule of the learning rate is at 0 here";
  return `${why}: whatever the loss is, the weights stay as they are.`;
}

function answerOf({ step, outcome, metrics }: StepDocument, causes: readonly Cause[]): string {
  const first = causes[0]?.sentence ?? "The stored numbers show no cause.";
  if (outcome.kind === "skipped") return `Step ${step} was skipped: ${outcome.reason} ${first}`;
  const norm = metrics["grad_norm"] ?? Number.NaN;
  const loss = metrics["loss"] ?? Number.NaN;
  const isZero = Math.abs(loss) <= zero;
  if (norm > 0 && metrics["lr"] === 0)
    return `The loss of step ${step} is zero, and though its gradient is not (norm ${shown(norm)}), nothing is learned. ${first}`;
  if (norm > 0)
    return `The loss of step ${step} is zero, but it does teach: the gradient's norm is ${shown(norm)}. ${first}`;
  return isZero
    ? `The loss of step ${step} is zero, and so is its gradient. ${first}`
    : `The loss of step ${step} is ${shown(loss)}, but its gradient is zero: nothing is learned. ${first}`;
}

/** Answers that were cut off and are masked by the recipe, where they are at least half of the step's. */
async function maskedAnswers({ store, blobs, config }: WaterfallSource, step: StepDocument): Promise<Cause[]> {
  const records = [...(await store.records.get((await readLedger(blobs, step)).map(({ record }) => record))).values()];
  const cut = records.filter(({ stats }) => stats.truncated);
  if (config.sampling.truncated !== "mask" || cut.length === 0 || 2 * cut.length < records.length) return [];
  const { maxNewTokens } = config.sampling;
  return [
    {
      sentence: `${cut.length} of ${records.length} answers were cut off by the limit of ${maxNewTokens} tokens, and the recipe masks such answers.`,
      evidence: { records: records.length, truncated: cut.length, maxNewTokens },
      records: cut.slice(0, namedRecords).map(({ id }) => id),
      key: "sampling.maxNewTokens",
    },
  ];
}

/** Nothing was trained. */
async function noTokens(source: WaterfallSource, step: StepDocument): Promise<Cause[]> {
  const ledger = await readLedger(source.blobs, step);
  if (ledger.some(({ tokens }) => tokens > 0)) return [];
  const records = [...(await source.store.records.get(ledger.map(({ record }) => record))).values()];
  const dropped = step.metrics["dropped"] ?? 0;
  return [
    {
      sentence:
        dropped > 0
          ? `All ${shown(dropped)} trajectories left the batch because their advantages are zero.`
          : "No trainable token reached the step.",
      evidence: { records: records.length, dropped },
      records: records.slice(0, namedRecords).map(({ id }) => id),
      key: dropped > 0 ? "advantages" : null,
    },
  ];
}

/** Groups in which every score is the same give every token the advantage 0. */
async function equalGroups({ store, blobs }: WaterfallSource, step: StepDocument): Promise<Cause[]> {
  const ledger = await readLedger(blobs, step);
  const records = [...(await store.records.get(ledger.map(({ record }) => record))).values()];
  const tasks = [...(await store.tasks.get([...new Set(records.map(({ task }) => task))])).values()];
  const scores = tasks.map((task) => task.scores.filter((score) => score !== null));
  if (tasks.length === 0 || !scores.every((own) => own.every((score) => score === own[0]))) return [];
  const values = [...new Set(scores.flatMap((own) => own.slice(0, 1)))];
  return [
    {
      sentence:
        values.length === 1
          ? `Every score of the step is ${shown(values[0]!)}: no trajectory is better than another.`
          : `In each of the ${tasks.length} groups all scores are equal, so every advantage is 0.`,
      evidence: { groups: tasks.length, groupSize: tasks[0]!.groupSize, scores: values.length },
      records: records.slice(0, namedRecords).map(({ id }) => id),
      key: "sampling.refill.limit",
    },
  ];
}

/** Trained tokens whose every advantage is 0, though scores of their groups differ. */
async function noAdvantage({ store, blobs }: WaterfallSource, step: StepDocument): Promise<Cause[]> {
  const { rows } = await loadStepRows(store, blobs, step);
  const tokens = rows.reduce((sum, { document }) => sum + document.occurrences, 0);
  const none = rows.every(({ columns }) => columns.advantage?.every((advantage) => advantage === 0) ?? false);
  if (tokens === 0 || !none) return [];
  return [
    {
      sentence: `All ${tokens} trained tokens have the advantage 0.`,
      evidence: { tokens, trajectories: rows.length },
      records: rows.slice(0, namedRecords).map(({ document }) => document.record),
      key: "advantages.estimator",
    },
  ];
}

/** Tokens that had an advantage and lost their gradient to a bound or a filter. */
async function lostTokens(source: WaterfallSource, step: number): Promise<Cause[]> {
  const waterfall = await stepWaterfall(source, step);
  if (waterfall === null || waterfall.stages.contributing > 0) return [];
  const { clipped, filtered, stale } = waterfall.stages;
  const lost = [
    { count: clipped, why: "the clip", key: "objective.clipHigh" },
    { count: filtered, why: "a correction's filter", key: "objective.correction" },
    { count: stale, why: "the freshness filter", key: "objective.correction.freshness" },
  ];
  return lost
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count)
    .map(({ count, why, key }) => ({
      sentence: `${why[0]!.toUpperCase()}${why.slice(1)} took the gradient of ${count} tokens; none is left.`,
      evidence: { tokens: count, sampled: waterfall.sampled },
      records: [],
      key,
    }));
}

/** On policy every ratio is 1, so the loss is minus the mean advantage, which a group's normalisation makes 0. */
function cancelled({ metrics }: StepDocument): Cause[] {
  const at = (name: string) => metrics[name] ?? Number.NaN;
  const onPolicy = Math.abs(at("ratio_min") - 1) < 1e-3 && Math.abs(at("ratio_max") - 1) < 1e-3;
  if (!(at("grad_norm") > 0) || !onPolicy) return [];
  return [
    {
      sentence:
        "The policy is the one that sampled, so every ratio is 1 and the loss is minus the mean advantage, which is 0 by construction: watch the reward and the gradient's norm instead.",
      evidence: {
        grad_norm: at("grad_norm"),
        ratio_min: at("ratio_min"),
        ratio_max: at("ratio_max"),
      },
      records: [],
      key: null,
    },
  ];
}
