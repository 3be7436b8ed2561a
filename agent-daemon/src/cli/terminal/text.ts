// Text on a terminal: how wide it is, how it is cut and padded, and how text from a model or a task is made harmless before
// it is shown. Nothing that comes from outside may reach the terminal without passing here.
import { stripVTControlCharacters } from "node:util";
import stringWidth from "string-width";

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Columns that the text takes, colour codes not counted. */
export function widthOf(text: string): number {
  return stringWidth(text);
}

/** Cuts uncoloured text to at most `width` columns; what was cut is announced by an ellipsis. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  if (width <= 0) return "";
  let kept = "";
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    const wide = widthOf(segment);
    if (used + wide > width - 1) break;
    kept += segment;
    used += wide;
  }
  return `${kept}…`;
}

/** Breaks uncoloured text at blanks into at most `most` lines of `width` columns; the last one is cut when it does not end there. */
export function wrap(text: string, width: number, most: number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (lines.length < most - 1 && widthOf(rest) > width) {
    const fitting = truncate(rest, width + 1).replace(/…$/, "");
    const blank = fitting.lastIndexOf(" ");
    const end = blank > 0 ? blank : Math.max(1, fitting.length - 1);
    lines.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).trimStart();
  }
  return [...lines, truncate(rest, width)];
}

export function padEnd(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

export function padStart(text: string, width: number): string {
  return " ".repeat(Math.max(0, width - widthOf(text))) + text;
}

const named: { readonly [code: string]: string } = { "\n": "↵", "\t": "⇥", "\r": "␍", "\u001b": "␛" };

/**
 * One line that shows every character: line ends and tabs as signs, other control characters and those that reorder text as
 * code points. The terminal obeys none of them.
 */
export function visible(text: string): string {
  return text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => named[character] ?? codePoint(character),
  );
}

function codePoint(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
}

const space = "␣";
const signs = new RegExp(`[${Object.values(named).join("")}${space}]`, "g");

/**
 * A token by itself, where blanks matter: spaces as signs too, other blanks and invisible characters as code points. Signs that
 * the text itself has are shown as code points, so that nothing looks like something else.
 */
export function visibleToken(text: string): string {
  return visible(
    text
      .replace(signs, codePoint)
      .replaceAll(" ", space)
      .replace(/[\p{Zs}\u00ad\u200b-\u200d\u2060\ufeff]/gu, codePoint),
  );
}

/** Calls `paint` with the signs for blanks in what `visibleToken` returned. */
export function paintSigns(shown: string, paint: (sign: string) => string): string {
  return shown.replace(signs, paint);
}

/** Text for messages: escape sequences removed, line ends kept. */
export function harmless(text: string): string {
  return stripVTControlCharacters(text)
    .split("\n")
    .map((line) => visible(line.replace(/\t/g, "    ")))
    .join("\n");
}
