// What can be wrong with a configuration and where each value came from. Problems are collected, all of them, and shown
// at once; nothing here throws.
import type { ErrorCode } from "../../../protocol/errors.ts";

export type LayerKind = "default" | "recipe" | "profile" | "environment" | "command line";

/** Where a value was written. */
export interface Origin {
  readonly layer: LayerKind;
  /** The file, the variable's name, or the argument as typed; empty for a default. */
  readonly source: string;
  /** From 1; in files only. */
  readonly line?: number;
  /** From 1; in files only. */
  readonly column?: number;
  /** Name of the profile, in layer "profile". */
  readonly profile?: string;
}

export interface ConfigProblem {
  readonly code: ErrorCode;
  /** "note" informs and does not prevent a run. */
  readonly severity: "error" | "note";
  /** Dotted path of the key; empty when the whole file is meant. */
  readonly path: string;
  readonly sentence: string;
  /** What the person can do now. */
  readonly next: string;
  readonly origin: Origin | null;
  /** Dotted path of the key that an unknown one probably meant. */
  readonly nearest?: string;
  /** Values that the key accepts, as YAML, where there are few. */
  readonly allowed?: readonly string[];
}

/** `recipe.yaml:12:3`, `ROLLSCOPE__training__lr` or `--training.lr=x`. */
export function describeOrigin(origin: Origin): string {
  if (origin.layer === "default") return "default";
  const place = origin.line === undefined ? origin.source : `${origin.source}:${origin.line}:${origin.column ?? 1}`;
  return origin.profile === undefined ? place : `${place} (profile ${origin.profile})`;
}

/** One line for people: place, path, sentence, what to do. */
export function formatProblem(problem: ConfigProblem): string {
  const place = problem.origin === null ? "" : `${describeOrigin(problem.origin)}: `;
  return `${place}${problem.sentence} ${problem.next} [${problem.code}]`;
}
