// One layer of configuration: a tree of plain values with the place where each was written, and how layers are laid over
// each other. Maps merge key by key, everything else replaces. Knows no key by name.
import type { LayerKind, Origin } from "./configProblem.ts";

export type ConfigScalar = string | number | bigint | boolean | null;
export type ConfigValue = ConfigScalar | ConfigValue[] | ConfigMap;
/** Without a prototype, so that a key named __proto__ is a key like any other. */
export interface ConfigMap {
  [key: string]: ConfigValue;
}

export interface ConfigLayer {
  readonly kind: LayerKind;
  readonly tree: ConfigMap;
  /** By dotted path, for maps as well as for values. */
  readonly origins: Map<string, Origin>;
  /** The characters as typed, where a value came without a type: environment and command line. */
  readonly texts: Map<string, string>;
}

export function createMap(): ConfigMap {
  return Object.create(null) as ConfigMap;
}

export function createLayer(kind: LayerKind): ConfigLayer {
  return { kind, tree: createMap(), origins: new Map(), texts: new Map() };
}

export function isConfigMap(value: ConfigValue | undefined): value is ConfigMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function joinPath(path: readonly PropertyKey[]): string {
  return path.map(String).join(".");
}

/** The value at a path of keys and list positions, or undefined. */
export function valueAt(tree: ConfigValue | undefined, path: readonly PropertyKey[]): ConfigValue | undefined {
  let value: ConfigValue | undefined = tree;
  for (const key of path) {
    if (Array.isArray(value)) value = value[Number(key)];
    else if (isConfigMap(value)) value = value[String(key)];
    else return undefined;
  }
  return value;
}

export function removeAt(tree: ConfigMap, path: readonly PropertyKey[]): void {
  const parent = valueAt(tree, path.slice(0, -1));
  const last = path.at(-1);
  if (isConfigMap(parent) && last !== undefined) delete parent[String(last)];
}

export function replaceAt(tree: ConfigMap, path: readonly PropertyKey[], value: ConfigValue): void {
  const parent = valueAt(tree, path.slice(0, -1));
  const last = path.at(-1);
  if (last === undefined) return;
  if (Array.isArray(parent)) parent[Number(last)] = value;
  else if (isConfigMap(parent)) parent[String(last)] = value;
}

function copyValue(value: ConfigValue): ConfigValue {
  if (Array.isArray(value)) return value.map(copyValue);
  if (!isConfigMap(value)) return value;
  const copy = createMap();
  for (const key of Object.keys(value)) copy[key] = copyValue(value[key]!);
  return copy;
}

/** Lays `over` on `under`, in order; neither input is changed, and the result shares nothing with them. */
export function mergeLayers(layers: readonly ConfigLayer[]): Pick<ConfigLayer, "tree" | "origins" | "texts"> {
  const tree = createMap();
  const origins = new Map<string, Origin>();
  const texts = new Map<string, string>();

  const forgetBelow = (path: string) => {
    for (const map of [origins, texts])
      for (const key of map.keys()) if (key === path || key.startsWith(`${path}.`)) map.delete(key);
  };
  const lay = (layer: ConfigLayer, target: ConfigMap, source: ConfigMap, path: readonly string[]) => {
    for (const key of Object.keys(source)) {
      const value = source[key]!;
      const here = [...path, key];
      const name = joinPath(here);
      const present = target[key];
      if (isConfigMap(value) && isConfigMap(present)) {
        lay(layer, present, value, here);
        continue;
      }
      forgetBelow(name);
      target[key] = copyValue(value);
      for (const [from, into] of [
        [layer.origins, origins],
        [layer.texts, texts],
      ] as [Map<string, unknown>, Map<string, unknown>][])
        for (const [at, what] of from) if (at === name || at.startsWith(`${name}.`)) into.set(at, what);
    }
  };
  for (const layer of layers) lay(layer, tree, layer.tree, []);
  return { tree, origins, texts };
}
