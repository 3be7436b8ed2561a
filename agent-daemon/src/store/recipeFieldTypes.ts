// Whether values fit the types that a recipe gives to its own fields. Pure; the stores call it before they write.
import type { JsonValue } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { FieldType } from "../../../protocol/recipePlace.ts";

export type FieldTypes = { readonly [name: string]: FieldType };

/** null fits every type: the value is not known. */
export function fitsFieldType(value: JsonValue, type: FieldType): boolean {
  if (value === null || type === "json") return true;
  if (type === "integer") return typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
  if (type === "number") return typeof value === "number" || typeof value === "bigint";
  return typeof value === type;
}

/** Throws STORE_FIELD_INVALID for a field that the recipe does not name and for a value that its type refuses. */
export function checkRecordFields(
  record: string,
  fields: { readonly [name: string]: JsonValue },
  types: FieldTypes,
): void {
  for (const [name, value] of Object.entries(fields)) {
    const type = Object.hasOwn(types, name) ? types[name] : undefined;
    if (type === undefined) {
      const known = Object.keys(types).join(", ");
      throw fieldError(
        `Record ${record} has a field ${name} that recordFields of the recipe does not name`,
        known === ""
          ? "Add it to recordFields in recipe.yaml."
          : `Add it to recordFields in recipe.yaml, or use one of ${known}.`,
        { record, field: name },
      );
    }
    if (!fitsFieldType(value, type)) {
      throw fieldError(
        `Record ${record} has ${describe(value)} in field ${name}, which is ${type} in the recipe`,
        "Return a value of that type from evaluate, or change the type in recordFields.",
        { record, field: name },
      );
    }
  }
}

/** Throws STORE_FIELD_INVALID when a field of taskSchema is missing or has another type. */
export function checkTaskFields(
  task: string,
  payload: { readonly [name: string]: JsonValue },
  types: FieldTypes,
): void {
  for (const [name, type] of Object.entries(types)) {
    const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
    if (value !== undefined && fitsFieldType(value, type)) continue;
    throw fieldError(
      `Task ${task} has ${value === undefined ? "no value" : describe(value)} in field ${name}, which is ${type} in the recipe`,
      "Correct the row in the task file, or taskSchema in recipe.yaml.",
      { task, field: name },
    );
  }
}

export function fieldError(sentence: string, next: string, at: { readonly [key: string]: string }): RollscopeError {
  return new RollscopeError("STORE_FIELD_INVALID", `${sentence}.`, { next, at });
}

function describe(value: JsonValue): string {
  if (value === null) return "null";
  if (typeof value === "object") return Array.isArray(value) ? "a list" : "an object";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
