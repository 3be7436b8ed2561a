// Where the keys and values of a recipe's text stand, and the edits that remove a key or put one in. Offsets are UTF-16 units of
// the text as given; the text itself is never changed here.
import { isMap, isPair, isScalar, isSeq, type Node, type Pair, parseDocument, type YAMLMap } from "yaml";
import type { TextEdit, TextRange } from "../../../protocol/daemonMethods.ts";

interface Span {
  readonly from: number;
  readonly to: number;
}

export interface YamlPlace {
  readonly path: readonly string[];
  readonly key: Span;
  /** null: nothing stands behind the key. */
  readonly value: Span | null;
  readonly parent: YAMLMap;
  readonly pair: Pair;
}

export interface YamlPlaces {
  /** The key at a path of the file. */
  at(path: readonly string[]): YamlPlace | null;
  /** The key, or list entry, that begins at a line and column, both from 1. */
  from(line: number, column: number): YamlPlace | { readonly item: Span } | null;
  /** The deepest key on a path that stands in the file. */
  nearest(path: readonly string[]): YamlPlace | null;
  range(span: Span): TextRange;
  textOf(span: Span): string;
  removal(place: YamlPlace, mayEmpty: (path: readonly string[]) => boolean): TextEdit;
  /** null where the file's form leaves no place for it. `value` may be keys with values, indented from 0. */
  insertion(path: readonly string[], value: string): TextEdit | null;
}

/** Keys and values, which stand below their key instead of behind it. */
function isBlock(value: string): boolean {
  return /^\w+: /.test(value);
}

/** The keys of a text; of text that is not valid YAML, those that could be read. */
export function yamlPlaces(text: string): YamlPlaces {
  const document = parseDocument(text, { prettyErrors: false, logLevel: "silent" });
  const lineStarts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lineStarts.push(at + 1);
  const byPath = new Map<string, YamlPlace>();
  const byOffset = new Map<number, YamlPlace | { readonly item: Span }>();
  const spanOf = (node: unknown): Span | null => {
    const range = (node as Node | null)?.range;
    return range == null || range[1] <= range[0] ? null : { from: range[0], to: range[1] };
  };

  const visit = (node: unknown, path: readonly string[]) => {
    if (path.length > 20) return;
    if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) {
        const span = spanOf(item);
        if (span !== null && !isMap(item)) byOffset.set(span.from, { item: span });
        visit(item, [...path, String(index)]);
      }
    }
    if (!isMap(node)) return;
    for (const pair of node.items) {
      if (!isPair(pair) || !isScalar(pair.key)) continue;
      const key = spanOf(pair.key);
      if (key === null) continue;
      const here = [...path, pair.key.source ?? String(pair.key.value)];
      const place: YamlPlace = { path: here, key, value: spanOf(pair.value), parent: node, pair };
      byPath.set(JSON.stringify(here), place);
      byOffset.set(key.from, place);
      visit(pair.value, here);
    }
  };
  visit(document.contents, []);

  const lineOf = (offset: number) => {
    let low = 0;
    let high = lineStarts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (lineStarts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const range = ({ from, to }: Span): TextRange => {
    const line = lineOf(from);
    const endLine = lineOf(to);
    return { line, column: from - lineStarts[line]!, endLine, endColumn: to - lineStarts[endLine]! };
  };
  const endOfLine = (offset: number) => {
    const end = text.indexOf("\n", offset);
    const whole = end < 0 ? text.length : end;
    return text[whole - 1] === "\r" && whole > offset ? whole - 1 : whole;
  };
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const at = (path: readonly string[]) => byPath.get(JSON.stringify(path)) ?? null;

  const removal: YamlPlaces["removal"] = (place, mayEmpty) => {
    const { parent, key } = place;
    const above = at(place.path.slice(0, -1));
    if (parent.items.length === 1 && above !== null && mayEmpty(above.path)) return removal(above, mayEmpty);
    const end = place.value?.to ?? key.to + 1;
    if (parent.flow === true) {
      const index = parent.items.indexOf(place.pair);
      const next = parent.items[index + 1];
      const nextKey = next === undefined ? null : spanOf(next.key);
      if (nextKey !== null) return { range: range({ from: key.from, to: nextKey.from }), newText: "" };
      const before = /,?\s*$/.exec(text.slice(0, key.from))![0].length;
      return { range: range({ from: key.from - before, to: end }), newText: index === 0 ? " " : "" };
    }
    // A value that is a block ends at the start of the next line.
    const last = end > key.to && text[end - 1] === "\n" ? end - 1 : end;
    const lineEnd = text.indexOf("\n", last);
    const from = lineStarts[lineOf(key.from)]!;
    return { range: range({ from, to: lineEnd < 0 ? text.length : lineEnd + 1 }), newText: "" };
  };

  /** `rest` below a place of this indentation, as lines. */
  const block = (rest: readonly string[], value: string, indent: number): string => {
    const lines = rest.map((name, depth) => `${" ".repeat(indent + 2 * depth)}${name}:`);
    const inner = " ".repeat(indent + 2 * rest.length);
    if (isBlock(value)) lines.push(...value.split("\n").map((line) => inner + line));
    else lines[lines.length - 1] += ` ${value}`;
    return lines.join(newline);
  };
  const insertion: YamlPlaces["insertion"] = (path, value) => {
    for (let depth = path.length - 1; depth >= 0; depth--) {
      const above = depth === 0 ? null : at(path.slice(0, depth));
      if (depth > 0 && above === null) continue;
      const rest = path.slice(depth);
      const map = above === null ? document.contents : above.pair.value;
      if (isMap(map) && map.flow === true) {
        if (isBlock(value)) return null;
        const close = (map.range?.[1] ?? 0) - 1;
        const inner = rest.reduceRight(
          (text, name, i) => (i === 0 ? `${name}: ${text}` : `{ ${name}: ${text} }`),
          value,
        );
        const blank = /\s*$/.exec(text.slice(0, close))![0].length;
        const lead = map.items.length === 0 ? " " : ", ";
        return { range: range({ from: close - blank, to: close }), newText: `${lead}${inner} ` };
      }
      if (isMap(map) && map.items.length > 0) {
        const first = spanOf(map.items[0]!.key);
        const lastPair = map.items.at(-1)!;
        const lastKey = spanOf(lastPair.key);
        if (first === null || lastKey === null) return null;
        const indent = first.from - lineStarts[lineOf(first.from)]!;
        const lastValue = spanOf(lastPair.value)?.to ?? lastKey.to;
        const end = endOfLine(text[lastValue - 1] === "\n" ? lastValue - 1 : lastValue);
        return { range: range({ from: end, to: end }), newText: newline + block(rest, value, indent) };
      }
      if (above !== null) {
        if (above.value !== null) return null;
        const indent = above.key.from - lineStarts[lineOf(above.key.from)]! + 2;
        const end = endOfLine(above.key.to);
        return { range: range({ from: end, to: end }), newText: newline + block(rest, value, indent) };
      }
      if (document.contents !== null && !(isScalar(document.contents) && document.contents.value === null)) return null;
      const end = text.length;
      const lead = text === "" || text.endsWith("\n") ? "" : newline;
      return { range: range({ from: end, to: end }), newText: `${lead}${block(rest, value, 0)}${newline}` };
    }
    return null;
  };

  return {
    at,
    from: (line, column) => byOffset.get((lineStarts[line - 1] ?? -1) + column - 1) ?? null,
    nearest(path) {
      for (let length = path.length; length > 0; length--) {
        const place = at(path.slice(0, length));
        if (place !== null) return place;
      }
      return null;
    },
    range,
    textOf: ({ from, to }) => text.slice(from, to),
    removal,
    insertion,
  };
}
