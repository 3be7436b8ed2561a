// Reads what a recipe's evaluate returned. A missing score means ungraded and is never taken for 0; anything that is not a
// finite number is an error that says what came instead.
import type { JsonValue, ScoreDetails } from "../../../protocol/agent.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { isJsonValue } from "../../../protocol/json.ts";

export interface ReadScore {
  /** null = ungraded. */
  readonly score: number | null;
  readonly breakdown: { readonly [name: string]: number };
  readonly fields: { readonly [name: string]: JsonValue };
  readonly labels: readonly string[];
}

function invalid(sentence: string): RollscopeError {
  return new RollscopeError("SAMPLING_SCORE_INVALID", sentence, {
    next: "Return a finite number, { score, breakdown, fields, labels }, or null when the record cannot be graded.",
  });
}

/** @throws SAMPLING_SCORE_INVALID */
export function readScore(returned: unknown): ReadScore {
  if (returned === null || returned === undefined) return { score: null, breakdown: {}, fields: {}, labels: [] };
  if (typeof returned === "number") return { score: finite(returned, "score"), breakdown: {}, fields: {}, labels: [] };
  if (typeof returned !== "object" || !("score" in returned)) {
    throw invalid(`evaluate returned ${typeof returned}, which is not a score.`);
  }
  const details = returned as Partial<ScoreDetails>;
  const score = details.score === null || details.score === undefined ? null : finite(details.score, "score");
  const breakdown: { [name: string]: number } = {};
  for (const [name, value] of Object.entries(details.breakdown ?? {})) breakdown[name] = finite(value, name);
  const fields = details.fields ?? {};
  for (const [name, value] of Object.entries(fields)) {
    if (!isJsonValue(value)) throw invalid(`evaluate returned a field ${name} that is not a JSON value.`);
  }
  const labels = details.labels ?? [];
  if (!Array.isArray(labels) || labels.some((label) => typeof label !== "string")) {
    throw invalid("evaluate returned labels that are not a list of text.");
  }
  return { score, breakdown, fields: { ...fields }, labels: [...labels] };
}

function finite(value: unknown, name: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw invalid(`evaluate returned ${name} = ${String(value)}, which is not a finite number.`);
}
