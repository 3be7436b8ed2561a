// The per-token numbers of a step, as rows to be stored: one row a trajectory, over its trainable tokens. It computes nothing.
import type { RecordDataColumnName, RecordDataDocument } from "../../../protocol/recordData.ts";
import type { Trajectory } from "../../../protocol/trajectory.ts";
import type { SequenceConstants } from "../algorithms/columns.ts";
import { trainablePositions } from "./occurrenceColumns.ts";

export type RowColumns = { [Name in RecordDataColumnName]?: Float32Array | Int32Array };

/** What RecordDataDocument holds of a row, with its columns still as arrays. */
export interface TrainingRow {
  readonly record: string;
  /** Last call of the trajectory. */
  readonly leaf: string;
  readonly window: number;
  readonly pass: number;
  readonly occurrences: number;
  readonly spans: RecordDataDocument["spans"];
  readonly columns: RowColumns;
}

/** Numbers of one trajectory's trainable tokens from the step's forward; absent where there are none. */
export interface RowScalars {
  /** Log-probability that the step's gradient was taken at. */
  readonly logprob: Float64Array;
  readonly entropy?: Float64Array | undefined;
  readonly value?: Float64Array | undefined;
  readonly correction?: Float64Array | undefined;
}

/** `new` is the log-probability under the weights that the step's gradient was taken at; `old` that of the window's beginning. */
export function trainingRow(
  trajectory: Trajectory,
  place: { readonly window: number; readonly pass: number },
  constants: SequenceConstants,
  scalars: RowScalars,
): TrainingRow {
  const spans = spansOf(trajectory);
  const columns: RowColumns = {};
  const put = (name: RecordDataColumnName, column: ArrayLike<number> | undefined) => {
    if (column !== undefined)
      columns[name] = name === "staleness" ? Int32Array.from(column) : Float32Array.from(column);
  };
  put("old", constants.old ?? scalars.logprob);
  put("new", scalars.logprob);
  put("reference", constants.ref);
  put("entropy", scalars.entropy);
  put("oldValue", constants.oldValue);
  put("newValue", scalars.value);
  put("tokenReward", tokenRewards(trajectory));
  put("return", constants.returns);
  put("advantage", constants.advantage);
  put("weight", scalars.correction);
  put("staleness", constants.staleness);
  return {
    record: trajectory.record,
    leaf: trajectory.calls.at(-1) ?? trajectory.record,
    ...place,
    occurrences: scalars.logprob.length,
    spans,
    columns,
  };
}

function tokenRewards(trajectory: Trajectory): Float32Array | undefined {
  const { tokenRewards: rewards } = trajectory;
  if (rewards === undefined) return undefined;
  return Float32Array.from(trainablePositions(trajectory), (at) => rewards[at] as number);
}

/** Runs of trainable tokens that follow each other within one call. */
function spansOf({ trainable, call, calls }: Trajectory): RecordDataDocument["spans"] {
  const spans: { call: string; from: number; start: number; length: number }[] = [];
  let occurrence = 0;
  let inCall = 0;
  for (let i = 0; i < trainable.length; i++) {
    inCall = i > 0 && call[i] === call[i - 1] ? inCall + 1 : 0;
    if (trainable[i] !== 1) continue;
    const last = spans.at(-1);
    const follows = i > 0 && trainable[i - 1] === 1 && call[i] === call[i - 1];
    if (last !== undefined && follows) last.length += 1;
    else spans.push({ call: calls[call[i] as number] ?? "unknown", from: inCall, start: occurrence, length: 1 });
    occurrence += 1;
  }
  return spans;
}
