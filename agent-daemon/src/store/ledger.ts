// Writing the ledger: the plan before a step, the step that commits what was consumed, and going back after a crash. The
// order of writes is what makes it exactly-once: plan, training rows, step, then counts that can be made anew from the rest.
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { RecordDataDocument } from "../../../protocol/recordData.ts";
import {
  type Consumption,
  consumptionSchema,
  type LedgerEntry,
  ledgerEntrySchema,
  type PlanDocument,
  type StepDocument,
  stepDocumentId,
} from "../../../protocol/step.ts";
import { decodeDocument, encodeDocument } from "./documentText.ts";
import type { BlobStore, RecordStore, RecordUpdate } from "./interface.ts";
import { allDocuments, everyDocument } from "./pages.ts";

/** More entries than this go into a blob. */
const inlineEntries = 1000;

export interface StepKey {
  readonly run: string;
  readonly attempt: number;
  readonly step: number;
  readonly window: number;
}

export interface StepResult
  extends StepKey,
    Pick<StepDocument, "outcome" | "metrics" | "weightVersion" | "checkpoint" | "wallMs"> {
  readonly consumed: readonly LedgerEntry[];
  readonly committed: number;
}

/** A consumption that a resume gave back. */
export interface ReturnedConsumption extends Consumption {
  readonly window: number;
  readonly step: number;
}

/** Writes down what the step is going to consume. Throws STORE_DUPLICATE when the run has a plan for this step. */
export async function planStep(
  store: RecordStore,
  blobs: BlobStore,
  key: StepKey,
  consumptions: readonly Consumption[],
  planned: number,
): Promise<PlanDocument> {
  requireDistinct(key, consumptions);
  const plan: PlanDocument = {
    id: stepDocumentId(key.run, key.attempt, key.step),
    run: key.run,
    attempt: key.attempt,
    step: key.step,
    window: key.window,
    plan: await packEntries(blobs, consumptions),
    planned,
    voidedBy: null,
  };
  await store.plans.insert([plan]);
  return plan;
}

/**
 * Commits a step: its training rows first, then the step itself, then the counts of its records. Throws LEDGER_INVALID when
 * what was consumed is not what was planned (step 0 and other steps that consume nothing need no plan).
 */
export async function commitStep(
  store: RecordStore,
  blobs: BlobStore,
  result: StepResult,
  rows: readonly RecordDataDocument[] = [],
): Promise<StepDocument> {
  const { consumed, ...key } = result;
  const id = stepDocumentId(result.run, result.attempt, result.step);
  requireDistinct(result, consumed);
  const plan = (await store.plans.get([id])).get(id);
  const planned = plan === undefined ? [] : await readPlan(blobs, plan);
  const expected = new Set(planned.map(consumptionKey));
  if (
    plan?.voidedBy != null ||
    expected.size !== consumed.length ||
    consumed.some((entry) => !expected.has(consumptionKey(entry)))
  ) {
    throw ledgerInvalid(
      result,
      `it consumed ${consumed.length} items that are not the ${expected.size} that were planned`,
    );
  }
  const foreign = rows.find((row) => row.step !== id || !expected.has(consumptionKey(row)));
  if (foreign !== undefined) throw ledgerInvalid(result, `training row ${foreign.id} is not of anything it consumed`);
  await store.recordData.insert(rows);
  const step: StepDocument = { id, ...key, ledger: await packEntries(blobs, consumed), voidedBy: null };
  await store.steps.insert([step]);
  // The step is committed now. Counts that a crash leaves behind are made anew by the next resume, and verify tells of them.
  const passes = new Map<string, number>();
  for (const entry of consumed) passes.set(entry.record, (passes.get(entry.record) ?? 0) + 1);
  await store.records.update(
    [...passes].map(([record, times]) => ({
      id: record,
      set: { lastTrainedStep: result.step },
      add: { trainedCount: times },
    })),
  );
  return step;
}

/**
 * Goes back to `step` for the new attempt: later plans and steps become void with their training rows, counts of records are
 * made anew from what is left. Returns the consumptions that were taken back. After a crash inside, call it again.
 */
export async function resumeAfter(
  store: RecordStore,
  blobs: BlobStore,
  run: string,
  step: number,
  attempt: number,
): Promise<readonly ReturnedConsumption[]> {
  await store.steps.voidAfter(run, step, attempt);
  await store.plans.voidAfter(run, step, attempt);
  await recountTraining(store, blobs, run);
  const returned: ReturnedConsumption[] = [];
  for await (const plan of everyDocument(store.plans, { run, void: true }, { order: "step" })) {
    if (plan.voidedBy !== attempt) continue;
    for (const { record, pass } of await readPlan(blobs, plan))
      returned.push({ record, pass, window: plan.window, step: plan.step });
  }
  return returned;
}

/** Sets trainedCount and lastTrainedStep of the run's records to what the committed steps say. Returns how many differed. */
export async function recountTraining(store: RecordStore, blobs: BlobStore, run: string): Promise<number> {
  const counts = await trainingCounts(store, blobs, run);
  const known = await allDocuments(store.records, { run, numbers: { trainedCount: { min: 1 } } });
  for (const record of (await store.records.get([...counts.keys()])).values()) {
    if (record.trainedCount === 0) known.push(record);
  }
  const updates: RecordUpdate[] = [];
  for (const record of known) {
    const { trainedCount, lastTrainedStep } = counts.get(record.id) ?? { trainedCount: 0, lastTrainedStep: null };
    if (record.trainedCount === trainedCount && record.lastTrainedStep === lastTrainedStep) continue;
    updates.push({ id: record.id, set: { trainedCount, lastTrainedStep } });
  }
  const failed = (await store.records.update(updates)).find((error) => error !== null);
  if (failed) throw failed;
  return updates.length;
}

export interface TrainingCount {
  trainedCount: number;
  lastTrainedStep: number;
}

/** By record, from the ledgers of the steps that are not void. */
export async function trainingCounts(
  store: RecordStore,
  blobs: BlobStore,
  run: string,
): Promise<Map<string, TrainingCount>> {
  const counts = new Map<string, TrainingCount>();
  for await (const step of everyDocument(store.steps, { run }, { order: "step" })) {
    for (const { record } of await readLedger(blobs, step)) {
      const count = counts.get(record);
      if (count === undefined) counts.set(record, { trainedCount: 1, lastTrainedStep: step.step });
      else {
        count.trainedCount++;
        count.lastTrainedStep = step.step;
      }
    }
  }
  return counts;
}

export function readPlan(blobs: BlobStore, plan: PlanDocument): Promise<readonly Consumption[]> {
  return unpackEntries(blobs, plan.plan, consumptionSchema);
}

export function readLedger(blobs: BlobStore, step: StepDocument): Promise<readonly LedgerEntry[]> {
  return unpackEntries(blobs, step.ledger, ledgerEntrySchema);
}

/** Names a consumption within its window. */
export function consumptionKey({ record, pass }: Consumption): string {
  return `${pass} ${record}`;
}

type Packed<Entry> =
  | { kind: "inline"; entries: Entry[] }
  | { kind: "blob"; hash: string; bytes: number; count: number };

async function packEntries<Entry>(blobs: BlobStore, entries: readonly Entry[]): Promise<Packed<Entry>> {
  if (entries.length <= inlineEntries) return { kind: "inline", entries: [...entries] };
  const bytes = Buffer.from(encodeDocument(entries));
  return { kind: "blob", hash: await blobs.put(bytes), bytes: bytes.length, count: entries.length };
}

async function unpackEntries<Entry>(
  blobs: BlobStore,
  packed: Packed<Entry>,
  schema: z.ZodType<Entry>,
): Promise<readonly Entry[]> {
  if (packed.kind === "inline") return packed.entries;
  const bytes = await blobs.get(packed.hash);
  return z.array(schema).parse(decodeDocument(Buffer.from(bytes).toString("utf8")));
}

function requireDistinct(key: StepKey, consumptions: readonly Consumption[]): void {
  const seen = new Set<string>();
  for (const consumption of consumptions) {
    const name = consumptionKey(consumption);
    if (seen.has(name))
      throw ledgerInvalid(key, `record ${consumption.record} stands twice in pass ${consumption.pass}`);
    seen.add(name);
  }
}

function ledgerInvalid({ run, step }: StepKey, why: string): RollscopeError {
  return new RollscopeError("LEDGER_INVALID", `Step ${step} of run ${run} is not written: ${why}.`, {
    next: "This is a fault of the training loop; resume from the last checkpoint and report it with the message.",
    at: { run, step },
  });
}
