// Where a step's sampled tokens went on their way to the gradient. Every token is counted in exactly one stage, the first that
// took it, so that the stages add up to what was sampled. What was sampled and never planned for a step (failed rollouts, groups
// that others replaced) counts for the step that was committed next.
import type { CallDocument } from "../../../protocol/call.ts";
import type { RecipeConfig } from "../../../protocol/recipe.ts";
import type { RecordDocument } from "../../../protocol/record.ts";
import { type WasteStage, type Waterfall, wasteStages } from "../../../protocol/runView.ts";
import type { StepDocument } from "../../../protocol/step.ts";
import type { BlobStore, RecordStore } from "../store/interface.ts";
import { readLedger } from "../store/ledger.ts";
import { allDocuments } from "../store/pages.ts";
import { gradientsOf, loadStepRows, policyOnly, type StepRow } from "./stepNumbers.ts";

type Stages = Record<WasteStage, number>;

const noStages = (): Stages => Object.fromEntries(wasteStages.map((stage) => [stage, 0])) as Stages;

export interface WaterfallSource {
  readonly store: RecordStore;
  readonly blobs: BlobStore;
  readonly run: string;
  readonly config: RecipeConfig;
}

/** The steps that count, in order. */
async function committedSteps({ store, run }: WaterfallSource): Promise<StepDocument[]> {
  return (await allDocuments(store.steps, { run }, { order: "step" })).filter(({ step }) => step > 0);
}

/** @returns null when the step was not committed */
export async function stepWaterfall(source: WaterfallSource, step: number): Promise<Waterfall | null> {
  const steps = await committedSteps(source);
  const index = steps.findIndex((document) => document.step === step);
  return index < 0 ? null : waterfallOf(source, steps, index, () => unusedRecords(source));
}

/**
 * Over the steps that count; passes after the first look at tokens that were counted before and add nothing.
 *
 * @param known answers of committed steps, to which nothing is added any more: with them only new steps are read
 */
export async function runWaterfall(
  source: WaterfallSource,
  known: (step: StepDocument, compute: () => Promise<Waterfall>) => Promise<Waterfall> = (_, compute) => compute(),
): Promise<Waterfall> {
  const steps = await committedSteps(source);
  const total = noStages();
  let unused: Promise<RecordDocument[]> | null = null;
  const unusedOnce = () => {
    unused ??= unusedRecords(source);
    return unused;
  };
  for (const [index, step] of steps.entries()) {
    const { stages } = await known(step, async () =>
      (await isLaterPass(source, steps, index))
        ? { step: step.step, sampled: 0, stages: noStages() }
        : await waterfallOf(source, steps, index, unusedOnce),
    );
    for (const stage of wasteStages) total[stage] += stages[stage];
  }
  return { step: null, sampled: sum(total), stages: total };
}

/** Whether earlier steps of its window had all of its records. */
async function isLaterPass(
  { blobs }: WaterfallSource,
  steps: readonly StepDocument[],
  index: number,
): Promise<boolean> {
  const step = steps[index]!;
  const earlier = steps.slice(0, index).filter(({ window }) => window === step.window);
  if (earlier.length === 0) return false;
  const ledger = await readLedger(blobs, step);
  const counted = new Set(
    (await Promise.all(earlier.map((one) => readLedger(blobs, one)))).flat().map(({ record }) => record),
  );
  return ledger.length > 0 && ledger.every(({ record }) => counted.has(record));
}

const sum = (stages: Stages) => wasteStages.reduce((total, stage) => total + stages[stage], 0);

async function waterfallOf(
  source: WaterfallSource,
  steps: readonly StepDocument[],
  index: number,
  unused: () => Promise<readonly RecordDocument[]>,
): Promise<Waterfall> {
  const { store, blobs, run } = source;
  const step = steps[index]!;
  const planned = new Set((await readLedger(blobs, step)).map(({ record }) => record));
  const never = neverPlanned(await unused(), steps, index, planned);
  const records = [...(await store.records.get([...planned])).values(), ...never];
  const ids = records.map(({ id }) => id);
  const [calls, tasks, { rows }] = await Promise.all([
    callsOf(store, run, ids),
    store.tasks.get([...new Set(records.map(({ task }) => task))]),
    loadStepRows(store, blobs, step),
  ]);
  const equal = (record: RecordDocument) => {
    const scores = (tasks.get(record.task)?.scores ?? []).filter((score) => score !== null);
    return scores.length > 1 && scores.every((score) => score === scores[0]);
  };
  const trained = trainedStages(source.config, rows);
  const stages = noStages();
  for (const record of records) {
    const graded = typeof record.score === "number";
    for (const call of calls.get(record.id) ?? []) {
      const tokens = trained.get(call.id);
      const length = call.output.length;
      if (tokens !== undefined) {
        for (const stage of tokens.values()) stages[stage] += 1;
        stages[untrained(source.config, call)] += length - tokens.size;
      } else if (!graded || call.status !== "completed") stages.notCaptured += length;
      else if (untrained(source.config, call) === "truncated") stages.truncated += length;
      else if (call.temperature === 0) stages.masked += length;
      else stages[equal(record) ? "zeroVariance" : "filtered"] += length;
    }
  }
  return { step: step.step, sampled: sum(stages), stages };
}

/** Why tokens of a completed call are in no row though others of its record are. */
function untrained({ sampling }: RecipeConfig, call: CallDocument): WasteStage {
  return sampling.truncated === "mask" && call.finishReason === "length" ? "truncated" : "masked";
}

/** Training records that no step trained. */
function unusedRecords({ store, run }: WaterfallSource): Promise<RecordDocument[]> {
  return allDocuments(store.records, { run, split: "train", numbers: { trainedCount: 0 } });
}

/** Training records that no step planned, from the time between the step before and this one. */
function neverPlanned(
  unused: readonly RecordDocument[],
  steps: readonly StepDocument[],
  index: number,
  planned: ReadonlySet<string>,
): RecordDocument[] {
  const after = index === 0 ? Number.NEGATIVE_INFINITY : steps[index - 1]!.committed;
  const until = steps[index]!.committed;
  return unused.filter(
    ({ id, created, attempt }) =>
      created > after && created <= until && attempt === steps[index]!.attempt && !planned.has(id),
  );
}

async function callsOf(
  store: RecordStore,
  run: string,
  records: readonly string[],
): Promise<Map<string, CallDocument[]>> {
  const found = new Map<string, CallDocument[]>();
  for (let at = 0; at < records.length; at += 200) {
    const documents = await allDocuments(store.calls, { run, record: records.slice(at, at + 200) });
    for (const call of documents) found.set(call.record, [...(found.get(call.record) ?? []), call]);
  }
  return found;
}

/** Later ones win when several rows hold a token: it counts as what it achieved at best. */
const order = ["zeroVariance", "stale", "filtered", "clipped", "contributing"] as const satisfies readonly WasteStage[];
type TrainedStage = (typeof order)[number];

/** By call: the stage of each output token that some row of the step holds. */
function trainedStages(config: RecipeConfig, rows: readonly StepRow[]): Map<string, Map<number, TrainedStage>> {
  const policy = policyOnly(config.objective);
  const { correction: _correction, ...bare } = policy;
  const { freshness, ...others } = policy.correction ?? {};
  const gradients = gradientsOf(bare, rows);
  const fresh = freshness === undefined ? null : gradientsOf({ ...bare, correction: { freshness } }, rows);
  const filtered = Object.keys(others).length === 0 ? null : gradientsOf({ ...bare, correction: others }, rows);
  const stages = new Map<string, Map<number, TrainedStage>>();
  for (const [r, { document, columns }] of rows.entries()) {
    for (const { call, from, start, length } of document.spans) {
      const own = stages.get(call) ?? new Map<number, TrainedStage>();
      stages.set(call, own);
      for (let i = 0; i < length; i++) {
        const at = start + i;
        const stage: TrainedStage =
          columns.advantage?.[at] === 0
            ? "zeroVariance"
            : gradients !== null && gradients[r]![at] === 0
              ? "clipped"
              : fresh !== null && fresh[r]![at] === 0
                ? "stale"
                : filtered !== null && filtered[r]![at] === 0
                  ? "filtered"
                  : "contributing";
        const before = own.get(from + i);
        if (before === undefined || order.indexOf(stage) > order.indexOf(before)) own.set(from + i, stage);
      }
    }
  }
  return stages;
}
