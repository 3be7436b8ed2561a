// Translates a configuration of AgentRL or AxisRL into a recipe, and accounts for every knob that stands in it: translated, or why
// not. Pure: text in, text out; what the knobs mean is protocol/seedKnobs.ts, how values change is seedValues.ts.
import { stringify } from "yaml";
import { recipeSchema } from "../../../protocol/recipe.ts";
import { describeCounterpart, type SeedStack, seedKnob, seedStacks } from "../../../protocol/seedKnobs.ts";
import { type ConfigMap, createLayer, createMap, isConfigMap, joinPath, removeAt, valueAt } from "./configLayer.ts";
import type { ConfigProblem } from "./configProblem.ts";
import { resolveLayers } from "./configResolve.ts";
import { checkRules } from "./configRules.ts";
import { checkObjectiveRules } from "./objectiveRules.ts";
import { readSeedConfig, type SeedSetting } from "./seedConfig.ts";
import { seedDefaults, seedValues } from "./seedValues.ts";

/** What became of one setting. */
export interface TranslatedKnob {
  readonly knob: string;
  readonly value: unknown;
  readonly line: number;
  readonly outcome: "translated" | "refused" | "later" | "unknown" | "unread";
  /** Our keys that it set, each with its value. */
  readonly set: Readonly<Record<string, unknown>>;
  /** How it differs, or why there is no counterpart. */
  readonly note: string | null;
}

export interface Translation {
  /** Text of recipe.yaml, without what cannot be known from the file. */
  readonly yaml: string;
  readonly knobs: readonly TranslatedKnob[];
  /** What stands in the way of a run of it as it is: keys that must be added, values that do not fit. */
  readonly problems: readonly ConfigProblem[];
}

/** Keys that belong to a recipe in this order, whatever the order of the file was. */
const order = ["name", "model", "engine", "data", "sampling", "objective", "advantages", "training", "evaluation"];

function put(tree: ConfigMap, key: string, value: unknown): void {
  const path = key.split(".");
  let map = tree;
  for (const name of path.slice(0, -1)) {
    const inner = map[name];
    if (isConfigMap(inner)) map = inner;
    else {
      const made = createMap();
      map[name] = made;
      map = made;
    }
  }
  map[path.at(-1)!] = value as ConfigMap[string];
}

function leaves(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [joinPath(path)];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
}

/** Removes a key and the sections that are then empty. */
function drop(tree: ConfigMap, path: readonly string[]): void {
  removeAt(tree, path);
  const parent = valueAt(tree, path.slice(0, -1));
  if (path.length > 1 && isConfigMap(parent) && Object.keys(parent).length === 0) drop(tree, path.slice(0, -1));
}

function translateOne(stack: SeedStack, setting: SeedSetting, all: ReadonlyMap<string, unknown>): TranslatedKnob {
  const { path, value, line } = setting;
  const knob = seedKnob(stack, path);
  const base = { knob: joinPath(path), value, line, set: {} };
  if (knob === null)
    return { ...base, outcome: "unknown", note: `${seedStacks[stack]} has no such knob that is known here` };
  const { counterpart } = knob;
  if (counterpart.kind !== "key") return { ...base, outcome: counterpart.kind, note: describeCounterpart(counterpart) };
  const converted = (seedValues[stack][knob.path] ?? identity(counterpart.key))(value, (name) => all.get(name));
  if (typeof converted === "string") return { ...base, outcome: "refused", note: converted };
  return { ...base, outcome: "translated", set: converted, note: counterpart.note };
}

function identity(key: string) {
  return (value: unknown) => ({ [key]: value });
}

/**
 * Translates the text of a configuration file.
 *
 * @throws CONFIG_SYNTAX when it is neither a YAML or JSON mapping nor a list of --key value
 */
export function translateSeedConfig(stack: SeedStack, text: string, file: string): Translation {
  const settings = readSeedConfig(text, file);
  const given = new Map<string, unknown>(settings.map(({ path, value }) => [joinPath(path), value]));
  const all = new Map([...Object.entries(seedDefaults[stack]), ...given]);
  const translated = settings.map((setting) => translateOne(stack, setting, all));
  const tree = createMap();
  // Defaults first: where the two stacks differ from ours, a file that says nothing still means something.
  for (const [knob, value] of Object.entries(seedDefaults[stack])) {
    if (given.has(knob)) continue;
    const { set } = translateOne(stack, { path: knob.split("."), value, line: 0 }, all);
    for (const [key, written] of Object.entries(set)) put(tree, key, written);
  }
  for (const { set } of translated) for (const [key, value] of Object.entries(set)) put(tree, key, value);
  if (valueAt(tree, ["advantages", "estimator"]) === undefined) {
    put(tree, "advantages.estimator", stack === "agentrl" ? "group_mean" : "group_normalized");
    // AxisRL cuts normalised advantages there, without a knob.
    if (stack === "axisrl") put(tree, "advantages.clip", 5);
  }

  const unread = unreadKeys(tree, file);
  for (const key of unread) drop(tree, key.split("."));
  const knobs = translated.map((knob) => withoutUnread(knob, unread));
  const sorted = createMap();
  for (const key of order) if (tree[key] !== undefined) sorted[key] = tree[key]!;
  const { config: _config, problems } = resolve(tree, file);
  return { yaml: stringify(plain(sorted)), knobs, problems };
}

function withoutUnread(knob: TranslatedKnob, unread: ReadonlySet<string>): TranslatedKnob {
  const names = Object.keys(knob.set);
  if (names.length === 0 || names.some((key) => !unread.has(key))) return knob;
  return { ...knob, outcome: "unread", set: {}, note: `nothing reads ${names.join(", ")} in this configuration` };
}

function resolve(tree: ConfigMap, file: string) {
  const layer = createLayer("recipe");
  Object.assign(layer.tree, tree);
  for (const key of leaves(tree)) layer.origins.set(key, { layer: "recipe", source: file });
  return resolveLayers(recipeSchema, [layer], file);
}

/** Written keys that nothing reads, asked with stand-ins for what only the person can say. */
function unreadKeys(tree: ConfigMap, file: string): Set<string> {
  const trial = createMap();
  Object.assign(trial, tree);
  if (trial["name"] === undefined) trial["name"] = "translated";
  if (trial["model"] === undefined) trial["model"] = { source: "./model" };
  if (!isConfigMap(trial["data"]) || trial["data"]["train"] === undefined)
    trial["data"] = { ...(isConfigMap(trial["data"]) ? trial["data"] : {}), train: "train.jsonl", heldOutCount: 1 };
  const { config } = resolve(trial, file);
  if (config === null) return new Set();
  const written = leaves(tree);
  const isWritten = (path: string) => written.some((key) => key === path || key.startsWith(`${path}.`));
  const findings = [...checkRules(config, isWritten), ...checkObjectiveRules(config, isWritten)];
  return new Set(findings.filter(({ code }) => code === "CONFIG_KEY_UNREAD").map(({ path }) => path));
}

/** With a prototype, which the YAML writer expects. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}
