// Conditions of a query as SQL clauses with their values. Names come from this program or passed a pattern; what a person
// typed only ever becomes a bound value.
import type { FieldCondition, Range } from "./interface.ts";
import type { SqlValue } from "./sqliteConnection.ts";

export interface Clause {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

export type Condition = SqlValue | readonly SqlValue[] | Range;

/** Clauses for columns whose condition is not undefined. */
export function clausesOf(conditions: { readonly [column: string]: Condition | undefined }): Clause[] {
  return Object.entries(conditions).flatMap(([column, condition]) => clauseOf(column, condition));
}

function clauseOf(column: string, condition: Condition | undefined): Clause[] {
  if (condition === undefined) return [];
  if (condition === null) return [{ sql: `${column} IS NULL`, values: [] }];
  if (Array.isArray(condition)) {
    return [{ sql: `${column} IN (SELECT value FROM json_each(?))`, values: [JSON.stringify(condition)] }];
  }
  return isRange(condition)
    ? rangeClauses(column, condition)
    : [{ sql: `${column} = ?`, values: [condition as SqlValue] }];
}

/** A condition on one of the recipe's own fields. `name` must have passed the pattern of field names. */
export function fieldClauses(name: string, condition: FieldCondition): Clause[] {
  const expression = fieldExpression(name);
  if (typeof condition === "object") return rangeClauses(expression, condition);
  if (typeof condition === "bigint") return [{ sql: `${expression} = ?`, values: [storedInteger(condition)] }];
  return [{ sql: `${expression} = ?`, values: [condition] }];
}

/** Must be letter for letter what the index of the field was made with. */
export function fieldExpression(name: string): string {
  return `json_extract(doc, '$.fields.${name}')`;
}

/** As documentText writes it, so that SQLite compares all digits: integers beyond 64 bits stand there as an object. */
function storedInteger(value: bigint): SqlValue {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  return BigInt.asIntN(64, value) === value ? value : JSON.stringify({ $int: `${value}` });
}

function rangeClauses(column: string, range: Range): Clause[] {
  const clauses: Clause[] = [];
  if (range.min !== undefined) clauses.push({ sql: `${column} >= ?`, values: [range.min] });
  if (range.max !== undefined) clauses.push({ sql: `${column} <= ?`, values: [range.max] });
  return clauses.length === 0 ? [{ sql: `${column} IS NOT NULL`, values: [] }] : clauses;
}

function isRange(condition: Condition): condition is Range {
  return (
    typeof condition === "object" &&
    condition !== null &&
    !(condition instanceof Uint8Array) &&
    !Array.isArray(condition)
  );
}
