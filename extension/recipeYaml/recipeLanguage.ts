// What an editor shows of recipe.yaml: completions and hovers, from the schema, the table of the seed stacks' knobs and, where the
// daemon has answered, the values in force. Pure: no editor, no daemon, no files.

import recipeSchema from "../../protocol/recipe.schema.json" with { type: "json" };
import { type RecipeKey, recipeKey, recipeKeysAt, type SchemaNode } from "../../protocol/recipeKeys.ts";
import { describeCounterpart, knobsNamed, knownElsewhere, seedStacks } from "../../protocol/seedKnobs.ts";
import { keyAt, yamlCursor, yamlKeys } from "./yamlCursor.ts";

const schema = recipeSchema as unknown as SchemaNode;

export interface Completion {
  readonly label: string;
  readonly kind: "section" | "key" | "value";
  /** Shown beside the label. */
  readonly detail: string;
  /** Markdown. */
  readonly documentation: string;
  /** Text that replaces [from, to) of the line; `$0` is where the cursor goes. */
  readonly snippet: string;
  readonly from: number;
  readonly to: number;
  readonly sort: string;
}

export interface ValueInForce {
  readonly key: string;
  readonly value: unknown;
  readonly origin: string;
}

export interface Hover {
  /** Markdown. */
  readonly text: string;
  readonly line: number;
  readonly from: number;
  readonly to: number;
}

function shown(value: unknown): string {
  return `\`${JSON.stringify(value)}\``;
}

function defaultOf(key: RecipeKey): string {
  if (key.default !== undefined) return `Default: ${shown(key.default)}.`;
  return key.required ? "Needed: it has no default." : key.kind === "section" ? "" : "Absent unless it is written.";
}

function elsewhere(key: RecipeKey): string {
  const known = knownElsewhere(key.path).map(
    ({ stack, path, counterpart }) =>
      `${seedStacks[stack]} \`${path}\`${counterpart.kind === "key" && counterpart.note !== null ? ` (${counterpart.note})` : ""}`,
  );
  return known.length === 0 ? "" : `Also called: ${known.join("; ")}.`;
}

function documentation(key: RecipeKey): string {
  const accepts = key.kind === "section" ? "" : `Accepts: ${key.accepts}.`;
  return [key.description, [accepts, defaultOf(key)].filter((line) => line !== "").join(" "), elsewhere(key)]
    .filter((line) => line !== "")
    .join("\n\n");
}

function keySnippet(key: RecipeKey, indent: number, flow: boolean): string {
  if (flow) return key.kind === "section" || key.kind === "map" ? `${key.name}: { $0 }` : `${key.name}: $0`;
  if (key.kind === "section" || key.kind === "map") return `${key.name}:\n${" ".repeat(indent + 2)}$0`;
  return `${key.name}: $0`;
}

/** Completions at a position, both from 0. */
export function completionsAt(text: string, line: number, column: number): Completion[] {
  const cursor = yamlCursor(text, line, column);
  const current = text.split(/\r?\n/)[line] ?? "";
  const to = column + /^[\w.-]*/.exec(current.slice(column))![0].length;
  if (cursor.place === "none") return [];
  if (cursor.place === "value") {
    const key = recipeKey(schema, [...cursor.parent, cursor.key ?? ""]);
    if (key === null) return [];
    const values = [
      ...new Set([...key.values, ...(key.default === undefined || key.kind === "section" ? [] : [key.default])]),
    ];
    const lead = current[cursor.from - 1] === ":" ? " " : "";
    return values.map((value, index) => ({
      label: typeof value === "string" ? value : JSON.stringify(value),
      kind: "value" as const,
      detail: value === key.default ? "default" : "",
      documentation: documentation(key),
      snippet: lead + (typeof value === "string" ? value : JSON.stringify(value)),
      from: cursor.from,
      to,
      sort: String(index).padStart(3, "0"),
    }));
  }
  const parent = JSON.stringify(cursor.parent);
  const present = new Set(
    yamlKeys(text)
      .filter((key) => key.line !== line || key.to < cursor.from || key.from > column)
      .filter((key) => JSON.stringify(key.path.slice(0, -1)) === parent)
      .map((key) => key.path.at(-1)),
  );
  // Behind a word that is a key already only the word is replaced.
  const isKey = /^\s*:/.test(current.slice(to));
  return recipeKeysAt(schema, cursor.parent)
    .filter((key) => !present.has(key.name))
    .map((key, index) => ({
      label: key.name,
      kind: key.kind === "section" || key.kind === "map" ? ("section" as const) : ("key" as const),
      detail:
        key.default === undefined
          ? key.required
            ? "needed"
            : key.accepts
          : `${key.accepts} = ${JSON.stringify(key.default)}`,
      documentation: documentation(key),
      snippet: isKey ? key.name : keySnippet(key, cursor.from, cursor.flow),
      from: cursor.from,
      to,
      sort: `${key.required ? 0 : 1}${String(index).padStart(3, "0")}`,
    }));
}

/** What a key means; null where no key is. `values` are what the daemon says is in force, empty when it was not asked. */
export function hoverAt(text: string, line: number, column: number, values: readonly ValueInForce[]): Hover | null {
  const found = keyAt(text, line, column);
  if (found === null) return null;
  const { from, to } = found;
  const key = recipeKey(schema, found.path);
  if (key === null) {
    const knob = knobsNamed(found.path)[0];
    if (knob === undefined) return null;
    const said = `${seedStacks[knob.stack]} knows this as \`${knob.path}\`; ${describeCounterpart(knob.counterpart)}.`;
    return { text: said, line, from, to };
  }
  const inForce = values.find((value) => value.key === key.path);
  const parts = [`**${key.path}**`, documentation(key)];
  if (inForce !== undefined) parts.push(`In force: ${shown(inForce.value)}, from ${inForce.origin}.`);
  return { text: parts.join("\n\n"), line, from, to };
}
