// Terminal output as lines of styled text: colours kept, everything that moves a cursor or talks to a terminal left out, progress
// lines collapsed to what stands there last. It never makes HTML, and pieces may be cut anywhere, within an escape code too.

export interface AnsiStyle {
  /** Number of a terminal colour (0–15), or "rgb(…)"; null: the default. */
  readonly foreground: number | string | null;
  readonly background: number | string | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
}
export interface AnsiRun {
  readonly text: string;
  readonly style: AnsiStyle;
}
export type AnsiLine = readonly AnsiRun[];

export const plainStyle: AnsiStyle = {
  foreground: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
};

/** Longest escape sequence that is waited for; a longer one is not one. */
const longestEscape = 4096;

export interface AnsiReader {
  write(text: string): void;
  /** The last one is the line being written. */
  readonly lines: readonly AnsiLine[];
}

/** @param keep most lines; older ones are forgotten */
export function ansiReader(keep = 100_000): AnsiReader {
  const lines: AnsiLine[] = [[]];
  let style = plainStyle;
  let rest = "";
  /** A carriage return was read: what comes next replaces the line. */
  let replaces = false;

  const put = (text: string) => {
    if (text === "") return;
    const line = replaces ? [] : lines.at(-1)!;
    replaces = false;
    const last = line.at(-1);
    const next =
      last?.style === style ? [...line.slice(0, -1), { text: last.text + text, style }] : [...line, { text, style }];
    lines[lines.length - 1] = next;
  };
  const backspace = () => {
    const line = lines.at(-1)!;
    const last = line.at(-1);
    if (last === undefined) return;
    const text = last.text.slice(0, -1);
    lines[lines.length - 1] = text === "" ? line.slice(0, -1) : [...line.slice(0, -1), { text, style: last.style }];
  };

  const read = (text: string) => {
    let at = 0;
    while (at < text.length) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
      const special = /[\x00-\x08\x0a-\x1f\x7f\x80-\x9f]/g;
      special.lastIndex = at;
      const found = special.exec(text);
      put(text.slice(at, found?.index ?? text.length));
      if (found === null) return "";
      at = found.index + 1;
      const letter = found[0];
      if (letter === "\n") {
        replaces = false;
        lines.push([]);
        if (lines.length > keep) lines.splice(0, lines.length - keep);
      } else if (letter === "\r") replaces = true;
      else if (letter === "\b") backspace();
      else if (letter === "\x1b" || letter === "\x9b" || letter === "\x9d" || letter === "\x90") {
        const sequence = readEscape(text, found.index);
        if (sequence === null) {
          if (text.length - found.index < longestEscape) return text.slice(found.index);
          continue;
        }
        if (sequence.style !== null) style = nextStyle(style, sequence.style);
        if (sequence.erasesLine) lines[lines.length - 1] = [];
        at = sequence.end;
      }
    }
    return "";
  };

  return {
    lines,
    write: (text) => {
      rest = read(rest + text);
    },
  };
}

/** One line's text without any code: what is copied. */
export function plainText(line: AnsiLine): string {
  return line.map((run) => run.text).join("");
}

interface Escape {
  readonly end: number;
  /** Numbers of a colour sequence; null for every other. */
  readonly style: readonly number[] | null;
  readonly erasesLine: boolean;
}

/** null: it is cut off. */
function readEscape(text: string, start: number): Escape | null {
  const nothing = (end: number): Escape => ({ end, style: null, erasesLine: false });
  const first = text[start]!;
  const kind = first === "\x1b" ? text[start + 1] : first === "\x9b" ? "[" : first === "\x9d" ? "]" : "P";
  if (kind === undefined) return null;
  const body = start + (first === "\x1b" ? 2 : 1);
  if (kind === "[") {
    const sequence = /[0-?]*[ -/]*/y;
    sequence.lastIndex = body;
    const parameters = sequence.exec(text)![0];
    const final = text[body + parameters.length];
    if (final === undefined) return null;
    // Not a final byte: the sequence was broken off, and the letter is text again.
    if (final < "@" || final > "~") return nothing(body + parameters.length);
    const end = body + parameters.length + 1;
    if (final === "m" && /^[0-9;:]*$/.test(parameters))
      return { end, style: parameters.split(/[;:]/).map(Number), erasesLine: false };
    return { end, style: null, erasesLine: final === "K" && /^[12]$/.test(parameters) };
  }
  if (kind === "]" || kind === "P" || kind === "_" || kind === "^" || kind === "X") {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what ends such a string
    const terminator = /\x07|\x1b\\|\x9c/g;
    terminator.lastIndex = body;
    const found = terminator.exec(text);
    return found === null ? null : nothing(found.index + found[0].length);
  }
  if (kind >= " " && kind <= "/") return text[body] === undefined ? null : nothing(body + 1);
  return nothing(body);
}

function nextStyle(style: AnsiStyle, codes: readonly number[]): AnsiStyle {
  let next = style;
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at]!;
    if (code === 38 || code === 48) {
      const key = code === 38 ? "foreground" : "background";
      if (codes[at + 1] === 5 && codes[at + 2] !== undefined) {
        next = { ...next, [key]: indexedColour(codes[at + 2]!) };
        at += 2;
      } else if (codes[at + 1] === 2 && codes[at + 4] !== undefined) {
        next = { ...next, [key]: `rgb(${codes[at + 2]}, ${codes[at + 3]}, ${codes[at + 4]})` };
        at += 4;
      }
    } else if (code === 0) next = plainStyle;
    else if (code === 1) next = { ...next, bold: true };
    else if (code === 2) next = { ...next, dim: true };
    else if (code === 3) next = { ...next, italic: true };
    else if (code === 4) next = { ...next, underline: true };
    else if (code === 22) next = { ...next, bold: false, dim: false };
    else if (code === 23) next = { ...next, italic: false };
    else if (code === 24) next = { ...next, underline: false };
    else if (code >= 30 && code <= 37) next = { ...next, foreground: code - 30 };
    else if (code === 39) next = { ...next, foreground: null };
    else if (code >= 40 && code <= 47) next = { ...next, background: code - 40 };
    else if (code === 49) next = { ...next, background: null };
    else if (code >= 90 && code <= 97) next = { ...next, foreground: code - 82 };
    else if (code >= 100 && code <= 107) next = { ...next, background: code - 92 };
  }
  return next;
}

/** The 256-colour table: 16 of the theme, a cube of 6³, 24 greys. */
function indexedColour(index: number): number | string {
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey}, ${grey}, ${grey})`;
  }
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40);
  const cube = index - 16;
  return `rgb(${level(Math.floor(cube / 36))}, ${level(Math.floor(cube / 6) % 6)}, ${level(cube % 6)})`;
}
