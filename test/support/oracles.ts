// Reads reference values and makes sure that masked numbers cannot matter.
import { readFileSync } from "node:fs";
import { oraclesPath } from "./paths.ts";

export function readOracle<T>(...parts: string[]): T {
  return JSON.parse(readFileSync(oraclesPath(...parts), "utf8")) as T;
}

/** The sequence with NaN in every array wherever its mask is 0. */
export function poisoned<T extends { mask: ArrayLike<number> }>(sequence: T): T {
  const entries = Object.entries(sequence).map(([key, value]) => {
    if (key === "mask" || !Array.isArray(value)) return [key, value];
    return [key, value.map((x: unknown, i: number) => (sequence.mask[i] === 0 ? Number.NaN : x))];
  });
  return Object.fromEntries(entries) as T;
}
