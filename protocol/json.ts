// JSON values whose integers may be bigint: their zod schema, which checks and never copies, so that large payloads stay cheap; how
// they travel where plain JSON is spoken; and their text, with every digit.
import { z } from "zod";
import type { JsonValue } from "./agent.ts";

/** Whether `value` is made of strings, finite numbers, bigints, booleans, nulls, arrays and plain objects only. */
export function isJsonValue(value: unknown): value is JsonValue {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "bigint":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object": {
      if (value === null) return true;
      if (Array.isArray(value)) return value.every(isJsonValue);
      const prototype = Object.getPrototypeOf(value);
      return (prototype === Object.prototype || prototype === null) && Object.values(value).every(isJsonValue);
    }
    default:
      return false;
  }
}

export const jsonValueSchema = z.custom<JsonValue>(isJsonValue, "not a JSON value");

export const jsonObjectSchema = z.custom<{ [key: string]: JsonValue }>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value) && isJsonValue(value),
  "not a JSON object",
);

/** Like the store's documents: an integer that a number cannot hold is {"$int": digits}, an object that looks so is {"$object": it}. */
const marks = /^\$(?:int|object)$/;

function isMarked(value: object): boolean {
  const keys = Object.keys(value);
  return keys.length === 1 && marks.test(keys[0]!);
}

/** The value without bigint, for a wire that speaks plain JSON; the same value where there is none. `jsonText` reads it. */
export function withoutBigints<T extends JsonValue>(value: T): T {
  return plain(value) as T;
}

function plain(value: JsonValue): JsonValue {
  if (typeof value === "bigint") return { $int: String(value) };
  if (typeof value !== "object" || value === null) return value;
  let changed = false;
  const copied = (item: JsonValue) => {
    const copy = plain(item);
    changed ||= copy !== item;
    return copy;
  };
  if (Array.isArray(value)) {
    const items = value.map(copied);
    return changed ? items : value;
  }
  const entries = Object.entries(value).map(([key, item]) => [key, copied(item)] as const);
  const object = changed ? Object.fromEntries(entries) : value;
  return isMarked(value) ? { $object: object } : object;
}

/** Text of a value as `withoutBigints` gives it, integers with all their digits, two spaces a level. */
export function jsonText(value: unknown, indent = ""): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const inner = `${indent}  `;
  const block = (open: string, lines: readonly string[], close: string) =>
    lines.length === 0
      ? `${open}${close}`
      : `${open}\n${lines.map((line) => inner + line).join(",\n")}\n${indent}${close}`;
  if (Array.isArray(value))
    return block(
      "[",
      value.map((item) => jsonText(item, inner)),
      "]",
    );
  const { $int: digits, $object: object } = value as { readonly $int?: unknown; readonly $object?: unknown };
  if (isMarked(value) && typeof digits === "string" && /^-?\d+$/.test(digits)) return digits;
  const shown = isMarked(value) && typeof object === "object" && object !== null ? object : value;
  return block(
    "{",
    Object.entries(shown).map(([key, item]) => `${JSON.stringify(key)}: ${jsonText(item, inner)}`),
    "}",
  );
}
