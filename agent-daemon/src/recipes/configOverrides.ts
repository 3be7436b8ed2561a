// The two layers that are typed instead of written in a file: environment variables ROLLSCOPE__path__to__key and arguments
// --path.to.key=value. Both read their value by the rules of YAML and keep the characters as typed.
import { type ConfigLayer, type ConfigValue, createLayer, createMap, isConfigMap, joinPath } from "./configLayer.ts";
import type { ConfigProblem, Origin } from "./configProblem.ts";
import { readYamlValue } from "./configYaml.ts";

const variablePrefix = "ROLLSCOPE__";

function set(
  layer: ConfigLayer,
  path: readonly string[],
  text: string,
  origin: Origin,
  problems: ConfigProblem[],
): void {
  const name = joinPath(path);
  if (path.length === 0 || path.some((key) => key === "")) {
    problems.push({
      code: "CONFIG_OVERRIDE_INVALID",
      severity: "error",
      path: name,
      sentence: `${origin.source} does not name a key.`,
      next: "Write every key of the path, as in training.lr.",
      origin,
    });
    return;
  }
  let map = layer.tree;
  for (const [depth, key] of path.slice(0, -1).entries()) {
    const here = joinPath(path.slice(0, depth + 1));
    let inner = map[key];
    if (inner !== undefined && !isConfigMap(inner)) {
      conflict(layer, here, name, origin, problems);
      return;
    }
    if (inner === undefined) {
      inner = createMap();
      map[key] = inner;
      layer.origins.set(here, origin);
    }
    map = inner;
  }
  const last = path.at(-1) as string;
  if (isConfigMap(map[last]) && Object.keys(map[last]).length > 0) {
    conflict(
      layer,
      [...layer.origins.keys()].find((key) => key.startsWith(`${name}.`)) ?? name,
      name,
      origin,
      problems,
    );
    return;
  }
  const value = readYamlValue(text);
  map[last] = value;
  markAll(layer, value, path, origin);
  layer.texts.set(name, text);
}

/** A flow value typed whole is the origin of everything in it. */
function markAll(layer: ConfigLayer, value: ConfigValue, path: readonly string[], origin: Origin): void {
  layer.origins.set(joinPath(path), origin);
  if (Array.isArray(value))
    for (const [index, item] of value.entries()) markAll(layer, item, [...path, `${index}`], origin);
  else if (isConfigMap(value))
    for (const key of Object.keys(value)) markAll(layer, value[key]!, [...path, key], origin);
}

function conflict(layer: ConfigLayer, first: string, second: string, origin: Origin, problems: ConfigProblem[]): void {
  problems.push({
    code: "CONFIG_CONFLICT",
    severity: "error",
    path: second,
    sentence: `${origin.source} contradicts ${layer.origins.get(first)?.source ?? first}: a key cannot have a value and keys below it.`,
    next: "Keep one of the two.",
    origin,
  });
}

/** Reads every ROLLSCOPE__… variable. Names are matched exactly, upper and lower case included. */
export function readEnvironmentLayer(environment: Readonly<Record<string, string | undefined>>): {
  layer: ConfigLayer;
  problems: ConfigProblem[];
} {
  const layer = createLayer("environment");
  const problems: ConfigProblem[] = [];
  for (const name of Object.keys(environment).sort()) {
    const text = environment[name];
    if (!name.startsWith(variablePrefix) || text === undefined) continue;
    const path = name.slice(variablePrefix.length).split("__");
    set(layer, path, text, { layer: "environment", source: name }, problems);
  }
  return { layer, problems };
}

/** True for `--path.to.key=value` and `path.to.key=value`: what the command line hands to readArgumentLayer. */
export function isOverride(argument: string): boolean {
  return /^(--)?[A-Za-z_][\w-]*(\.[\w-]+)*=/.test(argument);
}

/** Reads overrides in order; the last one of a key wins, and everything after the first `=` is the value. */
export function readArgumentLayer(overrides: readonly string[]): { layer: ConfigLayer; problems: ConfigProblem[] } {
  const layer = createLayer("command line");
  const problems: ConfigProblem[] = [];
  for (const argument of overrides) {
    const origin: Origin = { layer: "command line", source: argument };
    const equals = argument.indexOf("=");
    if (equals < 0) {
      problems.push({
        code: "CONFIG_OVERRIDE_INVALID",
        severity: "error",
        path: argument.replace(/^--/, ""),
        sentence: `${argument} has no value.`,
        next: "Write --path.to.key=value.",
        origin,
      });
      continue;
    }
    const path = argument.slice(0, equals).replace(/^--/, "").split(".");
    set(layer, path, argument.slice(equals + 1), origin, problems);
  }
  return { layer, problems };
}
