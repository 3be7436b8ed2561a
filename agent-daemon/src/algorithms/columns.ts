// The optimizer batch as flat columns over occurrences. An occurrence is (trajectory, position); its number is
// offsets[trajectory] + position. Masked positions are copied, never looked at. Checks lengths and finiteness once, here.
import { RollscopeError } from "../../../protocol/errors.ts";
import { type Column, type Locate, throwNonFinite } from "./tokenPlace.ts";

/** What is known about one trajectory before the forward. All columns have the length of `mask`; unread ones may be absent. */
export interface SequenceConstants {
  /** 1 trainable, 0 masked. Other columns may hold anything where it is 0. */
  readonly mask: Column;
  /** Trainer's log-probability when the window began. */
  readonly old?: Column | undefined;
  /** The sampler's recorded log-probability. */
  readonly rollout?: Column | undefined;
  readonly ref?: Column | undefined;
  readonly advantage?: Column | undefined;
  readonly staleness?: Column | undefined;
  /** Turn number of each token. */
  readonly turn?: Column | undefined;
  /** Value predicted when the window began. */
  readonly oldValue?: Column | undefined;
  readonly returns?: Column | undefined;
  readonly locate?: Locate | undefined;
}

/** A whole trajectory with the current forward's numbers. */
export interface SequenceColumns extends SequenceConstants {
  readonly logp: Column;
  readonly entropy?: Column | undefined;
  readonly newValue?: Column | undefined;
}

export type ConstantColumn = "old" | "rollout" | "ref" | "advantage" | "staleness" | "turn" | "oldValue" | "returns";
const constantColumns = ["old", "rollout", "ref", "advantage", "staleness", "turn", "oldValue", "returns"] as const;
/** Columns that metrics show even where the objective does not read them. */
const metricColumns: ReadonlySet<ConstantColumn> = new Set(["old", "ref", "advantage", "staleness"]);

export interface FlatBatch {
  /** All occurrences, masked ones included. */
  readonly size: number;
  /** [trajectories + 1] */
  readonly offsets: Int32Array;
  /** [size] 1 trainable, 0 masked */
  readonly mask: Uint8Array;
  /** [size] each; null where the batch does not have the column */
  readonly columns: Readonly<Record<ConstantColumn, Float64Array | null>>;
  readonly sequences: readonly SequenceConstants[];
}

/**
 * Flattens a batch. Columns in `required` must be there and finite on every trainable token; others become null where one
 * trajectory lacks them or holds a number that is not finite, and so are their metrics.
 * @throws OBJECTIVE_COLUMN_MISSING, OBJECTIVE_COLUMN_INVALID, ALGORITHM_NON_FINITE
 */
export function flattenBatch(
  sequences: readonly SequenceConstants[],
  required: ReadonlySet<ConstantColumn>,
): FlatBatch {
  const offsets = new Int32Array(sequences.length + 1);
  sequences.forEach((sequence, index) => {
    offsets[index + 1] = offsets[index]! + sequence.mask.length;
  });
  const size = offsets[sequences.length]!;
  const mask = new Uint8Array(size);
  sequences.forEach((sequence, index) => {
    copyMask(sequence.mask, mask, offsets[index]!, index);
  });
  const columns: Record<string, Float64Array | null> = {};
  for (const name of constantColumns) {
    const wanted = required.has(name) || metricColumns.has(name);
    columns[name] = wanted ? flattenColumn(sequences, name, required.has(name), { size, offsets, mask }) : null;
  }
  return { size, offsets, mask, columns: columns as Record<ConstantColumn, Float64Array | null>, sequences };
}

/** The trajectory of an occurrence. */
export function trajectoryOf(offsets: Int32Array, occurrence: number): number {
  let low = 0;
  let high = offsets.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (offsets[middle]! <= occurrence) low = middle;
    else high = middle;
  }
  return low;
}

function copyMask(source: Column, target: Uint8Array, offset: number, trajectory: number): void {
  for (let position = 0; position < source.length; position++) {
    const value = source[position];
    if (value !== 0 && value !== 1) {
      throw new RollscopeError(
        "OBJECTIVE_COLUMN_INVALID",
        `Trajectory ${trajectory}: mask is ${value} at position ${position}; it must be 0 or 1.`,
        { next: "Correct the mask.", at: { trajectory, position, column: "mask" } },
      );
    }
    target[offset + position] = value;
  }
}

const columnLabels: Readonly<Record<ConstantColumn, string>> = {
  old: "old log-probability",
  rollout: "sampled log-probability",
  ref: "reference log-probability",
  advantage: "advantage",
  staleness: "staleness",
  turn: "turn number",
  oldValue: "old value",
  returns: "return",
};

function flattenColumn(
  sequences: readonly SequenceConstants[],
  name: ConstantColumn,
  required: boolean,
  batch: Pick<FlatBatch, "size" | "offsets" | "mask">,
): Float64Array | null {
  const flat = new Float64Array(batch.size);
  for (const [trajectory, sequence] of sequences.entries()) {
    const start = batch.offsets[trajectory]!;
    const end = batch.offsets[trajectory + 1]!;
    const column = sequence[name];
    if (column === undefined) {
      if (!hasTrainable(batch.mask, start, end)) continue;
      if (!required) return null;
      throw new RollscopeError(
        "OBJECTIVE_COLUMN_MISSING",
        `Trajectory ${trajectory} has no \`${name}\`, which this objective reads.`,
        {
          next:
            name === "old"
              ? "Give `old` from a forward when the window began, or say `oldIsCurrent` when there is one step a window."
              : `Give \`${name}\` for every token, or change the objective block so that it is not read.`,
          at: { trajectory, column: name },
        },
      );
    }
    checkLength(column, end - start, name, trajectory);
    flat.set(column, start);
    const position = firstNonFinite(flat, batch.mask, start, end);
    if (position === null) continue;
    if (!required) return null;
    throwNonFinite(columnLabels[name], flat[start + position]!, sequence, trajectory, position);
  }
  return flat;
}

/** Position of the first trainable number that is not finite. x − x is 0 only for finite x. */
function firstNonFinite(flat: Float64Array, mask: Uint8Array, start: number, end: number): number | null {
  for (let o = start; o < end; o++) {
    if (mask[o] === 1 && flat[o]! - flat[o]! !== 0) return o - start;
  }
  return null;
}

function hasTrainable(mask: Uint8Array, start: number, end: number): boolean {
  for (let o = start; o < end; o++) if (mask[o] === 1) return true;
  return false;
}

/** Every column of a trajectory has the length of its mask. @throws OBJECTIVE_COLUMN_INVALID */
export function checkLength(column: Column, length: number, name: string, trajectory: number): void {
  if (column.length === length) return;
  throw new RollscopeError(
    "OBJECTIVE_COLUMN_INVALID",
    `Trajectory ${trajectory}: \`${name}\` has ${column.length} numbers, the mask ${length}.`,
    { next: "Give every column of a trajectory the length of its mask.", at: { trajectory, column: name } },
  );
}
