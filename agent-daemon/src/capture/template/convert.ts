// Plain JavaScript data to template values, without losing what a number's text said.
import { isLosslessNumber } from "lossless-json";
import { type Dict, typeFault, type Value } from "./values.ts";

/**
 * A whole number becomes an integer, any other number a float; a bigint or a number of lossless-json keeps its own kind
 * (1.0 stays a float). A Map is a template value already, as parseJson makes them, and passes as it is. Keys whose value is
 * undefined are left out, as JSON would.
 */
export function toTemplateValue(data: unknown): Value {
  if (data === null || typeof data === "boolean" || typeof data === "bigint" || typeof data === "string") return data;
  if (typeof data === "number") return Number.isSafeInteger(data) && !Object.is(data, -0) ? BigInt(data) : data;
  if (isLosslessNumber(data)) {
    const text = data.toString();
    return /^-?\d+$/.test(text) ? BigInt(text) : Number(text);
  }
  if (Array.isArray(data)) return data.map((item) => (item === undefined ? null : toTemplateValue(item)));
  if (typeof data !== "object") throw typeFault(`a ${typeof data} cannot be given to a template`);
  if (data instanceof Map) return data as Dict;
  const entries = Object.entries(data).filter(([, value]) => value !== undefined);
  return new Map(entries.map(([key, value]): [Value, Value] => [key, toTemplateValue(value)]));
}
