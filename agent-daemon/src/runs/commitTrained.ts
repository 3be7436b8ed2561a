// The one write of an optimizer step: training rows, ledger and metrics go to the store in the order that makes it
// exactly-once. Nothing is computed here.
import type { RecordDataColumnName, RecordDataDocument } from "../../../protocol/recordData.ts";
import { type Metrics, type StepDocument, stepDocumentId } from "../../../protocol/step.ts";
import { encodeColumns, type TypedArray } from "../store/columns.ts";
import type { BlobStore, RecordStore } from "../store/interface.ts";
import { commitStep } from "../store/ledger.ts";
import type { StepResult } from "../training/optimizerStep.ts";
import type { TrainingRow } from "../training/trainingRows.ts";

export interface TrainedStep {
  readonly run: string;
  readonly attempt: number;
  /** From 1. */
  readonly step: number;
  readonly result: StepResult;
  /** Of the step, with what the loop adds to it. */
  readonly metrics: Metrics;
  readonly checkpoint: string | null;
  readonly wallMs: number;
  readonly committed: number;
}

export async function commitTrained(store: RecordStore, blobs: BlobStore, trained: TrainedStep): Promise<StepDocument> {
  const { run, attempt, step, result } = trained;
  const id = stepDocumentId(run, attempt, step);
  const rows: RecordDataDocument[] = [];
  for (const row of result.rows)
    rows.push(await rowDocument(blobs, { run, step: id, created: trained.committed }, row));
  return await commitStep(
    store,
    blobs,
    {
      run,
      attempt,
      step,
      window: result.window,
      outcome: result.outcome,
      metrics: trained.metrics,
      weightVersion: result.policyVersion,
      checkpoint: trained.checkpoint,
      wallMs: trained.wallMs,
      consumed: result.consumed,
      committed: trained.committed,
    },
    rows,
  );
}

async function rowDocument(
  blobs: BlobStore,
  of: Pick<RecordDataDocument, "run" | "step" | "created">,
  row: TrainingRow,
): Promise<RecordDataDocument> {
  const named = Object.entries(row.columns) as [RecordDataColumnName, TypedArray][];
  const encoded = await encodeColumns(
    blobs,
    named.map(([, values]) => values),
  );
  return {
    id: `${of.step}/${row.record}/${row.leaf}`,
    ...of,
    record: row.record,
    window: row.window,
    pass: row.pass,
    leaf: row.leaf,
    occurrences: row.occurrences,
    spans: [...row.spans],
    columns: Object.fromEntries(named.map(([name], index) => [name, encoded[index]])),
  };
}
