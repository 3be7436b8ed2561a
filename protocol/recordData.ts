// One row handed to training, written by the step that used it. A row whose step was never committed, or was voided by a
// resume, is void and counts for nothing.
import { z } from "zod";
import { columnSchema } from "./column.ts";

const id = z.string().min(1);
const count = z.int().min(0);
const column = columnSchema.optional();

/** Columns of a row, one element per occurrence; a column that the objective does not use is absent. */
export const recordDataColumnsSchema = z.strictObject({
  /** u8, 1 = trainable. Absent: all are. Masked elements of the other columns may hold NaN. */
  mask: column,
  /** Trainer's log-probability when the window began, and after the step where it was computed. */
  old: column,
  new: column,
  reference: column,
  entropy: column,
  oldValue: column,
  newValue: column,
  tokenReward: column,
  return: column,
  advantage: column,
  /** Product of the corrections' weights. */
  weight: column,
  /** i32, optimizer steps between sampling and training. */
  staleness: column,
});
export type RecordDataColumns = z.infer<typeof recordDataColumnsSchema>;
export type RecordDataColumnName = keyof RecordDataColumns;

/** Elements [start, start + length) of every column belong to output tokens [from, from + length) of `call`. */
export const callSpanSchema = z.strictObject({ call: id, from: count, start: count, length: count });

export const recordDataDocumentSchema = z.strictObject({
  id,
  run: id,
  /** Id of the step document. */
  step: id,
  record: id,
  window: count,
  /** Which pass over the window, from 0. */
  pass: count,
  created: z.number(),
  /** Last call of the trajectory that the row is; a record with branches has several. */
  leaf: id,
  /** Occurrences in the row: the length of its columns. */
  occurrences: count,
  spans: z.array(callSpanSchema),
  columns: recordDataColumnsSchema,
});
export type RecordDataDocument = z.infer<typeof recordDataDocumentSchema>;
