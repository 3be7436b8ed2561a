// The keys of recipe.yaml as a person meets them: what may stand at a path, with meaning, default and values. Read from the JSON
// Schema, so that editors, checks and documents have one list; knows no key by name but `profiles`, whose content is the recipe.

export interface SchemaNode {
  readonly description?: string;
  readonly default?: unknown;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: boolean | SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly items?: SchemaNode | boolean;
  readonly prefixItems?: readonly SchemaNode[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
}

export interface RecipeKey {
  /** Dotted path from the root of the recipe, also inside a profile. */
  readonly path: string;
  readonly name: string;
  readonly description: string;
  /** Absent where there is none. */
  readonly default?: unknown;
  readonly required: boolean;
  /** section: keys below it are known; map: any key may stand below it. */
  readonly kind: "section" | "map" | "list" | "value";
  /** Every value that may be written, where they can be listed. */
  readonly values: readonly (string | number | boolean | null)[];
  /** What may be written, in words. */
  readonly accepts: string;
}

function variants(node: SchemaNode): SchemaNode[] {
  return node.anyOf === undefined ? [node] : node.anyOf.flatMap(variants);
}

function sectionOf(node: SchemaNode): SchemaNode | null {
  return variants(node).find((variant) => variant.properties !== undefined) ?? null;
}

function bounds(node: SchemaNode): string {
  const limits: [string, number | undefined][] = [
    [">", node.exclusiveMinimum],
    ["≥", node.minimum],
    ["<", node.exclusiveMaximum],
    ["≤", node.maximum],
  ];
  return limits
    .filter(([, limit]) => limit !== undefined && Math.abs(limit) !== Number.MAX_SAFE_INTEGER)
    .map(([sign, limit]) => ` ${sign} ${limit}`)
    .join(",");
}

/** What a schema accepts, in words. */
export function acceptedBy(node: SchemaNode): string {
  if (node.enum !== undefined) return node.enum.map((value) => String(value)).join(", ");
  if (node.anyOf !== undefined) return node.anyOf.map(acceptedBy).join(" or ");
  switch (node.type) {
    case "null":
      return "null";
    case "string":
      return "text";
    case "boolean":
      return "true, false";
    case "integer":
    case "number":
      return `${node.type}${bounds(node)}`;
    case "array":
      if (node.prefixItems !== undefined) return `[${node.prefixItems.map(acceptedBy).join(", ")}]`;
      return typeof node.items === "object" ? `list of ${acceptedBy(node.items)}` : "list";
    default:
      return node.properties === undefined ? "map" : "section";
  }
}

function valuesOf(node: SchemaNode): RecipeKey["values"] {
  const each = variants(node).map((variant): RecipeKey["values"] | null => {
    if (variant.enum !== undefined) return variant.enum as RecipeKey["values"];
    if (variant.const !== undefined) return [variant.const as string];
    if (variant.type === "boolean") return [true, false];
    return variant.type === "null" ? [null] : [];
  });
  return each.flatMap((values) => values ?? []);
}

function kindOf(node: SchemaNode): RecipeKey["kind"] {
  if (sectionOf(node) !== null) return "section";
  const kinds = variants(node).map((variant) => variant.type);
  if (kinds.includes("array")) return "list";
  return kinds.includes("object") ? "map" : "value";
}

function describe(node: SchemaNode, path: readonly string[], required: boolean): RecipeKey {
  return {
    path: path.join("."),
    name: path.at(-1) ?? "",
    description: node.description ?? "",
    ...(node.default === undefined ? {} : { default: node.default }),
    required,
    kind: kindOf(node),
    values: valuesOf(node),
    accepts: acceptedBy(node),
  };
}

/** The path in the recipe that a path of the file stands for: a profile holds part of a recipe. */
export function pathInRecipe(path: readonly string[]): readonly string[] {
  return path[0] === "profiles" && path.length >= 2 ? path.slice(2) : path;
}

function nodeAt(schema: SchemaNode, path: readonly string[]): SchemaNode | null {
  let node: SchemaNode | null = schema;
  for (const name of path) {
    const section: SchemaNode | null = node === null ? null : sectionOf(node);
    if (section !== null && Object.hasOwn(section.properties ?? {}, name)) node = section.properties![name]!;
    else {
      const map: SchemaNode | undefined = node === null ? undefined : variants(node).find(isMapNode);
      node = typeof map?.additionalProperties === "object" ? map.additionalProperties : null;
    }
    if (node === null) return null;
  }
  return node;
}

function isMapNode(node: SchemaNode): boolean {
  return node.properties === undefined && typeof node.additionalProperties === "object";
}

/** Keys that may be written below a path of the file; empty where none is known. */
export function recipeKeysAt(schema: SchemaNode, path: readonly string[]): RecipeKey[] {
  const inside = pathInRecipe(path);
  const isProfile = inside !== path;
  const node = nodeAt(schema, inside);
  const section = node === null ? null : sectionOf(node);
  if (section === null) return [];
  return Object.entries(section.properties ?? {})
    .filter(([name]) => !(isProfile && inside.length === 0 && name === "profiles"))
    .map(([name, child]) =>
      describe(child, [...inside, name], !isProfile && (section.required?.includes(name) ?? false)),
    );
}

/** The key at a path of the file, or null. */
export function recipeKey(schema: SchemaNode, path: readonly string[]): RecipeKey | null {
  const inside = pathInRecipe(path);
  if (inside.length === 0) return null;
  const node = nodeAt(schema, inside);
  if (node === null) return null;
  const parent = nodeAt(schema, inside.slice(0, -1));
  const required = parent === null ? undefined : sectionOf(parent)?.required;
  return describe(node, inside, inside === path && (required?.includes(inside.at(-1)!) ?? false));
}

/** Every key of a recipe, sections before what is in them. */
export function allRecipeKeys(schema: SchemaNode, path: readonly string[] = []): RecipeKey[] {
  return recipeKeysAt(schema, path).flatMap((key) => [
    key,
    ...(key.kind === "section" ? allRecipeKeys(schema, [...path, key.name]) : []),
  ]);
}
