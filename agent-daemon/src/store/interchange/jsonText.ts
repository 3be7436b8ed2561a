// JSON text of other tools as values, exactly and quickly: integers of any size stay exact, Python's NaN and Infinity become
// words, nesting is bounded. Also the text of one value inside a document, character for character.
import { randomUUID } from "node:crypto";
import type { JsonValue } from "../../../../protocol/agent.ts";

export type JsonObject = { [key: string]: JsonValue };

/** Deeper values are refused: what comes after recurses over them. */
export const deepestNesting = 200;

const quote = 0x22;
const backslash = 0x5c;
/** A whole number of 16 or more digits that is not part of a fraction or an exponent: JSON.parse might change it. */
const longInteger = /(?<![.\deE+-])-?\d{16,}(?![.\deE])/g;
/** Begins the string that stands for such a number while JSON.parse reads the rest. Nobody can know it and write it. */
const integerMark = `\u0000${randomUUID()} `;
const pythonWord = /-?\b(?:NaN|Infinity)\b/g;

/**
 * The value of a JSON text. Integers beyond ±(2^53 − 1) are bigint; NaN, Infinity and -Infinity, which Python writes, are the
 * strings of that name. Throws SyntaxError.
 */
export function parseExact(text: string): JsonValue {
  return settled(parseFast(text), deepestNesting);
}

function parseFast(text: string): JsonValue {
  const exact = text.search(longInteger) < 0 ? text : outsideStrings(text, (gap) => gap.replace(longInteger, marked));
  try {
    return JSON.parse(exact) as JsonValue;
  } catch (error) {
    const replaced = withWords(exact);
    if (replaced === exact) throw error;
    return JSON.parse(replaced) as JsonValue;
  }
}

function marked(digits: string): string {
  // With leading zeros it is no JSON; what parses next says so.
  return Number.isSafeInteger(Number(digits)) || /^-?0/.test(digits)
    ? digits
    : JSON.stringify(`${integerMark}${digits}`);
}

/** The value with its marked integers as bigint; changes lists and objects in place. Throws SyntaxError when it is too deep. */
function settled(value: JsonValue, depth: number): JsonValue {
  if (typeof value === "string") return value.startsWith(integerMark) ? BigInt(value.slice(integerMark.length)) : value;
  // Too large for a number: Python reads an infinity there.
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth === 0) throw new SyntaxError(`values are nested more than ${deepestNesting} deep`);
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const inner = value[at] as JsonValue;
      const exact = settled(inner, depth - 1);
      if (exact !== inner) value[at] = exact;
    }
    return value;
  }
  for (const key of Object.keys(value)) {
    const inner = value[key] as JsonValue;
    const exact = settled(inner, depth - 1);
    if (exact !== inner)
      Object.defineProperty(value, key, { value: exact, enumerable: true, configurable: true, writable: true });
  }
  return value;
}

/** Just past the string that begins at `at`; the text's length when it does not end. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === backslash) before--;
    if ((end - before) % 2 === 1) return end + 1;
  }
  return text.length;
}

/** The text with what stands outside of all strings changed. */
function outsideStrings(text: string, change: (gap: string) => string): string {
  const pieces: string[] = [];
  let at = 0;
  while (at < text.length) {
    const opening = text.indexOf('"', at);
    pieces.push(change(text.slice(at, opening < 0 ? text.length : opening)));
    if (opening < 0) break;
    at = endOfString(text, opening);
    pieces.push(text.slice(opening, at));
  }
  return pieces.join("");
}

function withWords(text: string): string {
  return /NaN|Infinity/.test(text) ? outsideStrings(text, (gap) => gap.replace(pythonWord, '"$&"')) : text;
}

function skipSpace(text: string, at: number): number {
  let next = at;
  for (let code = text.charCodeAt(next); code === 0x20 || (code >= 0x09 && code <= 0x0d); )
    code = text.charCodeAt(++next);
  return next;
}

/** Just past the value that begins at `at`. */
function endOfValue(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === quote) return endOfString(text, at);
  let depth = 0;
  for (let next = at; next < text.length; ) {
    const code = text.charCodeAt(next);
    if (code === quote) {
      next = endOfString(text, next);
      continue;
    }
    if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) {
      if (depth === 0) return next;
      if (--depth === 0) return next + 1;
    } else if (depth === 0 && (code === 0x2c || code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09)) {
      return next;
    }
    next++;
  }
  return text.length;
}

/** The text of the value at a path, exactly as it stands in valid JSON; null when there is none. */
export function sliceAt(text: string, path: readonly (string | number)[]): string | null {
  let at = skipSpace(text, 0);
  for (const step of path) {
    const open = text[at];
    if (open !== (typeof step === "number" ? "[" : "{")) return null;
    at = skipSpace(text, at + 1);
    let index = 0;
    for (;;) {
      if (at >= text.length || text[at] === "]" || text[at] === "}") return null;
      let found = index === step;
      if (typeof step === "string") {
        const end = endOfString(text, at);
        found = keyIs(text.slice(at, end), step);
        at = skipSpace(text, skipSpace(text, end) + 1);
      }
      if (found) break;
      at = skipSpace(text, endOfValue(text, at));
      if (text[at] !== ",") return null;
      at = skipSpace(text, at + 1);
      index++;
    }
  }
  return text.slice(at, endOfValue(text, at));
}

function keyIs(quoted: string, key: string): boolean {
  if (quoted === `"${key}"`) return true;
  return quoted.includes("\\") && JSON.parse(quoted) === key;
}

/**
 * The beginning of a JSON document, completed so that it can be parsed: cut after its last whole value, open containers closed.
 * For looking at what a file is, never for its contents. null when not even that is JSON.
 */
export function completeBeginning(text: string): JsonValue | null {
  const open: string[] = [];
  let cut = -1;
  let closers = "";
  const remember = (at: number) => {
    cut = at;
    closers = open.toReversed().join("");
  };
  for (let at = skipSpace(text, 0); at < text.length; ) {
    const character = text[at] as string;
    if (character === '"') {
      const end = endOfString(text, at);
      if (end >= text.length) break;
      at = end;
      if (text[skipSpace(text, at)] !== ":") remember(at);
    } else if (character === "{" || character === "[") {
      open.push(character === "{" ? "}" : "]");
      remember(++at);
    } else if (character === "}" || character === "]") {
      open.pop();
      remember(++at);
      if (open.length === 0) break;
    } else {
      // A number or a word counts when something follows it.
      if (character === ",") remember(at);
      at++;
    }
    if (open.length > deepestNesting) break;
  }
  if (cut < 0) return null;
  try {
    return parseExact(text.slice(0, cut).replace(/,\s*$/, "") + closers);
  } catch {
    return null;
  }
}
