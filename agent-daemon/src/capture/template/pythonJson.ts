// JSON as Python's json module reads and writes it: integers of any size, floats with their kind, keys in the order of the
// text (a JavaScript object would move keys that look like integers to the front), later duplicates winning.
import { floatText } from "./pythonText.ts";
import { type Dict, isDict, isList, Tuple, typeFault, typeName, type Value } from "./values.ts";

/** Throws SyntaxError with the position where the text stops being JSON. */
export function parseJson(text: string): Value {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.end();
  return value;
}

const deepest = 900;
const numberPattern = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a JSON text has none of these
const plainPattern = /[^"\\\u0000-\u001f]*/y;
const spacePattern = /[ \t\n\r]*/y;
const simpleEscapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

class Reader {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  value(depth: number): Value {
    if (depth > deepest) throw this.fault("is nested too deeply");
    this.space();
    const start = this.text[this.at];
    if (start === "{") return this.object(depth);
    if (start === "[") return this.array(depth);
    if (start === '"') return this.string();
    if (this.word("true")) return true;
    if (this.word("false")) return false;
    if (this.word("null")) return null;
    return this.number();
  }

  end(): void {
    this.space();
    if (this.at < this.text.length) throw this.fault("goes on after its end");
  }

  private object(depth: number): Dict {
    const result = new Map<Value, Value>();
    this.at++;
    this.space();
    if (this.take("}")) return result;
    for (;;) {
      this.space();
      if (this.text[this.at] !== '"') throw this.fault("lacks a key");
      const key = this.string();
      this.space();
      if (!this.take(":")) throw this.fault("lacks a colon");
      result.set(key, this.value(depth + 1));
      this.space();
      if (this.take("}")) return result;
      if (!this.take(",")) throw this.fault("lacks a comma or a closing brace");
    }
  }

  private array(depth: number): Value[] {
    const result: Value[] = [];
    this.at++;
    this.space();
    if (this.take("]")) return result;
    for (;;) {
      result.push(this.value(depth + 1));
      this.space();
      if (this.take("]")) return result;
      if (!this.take(",")) throw this.fault("lacks a comma or a closing bracket");
    }
  }

  private string(): string {
    this.at++;
    let result = "";
    for (;;) {
      result += this.match(plainPattern);
      if (this.take('"')) return result;
      if (!this.take("\\")) throw this.fault("has a control character in a text, or a text without end");
      const kind = this.text[this.at++] ?? "";
      const simple = simpleEscapes[kind];
      if (simple !== undefined) {
        result += simple;
        continue;
      }
      const hex = this.text.slice(this.at, this.at + 4);
      if (kind !== "u" || !/^[0-9a-fA-F]{4}$/.test(hex)) throw this.fault("has an unknown escape");
      result += String.fromCharCode(Number.parseInt(hex, 16));
      this.at += 4;
    }
  }

  private number(): bigint | number {
    numberPattern.lastIndex = this.at;
    const match = numberPattern.exec(this.text);
    if (!match) throw this.fault("has no value");
    this.at += match[0].length;
    const isInteger = match[1] === undefined && match[2] === undefined;
    return isInteger ? BigInt(match[0]) : Number(match[0]);
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }

  private space(): void {
    this.match(spacePattern);
  }

  private take(character: string): boolean {
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  private word(word: string): boolean {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  private fault(what: string): SyntaxError {
    return new SyntaxError(`The JSON text ${what} (character ${this.at}).`);
  }
}

export interface WriteOptions {
  readonly ensureAscii?: boolean;
  /** Text repeated per level; null: everything on one line. */
  readonly indent?: string | null;
  readonly separators?: readonly [item: string, key: string] | null;
  readonly sortKeys?: boolean;
}

/** json.dumps. Fails on undefined, functions and other values JSON does not have. */
export function writeJson(value: Value, options: WriteOptions = {}): string {
  const indent = options.indent ?? null;
  const [item, key] = options.separators ?? [indent === null ? ", " : ",", ": "];
  const pad = (depth: number): string => (indent === null ? "" : `\n${indent.repeat(depth)}`);
  const write = (current: Value, depth: number): string => {
    if (current === null || typeof current === "boolean" || typeof current === "bigint") return String(current);
    if (typeof current === "number") return jsonFloat(current);
    if (typeof current === "string") return jsonText(current, options.ensureAscii ?? false);
    if (isList(current) || current instanceof Tuple) {
      const items = current instanceof Tuple ? current.items : current;
      if (items.length === 0) return "[]";
      return `[${items.map((entry) => pad(depth + 1) + write(entry, depth + 1)).join(item)}${pad(depth)}]`;
    }
    if (isDict(current)) {
      if (current.size === 0) return "{}";
      const entries = [...current].map(([name, entry]) => [keyText(name), entry] as const);
      if (options.sortKeys) entries.sort(([a], [b]) => compareText(a, b));
      const parts = entries.map(([name, entry]) => {
        const written = jsonText(name, options.ensureAscii ?? false);
        return `${pad(depth + 1)}${written}${key}${write(entry, depth + 1)}`;
      });
      return `{${parts.join(item)}${pad(depth)}}`;
    }
    throw typeFault(`Object of type ${typeName(current)} is not JSON serializable`);
  };
  return write(value, 0);
}

/** By code point, as Python orders text. */
export function compareText(left: string, right: string): number {
  const [a, b] = [Array.from(left), Array.from(right)];
  for (let index = 0; index < Math.min(a.length, b.length); index++) {
    const difference = (a[index]?.codePointAt(0) ?? 0) - (b[index]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function keyText(key: Value): string {
  if (typeof key === "string") return key;
  if (typeof key === "number") return jsonFloat(key);
  if (key === null || typeof key === "boolean" || typeof key === "bigint") return String(key);
  throw typeFault(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  return floatText(value);
}

const shortEscapes: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ["\\", "\\\\"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
  ["\f", "\\f"],
  ["\b", "\\b"],
]);

function jsonText(text: string, ensureAscii: boolean): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes exactly these
  const pattern = ensureAscii ? /["\\]|[^ -~]/g : /["\\\u0000-\u001f]/g;
  const escaped = (character: string): string =>
    shortEscapes.get(character) ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `"${text.replace(pattern, escaped)}"`;
}
