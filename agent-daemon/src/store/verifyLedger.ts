// Proves from the ledger alone that each planned consumption happened exactly once and that each metric row has its step.
// It only reads, and reports every fault instead of stopping at the first.
import type { RecordDocument } from "../../../protocol/record.ts";
import type { PlanDocument, StepDocument } from "../../../protocol/step.ts";
import type { BlobStore, RecordStore } from "./interface.ts";
import { consumptionKey, readLedger, readPlan, trainingCounts } from "./ledger.ts";
import { allDocuments, everyDocument } from "./pages.ts";

export type LedgerFaultKind =
  | "step-missing"
  | "plan-missing"
  | "plan-without-step"
  | "not-consumed"
  | "not-planned"
  | "consumed-twice"
  | "ledger-unreadable"
  | "metrics-without-step"
  | "row-not-in-ledger"
  | "record-missing"
  | "count-differs";

export interface LedgerFault {
  readonly kind: LedgerFaultKind;
  readonly sentence: string;
  readonly step: number | null;
  readonly record: string | null;
}

export interface LedgerReport {
  readonly ok: boolean;
  /** Steps that count, and those that a resume made void. */
  readonly steps: number;
  readonly voidSteps: number;
  readonly consumptions: number;
  /** Planned for a step that is not committed yet: in progress, or to be made void by the next resume. */
  readonly pending: number;
  readonly rows: number;
  readonly voidRows: number;
  readonly faults: readonly LedgerFault[];
}

export interface MetricRow {
  readonly attempt: number;
  readonly step: number;
}

/** `metricRows`: rows exported beside the store (a JSONL file) that must each have their step. */
export async function verifyLedger(
  store: RecordStore,
  blobs: BlobStore,
  run: string,
  metricRows: Iterable<MetricRow> = [],
): Promise<LedgerReport> {
  const faults: LedgerFault[] = [];
  const fault = (kind: LedgerFaultKind, sentence: string, step: number | null, record: string | null = null) => {
    faults.push({ kind, sentence, step, record });
  };

  const allSteps = await allDocuments(store.steps, { run, void: true }, { order: "step" });
  const steps = allSteps.filter((step) => step.voidedBy === null);
  const plans = new Map((await allDocuments(store.plans, { run })).map((plan) => [plan.id, plan]));
  /** Step document → keys of its consumptions. */
  const consumedBy = new Map<string, Set<string>>();
  /** Consumption with its window → step that had it first. */
  const seen = new Map<string, number>();
  let consumptions = 0;

  checkNumbers(steps, fault);
  for (const step of steps) {
    const plan = plans.get(step.id);
    plans.delete(step.id);
    const keys = new Set<string>();
    consumedBy.set(step.id, keys);
    const read = await readBoth(blobs, step, plan);
    if (read === null) {
      fault("ledger-unreadable", `What step ${step.step} planned or consumed cannot be read from its blob.`, step.step);
      continue;
    }
    if (plan === undefined && read.ledger.length > 0) {
      fault("plan-missing", `Step ${step.step} consumed ${read.ledger.length} items without a plan.`, step.step);
    }
    const planned = new Set(read.plan.map(consumptionKey));
    for (const entry of read.ledger) {
      const key = consumptionKey(entry);
      const what = `pass ${entry.pass} of window ${step.window} over record ${entry.record}`;
      consumptions++;
      keys.add(key);
      if (plan !== undefined && !planned.delete(key)) {
        fault(
          "not-planned",
          `Step ${step.step} consumed ${what}, which was not planned or came twice.`,
          step.step,
          entry.record,
        );
      }
      const first = seen.get(`${step.window} ${key}`);
      if (first === undefined) seen.set(`${step.window} ${key}`, step.step);
      else fault("consumed-twice", `Steps ${first} and ${step.step} both consumed ${what}.`, step.step, entry.record);
    }
    for (const { record, pass } of read.plan) {
      if (!planned.has(consumptionKey({ record, pass }))) continue;
      fault(
        "not-consumed",
        `Step ${step.step} did not consume pass ${pass} over record ${record}, which was planned.`,
        step.step,
        record,
      );
    }
  }

  const last = steps.at(-1)?.step ?? -1;
  let pending = 0;
  for (const plan of plans.values()) {
    if (plan.step <= last) fault("plan-without-step", `Step ${plan.step} was planned and never committed.`, plan.step);
    else pending += (await readPlan(blobs, plan).catch(() => [])).length;
  }

  const byNumber = new Set(allSteps.map((step) => `${step.attempt} ${step.step}`));
  for (const row of metricRows) {
    if (byNumber.has(`${row.attempt} ${row.step}`)) continue;
    fault("metrics-without-step", `Metrics of step ${row.step} in attempt ${row.attempt} have no step.`, row.step);
  }

  const { rows, voidRows } = await checkRows(store, run, consumedBy, fault);
  if (!faults.some((found) => found.kind === "ledger-unreadable")) await checkRecords(store, blobs, run, fault);
  return {
    ok: faults.length === 0,
    steps: steps.length,
    voidSteps: allSteps.length - steps.length,
    consumptions,
    pending,
    rows,
    voidRows,
    faults,
  };
}

type Report = (kind: LedgerFaultKind, sentence: string, step: number | null, record?: string | null) => void;

/** Numbers rise by one, from 0 or 1. */
function checkNumbers(steps: readonly StepDocument[], fault: Report): void {
  let expected = steps[0]?.step === 0 ? 0 : 1;
  for (const { step } of steps) {
    for (; expected < step; expected++)
      fault("step-missing", `Step ${expected} is missing before step ${step}.`, expected);
    expected = step + 1;
  }
}

async function readBoth(blobs: BlobStore, step: StepDocument, plan: PlanDocument | undefined) {
  try {
    return { ledger: await readLedger(blobs, step), plan: plan === undefined ? [] : await readPlan(blobs, plan) };
  } catch {
    return null;
  }
}

async function checkRows(
  store: RecordStore,
  run: string,
  consumedBy: ReadonlyMap<string, ReadonlySet<string>>,
  fault: Report,
): Promise<{ rows: number; voidRows: number }> {
  let rows = 0;
  let voidRows = 0;
  for await (const row of everyDocument(store.recordData, { run, void: true })) {
    const consumed = consumedBy.get(row.step);
    if (consumed === undefined) {
      voidRows++;
      continue;
    }
    rows++;
    if (consumed.has(consumptionKey(row))) continue;
    fault(
      "row-not-in-ledger",
      `Training row ${row.id} is of record ${row.record}, which its step did not consume.`,
      null,
      row.record,
    );
  }
  return { rows, voidRows };
}

async function checkRecords(store: RecordStore, blobs: BlobStore, run: string, fault: Report): Promise<void> {
  const counts = await trainingCounts(store, blobs, run);
  const records = await store.records.get([...counts.keys()]);
  const compare = (record: RecordDocument, count: number, last: number | null) => {
    if (record.trainedCount === count && record.lastTrainedStep === last) return;
    fault(
      "count-differs",
      `Record ${record.id} says it was trained ${record.trainedCount} times (last in step ${record.lastTrainedStep ?? "none"}); the ledger says ${count} (${last ?? "none"}).`,
      last,
      record.id,
    );
  };
  for (const [id, { trainedCount, lastTrainedStep }] of counts) {
    const record = records.get(id);
    if (record === undefined)
      fault("record-missing", `Record ${id} was consumed and is not in the store.`, lastTrainedStep, id);
    else compare(record, trainedCount, lastTrainedStep);
  }
  for await (const record of everyDocument(store.records, { run, numbers: { trainedCount: { min: 1 } } })) {
    if (!counts.has(record.id)) compare(record, 0, null);
  }
}
