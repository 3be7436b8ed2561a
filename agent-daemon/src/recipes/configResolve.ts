// Lays layers over each other and parses the result with a schema. The value comes out with the origin of each of its
// leaves, or not at all: then every problem is listed with the place where it was written.
import type { z } from "zod";
import { describeCounterpart, knobsNamed, type SeedKnob, seedStacks } from "../../../protocol/seedKnobs.ts";
import { knownKeys, nearestKey } from "./configKeys.ts";
import {
  type ConfigLayer,
  type ConfigMap,
  joinPath,
  mergeLayers,
  removeAt,
  replaceAt,
  valueAt,
} from "./configLayer.ts";
import type { ConfigProblem, Origin } from "./configProblem.ts";

export interface Resolved<T> {
  /** null when there is a problem of severity error. */
  readonly config: T | null;
  /** The same where keys that the schema does not know are the only problems: what it makes of the others. */
  readonly known: T | null;
  /** Origin of every leaf of the configuration, by dotted path. Lists are leaves. */
  readonly origins: ReadonlyMap<string, Origin>;
  readonly problems: readonly ConfigProblem[];
}

type Issue = z.core.$ZodIssue;

const defaultOrigin: Origin = { layer: "default", source: "" };

/** Origin of a path, or of the closest map around it that was written somewhere. */
export function originOf(origins: ReadonlyMap<string, Origin>, path: readonly PropertyKey[]): Origin | null {
  for (let length = path.length; length > 0; length--) {
    const origin = origins.get(joinPath(path.slice(0, length)));
    if (origin !== undefined) return origin;
  }
  return null;
}

/** Issues of a union are those of the variant that came closest: the one with the fewest problems. */
function flatten(issues: readonly Issue[], prefix: readonly PropertyKey[] = []): Issue[] {
  return issues.flatMap((issue) => {
    const path = [...prefix, ...issue.path];
    if (issue.code !== "invalid_union" || issue.errors.length === 0) return [{ ...issue, path } as Issue];
    const variants = issue.errors.map((errors) => flatten(errors, path));
    const isWrongType = (found: Issue[]) =>
      found.some((i) => i.code === "invalid_type" && i.path.length === path.length);
    const fitting = variants.filter((found) => !isWrongType(found));
    if (fitting.length === 0) return [{ ...issue, path } as Issue];
    return fitting.reduce((best, found) => (found.length < best.length ? found : best));
  });
}

function show(value: unknown): string {
  // JSON has no word for NaN and the infinities.
  if (typeof value === "bigint" || typeof value === "number") return String(value);
  if (value === undefined) return "nothing";
  const text =
    JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? String(inner) : inner)) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function expectation(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return `expected ${issue.expected === "int" ? "an integer" : issue.expected === "number" ? "a finite number" : issue.expected}`;
    case "invalid_value":
      return issue.values.length === 1
        ? `expected ${show(issue.values[0])}`
        : `expected one of ${issue.values.map(show).join(", ")}`;
    case "too_small":
      return `must be ${issue.inclusive ? "at least" : "above"} ${issue.minimum}${sizeWord(issue.origin)}`;
    case "too_big":
      return `must be ${issue.inclusive ? "at most" : "below"} ${issue.maximum}${sizeWord(issue.origin)}`;
    default:
      return issue.message;
  }
}

/** The message that a schema wrote itself, which knows more than the kind of issue does. */
function ownMessage(issue: Issue): string | null {
  if (issue.code === "custom" || issue.code === "invalid_format") return issue.message;
  return /^(Invalid|Too (small|big)|Unrecognized)/.test(issue.message) ? null : issue.message;
}

function sizeWord(origin: string): string {
  if (origin === "string") return " characters long";
  return origin === "array" || origin === "set" ? " items long" : "";
}

/** Words that say little: as the last word of a knob of theirs they are no sign that it was meant. */
const plainWords: ReadonlySet<string> = new Set(["name", "model", "enabled", "backend", "alpha", "seed", "stop"]);

/** The knob of a seed stack that an unknown key is, unless a key of ours is as close. */
function knobMeant(path: readonly string[], similar: string | null): SeedKnob | null {
  const knob = knobsNamed(path)[0];
  if (knob === undefined || (plainWords.has(path.at(-1) ?? "") && knob.path !== path.join("."))) return null;
  if (knob.counterpart.kind === "key") return knob.counterpart.key === similar ? null : knob;
  return similar === null ? knob : null;
}

/** Turns the issues of a schema into problems that name place, key and nearest key. */
export function problemsOf(
  schema: z.ZodType,
  issues: readonly Issue[],
  tree: ConfigMap,
  origins: ReadonlyMap<string, Origin>,
  file: string,
): ConfigProblem[] {
  const keys = knownKeys(schema);
  const whole: Origin = { layer: "recipe", source: file, line: 1, column: 1 };
  return flatten(issues).flatMap((issue): ConfigProblem[] => {
    const name = joinPath(issue.path);
    if (issue.code === "unrecognized_keys") {
      const path = issue.path.map(String);
      return issue.keys.map((key) => {
        const similar = nearestKey(keys, path, key);
        const knob = knobMeant([...path, key], similar);
        const nearest = knob?.counterpart.kind === "key" ? knob.counterpart.key : similar;
        const known = keys.at(path);
        const here = joinPath([...path, key]);
        return {
          code: "CONFIG_KEY_UNKNOWN",
          severity: "error",
          path: here,
          sentence: `There is no key ${here}.`,
          next:
            knob !== null
              ? `${seedStacks[knob.stack]} knows it as ${knob.path}; ${describeCounterpart(knob.counterpart)}.`
              : nearest !== null
                ? `Did you mean ${nearest}?`
                : known.length > 0
                  ? `Known here: ${known.join(", ")}.`
                  : "Nothing can be set here yet; remove it.",
          origin: originOf(origins, [...path, key]) ?? whole,
          ...(nearest === null ? {} : { nearest }),
        };
      });
    }
    const value = valueAt(tree, issue.path);
    const origin = originOf(origins, issue.path) ?? whole;
    const allowed =
      issue.code === "invalid_value" ? { allowed: issue.values.map((value) => JSON.stringify(value) ?? "null") } : {};
    const own = ownMessage(issue);
    if (own !== null) {
      return [
        {
          code: value === undefined ? "CONFIG_KEY_MISSING" : "CONFIG_VALUE_INVALID",
          severity: "error",
          path: name,
          sentence: `${name}: ${own}.`,
          next: value === undefined ? "Add the key." : "Correct the value.",
          origin,
          ...allowed,
        },
      ];
    }
    if (value === undefined) {
      return [
        {
          code: "CONFIG_KEY_MISSING",
          severity: "error",
          path: name,
          sentence: `${name} is missing (${expectation(issue)}).`,
          next: "Add it; it has no default.",
          origin,
          ...allowed,
        },
      ];
    }
    const quoted = issue.code === "invalid_type" && issue.expected === "string" ? " Put quotes around text." : "";
    return [
      {
        code: "CONFIG_VALUE_INVALID",
        severity: "error",
        path: name,
        sentence: `${name} is ${show(value)}: ${expectation(issue)}.`,
        next: `Correct the value.${quoted}`,
        origin,
        ...allowed,
      },
    ];
  });
}

/**
 * Parses the layers, lowest first. Two rules make typed layers work like a file: where the schema wants text, the
 * characters of a variable or argument are taken as typed; and null above the recipe, where the schema does not accept it,
 * takes the key back to its default.
 *
 * @param file named when a problem lies in no particular line
 */
export function resolveLayers<Schema extends z.ZodType>(
  schema: Schema,
  layers: readonly ConfigLayer[],
  file: string,
): Resolved<z.infer<Schema>> {
  const { tree, origins, texts } = mergeLayers(layers);
  keepPlainText(schema, tree, texts);
  let parsed = schema.safeParse(tree);
  for (let round = 0; !parsed.success && round < 100; round++) {
    let changed = false;
    for (const issue of flatten(parsed.error.issues)) {
      if (issue.code === "unrecognized_keys") continue;
      const name = joinPath(issue.path);
      const value = valueAt(tree, issue.path);
      const text = texts.get(name);
      if (value === null && ["profile", "environment", "command line"].includes(origins.get(name)?.layer ?? "")) {
        removeAt(tree, issue.path);
        origins.delete(name);
        texts.delete(name);
        changed = true;
      } else if (issue.code === "invalid_type" && issue.expected === "string" && text !== undefined && value !== text) {
        replaceAt(tree, issue.path, text);
        changed = true;
      }
    }
    if (!changed) break;
    parsed = schema.safeParse(tree);
  }
  if (!parsed.success) {
    const problems = problemsOf(schema, parsed.error.issues, tree, origins, file);
    const known = parseKnown(schema, parsed.error.issues, tree);
    return { config: null, known, origins: known === null ? origins : leafOrigins(known, origins), problems };
  }
  return { config: parsed.data, known: parsed.data, origins: leafOrigins(parsed.data, origins), problems: [] };
}

/** A misspelt key shall not hide what else is wrong; after any other problem the rest would only be guessed. */
function parseKnown<Schema extends z.ZodType>(
  schema: Schema,
  issues: readonly Issue[],
  tree: ConfigMap,
): z.infer<Schema> | null {
  const rest = structuredClone(tree);
  for (const issue of flatten(issues)) {
    if (issue.code !== "unrecognized_keys") return null;
    for (const key of issue.keys) removeAt(rest, [...issue.path, key]);
  }
  const parsed = schema.safeParse(rest);
  return parsed.success ? parsed.data : null;
}

/** YAML takes blanks off plain text and folds its lines; where text is wanted it is taken as typed. Quotes mean YAML. */
function keepPlainText(schema: z.ZodType, tree: ConfigMap, texts: ReadonlyMap<string, string>): void {
  for (const [name, text] of texts) {
    const path = name.split(".");
    const value = valueAt(tree, path);
    if (typeof value !== "string" || value === text || /^\s*['"]/.test(text)) continue;
    replaceAt(tree, path, text);
    const parsed = schema.safeParse(tree);
    const refused = !parsed.success && flatten(parsed.error.issues).some((issue) => joinPath(issue.path) === name);
    if (refused) replaceAt(tree, path, value);
  }
}

function leafOrigins(config: unknown, written: ReadonlyMap<string, Origin>): Map<string, Origin> {
  const leaves = new Map<string, Origin>();
  const visit = (value: unknown, path: readonly string[]) => {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      for (const [key, inner] of Object.entries(value)) visit(inner, [...path, key]);
      return;
    }
    leaves.set(joinPath(path), written.get(joinPath(path)) ?? defaultOrigin);
  };
  visit(config, []);
  return leaves;
}
