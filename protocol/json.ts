// The zod schema of a JSON value whose integers may be bigint. It checks and never copies, so large payloads stay cheap.
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
