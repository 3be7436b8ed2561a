// Where a position lies in the text of a recipe.yaml that is being written: below which keys, on a key or behind one. Reads lines
// and indentation, so that it works where the text is no valid YAML yet; a checker it is not.

export interface YamlKey {
  readonly path: readonly string[];
  readonly line: number;
  /** Columns of the key. */
  readonly from: number;
  readonly to: number;
}

export interface YamlCursor {
  /** Keys that the position lies below. */
  readonly parent: readonly string[];
  /** key: a key can be written here. value: behind `key`. none: in a comment or in text. */
  readonly place: "key" | "value" | "none";
  /** Of the value that is written; null in place key. */
  readonly key: string | null;
  /** First column of the word that ends at the position. */
  readonly from: number;
  /** True inside braces, where entries are parted by commas. */
  readonly flow: boolean;
}

interface Level {
  readonly indent: number;
  readonly path: readonly string[];
}

interface Scan {
  readonly keys: readonly YamlKey[];
  /** Levels above each line, and whether the line is text of a block scalar. */
  readonly above: readonly { readonly levels: readonly Level[]; readonly isText: boolean }[];
}

const blockKey = /^(\s*)(?:- +)?(?:"([^"]*)"|'([^']*)'|([^\s"'#{}[\],&*!|>%@`][^#:{}[\],]*?))\s*:(?=\s|$)/;

/** Column where a comment begins, or the line's length. */
function endOfCode(line: string): number {
  let quote = "";
  for (let column = 0; column < line.length; column++) {
    const character = line[column]!;
    if (quote !== "") quote = character === quote ? "" : quote;
    else if (character === '"' || character === "'") quote = character;
    else if (character === "#" && (column === 0 || /\s/.test(line[column - 1]!))) return column;
  }
  return line.length;
}

interface FlowState {
  /** Path of the innermost open brace; null when none is open. */
  readonly path: readonly string[] | null;
  readonly key: string | null;
  readonly from: number;
}

/** Walks the braces of a line from `start` to `end`; `found` hears of each key. */
function walkFlow(
  line: string,
  start: number,
  end: number,
  base: readonly string[],
  found: (path: readonly string[], from: number, to: number) => void,
): FlowState {
  const open: { path: readonly string[]; key: string | null; list: boolean }[] = [];
  let from = start;
  let quote = "";
  for (let column = start; column < end; column++) {
    const character = line[column]!;
    const top = open.at(-1);
    if (quote !== "") {
      if (character === quote) quote = "";
    } else if (character === '"' || character === "'") quote = character;
    else if (character === "{" || character === "[") {
      const path = top === undefined ? base : top.key === null ? top.path : [...top.path, top.key];
      open.push({ path, key: null, list: character === "[" });
      from = column + 1;
    } else if (character === "}" || character === "]") {
      open.pop();
      from = column + 1;
    } else if (character === "," && top !== undefined) {
      top.key = null;
      from = column + 1;
    } else if (
      character === ":" &&
      top !== undefined &&
      !top.list &&
      top.key === null &&
      /\s|$/.test(line[column + 1] ?? "")
    ) {
      const raw = line.slice(from, column);
      const key = raw.trim().replace(/^(["'])(.*)\1$/, "$2");
      const keyFrom = from + raw.length - raw.trimStart().length;
      found([...top.path, key], keyFrom, keyFrom + raw.trim().length);
      top.key = key;
      from = column + 1;
    }
  }
  const top = open.at(-1);
  const blank = /^\s*/.exec(line.slice(from, end))![0].length;
  return {
    path: top?.path ?? null,
    key: top?.list === true ? (top.key ?? "") : (top?.key ?? null),
    from: from + blank,
  };
}

function scan(lines: readonly string[]): Scan {
  const keys: YamlKey[] = [];
  const above: Scan["above"][number][] = [];
  let levels: Level[] = [];
  let textIndent: number | null = null;
  for (const [index, line] of lines.entries()) {
    const indent = line.length - line.trimStart().length;
    const isBlank = line.trim() === "";
    if (textIndent !== null && !isBlank && indent <= textIndent) textIndent = null;
    above.push({ levels, isText: textIndent !== null });
    if (textIndent !== null || isBlank) continue;
    const match = blockKey.exec(line.slice(0, endOfCode(line)));
    if (match === null) continue;
    const name = match[2] ?? match[3] ?? match[4] ?? "";
    const parents = levels.filter((level) => level.indent < indent);
    const path = [...(parents.at(-1)?.path ?? []), name];
    const colon = match[0].length - 1;
    const raw = line.slice(indent, colon).trimEnd();
    keys.push({ path, line: index, from: indent, to: indent + raw.length });
    levels = [...parents, { indent, path }];
    const value = line.slice(colon + 1, endOfCode(line)).trim();
    if (/^[|>][-+\d]*$/.test(value)) textIndent = indent;
    walkFlow(line, colon + 1, endOfCode(line), path, (inner, from, to) =>
      keys.push({ path: inner, line: index, from, to }),
    );
  }
  return { keys, above };
}

/** Every key of a text, in order. */
export function yamlKeys(text: string): readonly YamlKey[] {
  return scan(text.split(/\r?\n/)).keys;
}

/** The key that a position lies on, or null. */
export function keyAt(text: string, line: number, column: number): YamlKey | null {
  return yamlKeys(text).find((key) => key.line === line && key.from <= column && column <= key.to) ?? null;
}

/** What can be written at a position. */
export function yamlCursor(text: string, line: number, column: number): YamlCursor {
  const lines = text.split(/\r?\n/);
  const current = lines[line] ?? "";
  const { levels, isText } = scan(lines).above[line] ?? { levels: [], isText: false };
  const none: YamlCursor = { parent: [], place: "none", key: null, from: column, flow: false };
  if (isText || endOfCode(current) < column) return none;
  const before = current.slice(0, column);
  const indent = /^\s*/.exec(before)![0].length;
  const parents = levels.filter((level) => level.indent < indent);
  const parent = parents.at(-1)?.path ?? [];
  const match = blockKey.exec(before) ?? blockKey.exec(`${before} `);
  if (match === null) {
    const typed = before.slice(indent);
    // A space in it: text goes on, no key.
    if (/\s|^-|^["'[{]/.test(typed)) return none;
    return { parent, place: "key", key: null, from: indent, flow: false };
  }
  const name = match[2] ?? match[3] ?? match[4] ?? "";
  const start = Math.min(match[0].length, column);
  const flow = walkFlow(current, start, column, [...parent, name], () => {});
  if (flow.path === null) {
    const blank = /^\s*/.exec(before.slice(start))![0].length;
    return { parent, place: "value", key: name, from: start + blank, flow: false };
  }
  if (flow.key === null) return { parent: flow.path, place: "key", key: null, from: flow.from, flow: true };
  return { parent: flow.path, place: "value", key: flow.key, from: flow.from, flow: true };
}
