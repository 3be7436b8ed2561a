// YAML with positions: a document becomes a layer that knows line and column of every key, and the value of a variable or
// an argument is read by the same rules (YAML 1.2 core schema). Syntax errors become problems; nothing here throws.
import { isAlias, isMap, isPair, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { type ConfigLayer, type ConfigMap, type ConfigValue, createLayer, createMap, joinPath } from "./configLayer.ts";
import type { ConfigProblem, LayerKind, Origin } from "./configProblem.ts";

/** Numbers too large to be exact stay bigint, which no key accepts, instead of being rounded. */
function plainScalar(value: unknown): ConfigValue {
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
  if (value === undefined) return null;
  return value as ConfigValue;
}

/** A few lines of aliases of aliases can stand for more values than any memory holds. */
const mostAliasedValues = 10_000;

/**
 * The text of a configuration file, without its byte order mark.
 *
 * @returns null when it is not UTF-8
 */
export function decodeConfig(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/**
 * Reads one YAML document as a layer.
 *
 * @param file named in origins and problems
 */
export function readYamlLayer(
  text: string,
  file: string,
  kind: LayerKind = "recipe",
): { layer: ConfigLayer; problems: ConfigProblem[] } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, intAsBigInt: true, prettyErrors: false });
  const layer = createLayer(kind);
  const problems: ConfigProblem[] = [];

  const place = (offset: number): Origin => {
    const { line, col } = lines.linePos(offset);
    return { layer: kind, source: file, line: Math.max(1, line), column: Math.max(1, col) };
  };
  const report = (offset: number, path: string, sentence: string, next: string) =>
    problems.push({ code: "CONFIG_SYNTAX", severity: "error", path, sentence, next, origin: place(offset) });

  for (const error of [...document.errors, ...document.warnings])
    report(
      error.pos[0],
      "",
      error.code === "MULTIPLE_DOCS"
        ? "A recipe is one YAML document; a second one begins here."
        : `This is not valid YAML: ${error.message}.`,
      "Correct the line.",
    );

  const open = new Set<Node>();
  let aliases = 0;
  let aliased = 0;
  const read = (node: Node | null, path: readonly string[]): ConfigValue => {
    if (node === null) return null;
    if (aliases > 0 && ++aliased > mostAliasedValues) {
      if (aliased === mostAliasedValues + 1)
        report(
          node.range?.[0] ?? 0,
          joinPath(path),
          `Aliases stand for more than ${mostAliasedValues} values.`,
          "Write the values out.",
        );
      return null;
    }
    if (isAlias(node)) {
      const target = node.resolve(document);
      if (target === undefined || open.has(target)) {
        report(
          node.range?.[0] ?? 0,
          joinPath(path),
          `The alias *${node.source} cannot be resolved.`,
          "Write the value out.",
        );
        return null;
      }
      aliases += 1;
      try {
        return read(target, path);
      } finally {
        aliases -= 1;
      }
    }
    if (isScalar(node)) return plainScalar(node.value);
    open.add(node);
    try {
      if (isSeq(node)) {
        return node.items.map((item, index) => {
          if (aliased > mostAliasedValues) return null;
          const here = [...path, String(index)];
          const inner = item as Node | null;
          layer.origins.set(joinPath(here), place(inner?.range?.[0] ?? node.range?.[0] ?? 0));
          return read(inner, here);
        });
      }
      const map = createMap();
      if (!isMap(node)) return map;
      for (const pair of node.items) {
        if (!isPair(pair) || aliased > mostAliasedValues) continue;
        const key = pair.key as Node | null;
        if (!isScalar(key)) {
          report(
            key?.range?.[0] ?? node.range?.[0] ?? 0,
            joinPath(path),
            "A key must be a plain word.",
            "Rename the key.",
          );
          continue;
        }
        const name = key.source ?? String(key.value);
        const here = [...path, name];
        layer.origins.set(joinPath(here), place(key.range?.[0] ?? 0));
        map[name] = read(pair.value as Node | null, here);
      }
      return map;
    } finally {
      open.delete(node);
    }
  };

  const contents = document.contents as Node | null;
  if (contents !== null && !isMap(contents)) {
    if (document.errors.length === 0)
      report(contents.range?.[0] ?? 0, "", "The file must hold keys and values.", "Write it as `key: value` lines.");
    return { layer, problems };
  }
  Object.assign(layer.tree, read(contents, []) as ConfigMap);
  return { layer, problems };
}

/**
 * Reads the value of a variable or an argument: a YAML scalar or flow collection. Text that YAML would cut (at ` #`),
 * cannot read, or would read as a tag, anchor or alias is taken as it is, whole.
 */
export function readYamlValue(text: string): ConfigValue {
  if (/^\s*[!&*]/.test(text)) return text;
  const document = parseDocument(text, { intAsBigInt: true, prettyErrors: false, logLevel: "silent" });
  const node = document.contents as Node | null;
  if (document.errors.length > 0 || document.warnings.length > 0) return text;
  if (node === null) return text.trim() === "" ? null : text;
  if ([document, node].some((each) => each.comment != null || each.commentBefore != null)) return text;
  if (isScalar(node)) {
    // An empty document (`---`) is no null that somebody typed.
    if (node.value === null && !/^(null|~|)$/i.test(text.trim())) return text;
    if (node.type === "BLOCK_FOLDED" || node.type === "BLOCK_LITERAL") return text;
    return plainScalar(node.value);
  }
  const isFlow = (isSeq(node) || isMap(node)) && node.flow === true;
  if (!isFlow) return text;
  const { layer, problems } = readYamlLayer(`value: ${text}`, "");
  return problems.length > 0 ? text : (layer.tree["value"] ?? null);
}
