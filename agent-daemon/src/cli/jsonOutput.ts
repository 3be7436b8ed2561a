// What --json prints: one document a command, the same keys in every release of a major version. Integers of any size stay
// exact; NaN and the infinities, which JSON does not have, are the words "NaN", "Infinity" and "-Infinity".
import { stringify } from "lossless-json";

function plain(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value as Float32Array, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const copy: { [key: string]: unknown } = {};
  for (const [key, inner] of Object.entries(value)) if (inner !== undefined) copy[key] = plain(inner);
  return copy;
}

export function formatJson(document: unknown): string {
  return stringify(plain(document), null, 2) ?? "null";
}
