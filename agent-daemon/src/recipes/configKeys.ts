// Which keys a schema knows, and which of them a misspelt key probably meant. Read from the JSON Schema of the schema, so
// that there is one list.
import { distance } from "fastest-levenshtein";
import { z } from "zod";

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: boolean | SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
  readonly allOf?: readonly SchemaNode[];
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, SchemaNode>>;
}

export interface KnownKeys {
  /** Keys that may stand at a path; empty where any may. */
  at(path: readonly string[]): string[];
  /** Dotted paths of all keys. */
  readonly all: readonly string[];
}

const cache = new WeakMap<z.ZodType, KnownKeys>();

/** The keys that `schema` accepts, in every variant of its unions. */
export function knownKeys(schema: z.ZodType): KnownKeys {
  const known = cache.get(schema);
  if (known) return known;
  const root = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as SchemaNode;

  const variants = (node: SchemaNode): SchemaNode[] => {
    if (node.$ref !== undefined) {
      const target = root.$defs?.[node.$ref.replace("#/$defs/", "")];
      return target === undefined ? [] : variants(target);
    }
    const inner = [...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])];
    return [node, ...inner.flatMap(variants)];
  };
  const propertiesOf = (nodes: readonly SchemaNode[]): Map<string, SchemaNode[]> => {
    const found = new Map<string, SchemaNode[]>();
    for (const node of nodes)
      for (const [key, value] of Object.entries(node.properties ?? {}))
        found.set(key, [...(found.get(key) ?? []), ...variants(value)]);
    return found;
  };
  const all: string[] = [];
  const collect = (nodes: readonly SchemaNode[], path: readonly string[]) => {
    if (path.length > 8) return;
    for (const [key, inner] of propertiesOf(nodes)) {
      all.push([...path, key].join("."));
      collect(inner, [...path, key]);
    }
  };
  collect(variants(root), []);

  const keys: KnownKeys = {
    all,
    at(path) {
      let nodes = variants(root);
      for (const key of path) {
        const next = propertiesOf(nodes).get(key);
        if (next === undefined) return [];
        nodes = next;
      }
      return [...propertiesOf(nodes).keys()];
    },
  };
  cache.set(schema, keys);
  return keys;
}

/** clip_low, clip-low and ClipLow are one spelling. */
function fold(key: string): string {
  return key.toLowerCase().replace(/[_-]/g, "");
}

/** Most edits that still look like a slip of the hand; two letters exchanged are two edits. */
function typingLimit(name: string): number {
  return name.length <= 3 ? 1 : Math.max(2, Math.floor(name.length / 3));
}

function closest(key: string, candidates: readonly string[]): { name: string; cost: number } | null {
  let best: { name: string; cost: number } | null = null;
  for (const name of candidates) {
    const cost = distance(fold(key), fold(name));
    if (best === null || cost < best.cost) best = { name, cost };
  }
  return best;
}

/**
 * The dotted path that an unknown key probably meant: a similar key beside it, else a key of that name anywhere, else null.
 */
export function nearestKey(keys: KnownKeys, path: readonly string[], key: string): string | null {
  if (key.includes(".")) {
    const whole = [...path, key].join(".");
    if (keys.all.includes(whole)) return whole;
  }
  const limit = typingLimit(key);
  const beside = closest(key, keys.at(path));
  if (beside !== null && beside.cost <= limit) return [...path, beside.name].join(".");
  const elsewhere = closest(
    key,
    keys.all.map((name) => name.slice(name.lastIndexOf(".") + 1)),
  );
  if (elsewhere !== null && elsewhere.cost <= Math.min(2, limit - 1)) {
    return keys.all.find((name) => name === elsewhere.name || name.endsWith(`.${elsewhere.name}`)) ?? null;
  }
  return null;
}

/** The candidate that `name` probably meant, or null. */
export function nearestName(name: string, candidates: readonly string[]): string | null {
  const best = closest(name, candidates);
  return best !== null && best.cost <= typingLimit(name) ? best.name : null;
}
