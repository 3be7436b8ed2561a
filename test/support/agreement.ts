// Agreement of doubles with reference values: |a−b| ≤ 1e-9·max(|a|,|b|) + 1e-12; −0 equals 0; null only equals null.

export function agrees(actual: number | null | undefined, expected: number | null | undefined): boolean {
  if (typeof actual !== "number" || typeof expected !== "number") return actual === expected;
  return Math.abs(actual - expected) <= 1e-9 * Math.max(Math.abs(actual), Math.abs(expected)) + 1e-12;
}

/** Where nested arrays of numbers disagree, as sentences; empty when they agree in shape and value. */
export function disagreements(actual: unknown, expected: unknown, path = ""): string[] {
  if (isList(actual) && isList(expected)) {
    if (actual.length !== expected.length) return [`${path}: length ${actual.length} for ${expected.length}`];
    return Array.from(expected).flatMap((value, i) => disagreements(actual[i], value, `${path}[${i}]`));
  }
  const same = agrees(actual as number | null, expected as number | null);
  return same ? [] : [`${path}: ${String(actual)} for ${String(expected)}`];
}

function isList(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && "length" in value);
}
