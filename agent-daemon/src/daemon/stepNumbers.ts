// The numbers of one optimizer step as the objective saw them, put together again from what the step stored: one entry a training
// row, with the derivative of the loss for each token. It computes with the very functions of the loop and changes nothing.
import type { CallDocument } from "../../../protocol/call.ts";
import type { ObjectiveConfig } from "../../../protocol/objective.ts";
import type { RecordDataColumnName, RecordDataDocument } from "../../../protocol/recordData.ts";
import type { StepDocument } from "../../../protocol/step.ts";
import type { SequenceColumns } from "../algorithms/columns.ts";
import { evaluateObjective } from "../algorithms/evaluateObjective.ts";
import { decodeColumn, type TypedArray } from "../store/columns.ts";
import type { BlobStore, RecordStore } from "../store/interface.ts";
import { allDocuments } from "../store/pages.ts";

export interface StepRow {
  readonly document: RecordDataDocument;
  readonly columns: { readonly [Name in RecordDataColumnName]?: TypedArray };
  /** [occurrences] the sampler's log-probability; NaN where a call is gone. */
  readonly rollout: Float64Array;
  /** [occurrences] number of the call along the row's path. */
  readonly turn: Int32Array;
}

/** All rows of a step, in the order in which they were stored, and the calls that they name. */
export async function loadStepRows(
  store: RecordStore,
  blobs: BlobStore,
  step: StepDocument,
): Promise<{ readonly rows: readonly StepRow[]; readonly calls: ReadonlyMap<string, CallDocument> }> {
  const documents = await allDocuments(store.recordData, { run: step.run, step: step.id, void: true });
  const names = [...new Set(documents.flatMap(({ spans }) => spans.map(({ call }) => call)))];
  const calls = await store.calls.get(names);
  const logprobs = new Map<string, TypedArray>();
  for (const [id, call] of calls) logprobs.set(id, await decodeColumn(blobs, call.logprobs));
  const rows: StepRow[] = [];
  for (const document of documents) {
    const columns: { [Name in RecordDataColumnName]?: TypedArray } = {};
    for (const [name, column] of Object.entries(document.columns))
      if (column !== undefined) columns[name as RecordDataColumnName] = await decodeColumn(blobs, column);
    const rollout = new Float64Array(document.occurrences).fill(Number.NaN);
    const turn = new Int32Array(document.occurrences);
    const path = [...new Set(document.spans.map(({ call }) => call))];
    for (const { call, from, start, length } of document.spans) {
      rollout.set((logprobs.get(call) ?? []).slice(from, from + length), start);
      turn.fill(path.indexOf(call), start, start + length);
    }
    rows.push({ document, columns, rollout, turn });
  }
  return { rows, calls };
}

function sequenceOf({ document, columns, rollout, turn }: StepRow): SequenceColumns {
  const known = rollout.every(Number.isFinite);
  return {
    mask: columns.mask ?? new Uint8Array(document.occurrences).fill(1),
    logp: columns.new ?? new Float64Array(document.occurrences).fill(Number.NaN),
    old: columns.old,
    rollout: known ? rollout : undefined,
    ref: columns.reference,
    advantage: columns.advantage,
    staleness: columns.staleness,
    turn,
    oldValue: columns.oldValue,
    returns: columns.return,
    entropy: columns.entropy,
    newValue: columns.newValue,
  };
}

/**
 * ∂loss/∂logprob of every token of the step's rows under a configuration, for each row; null for a recipe's own objective, whose
 * code this process never loads.
 *
 * @throws what the objective throws for columns that the step did not store
 */
export function gradientsOf(config: ObjectiveConfig, rows: readonly StepRow[]): readonly Float64Array[] | null {
  if (config.kind === "custom") return null;
  return evaluateObjective(config, rows.map(sequenceOf)).dLossDLogp;
}

/** The policy's part alone: without KL, entropy and critic. */
export function policyOnly({ kl: _kl, entropy: _entropy, value: _value, ...policy }: ObjectiveConfig): ObjectiveConfig {
  return policy;
}
