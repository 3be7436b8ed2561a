// Verifier for mathematics whose answer stands in \boxed{…} (or \fbox{…}). Time is linear in the text, however deep its
// braces are nested.
//
// The rule: the last box counts, and a box that is never closed is no answer. Two contents are equal when they are the same
// number (integer, decimal or fraction, compared exactly) or, failing that, the same text once spacing and typesetting are
// gone. Unit rule: a unit after a number does not count. A unit is a word set as text, a degree or percent sign, or a bare
// word that is a unit's name (`2ab` is a product, not a 2), with its power; `\text{9 cm}`, `9\,\mathrm{cm}^2`, `9 cm`,
// `90^\circ` and `\$9` are 9, 9, 9, 90 and 9. A name before `=` does not count either (`x = 9`).
import { RollscopeError } from "../../../../protocol/errors.ts";
import { numbersIn, type Reference } from "./number.ts";

/** Index just past the brace that closes the one at `open`, or −1. A backslash takes the next character with it. */
function closingBrace(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    const character = text[at];
    if (character === "\\") at++;
    else if (character === "{") depth++;
    else if (character === "}") {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}

/** What stands in the last box, untouched; null when there is none or it is not closed. */
export function extractBoxed(text: string): string | null {
  const opener = /\\(?:boxed|fbox)\s*\{/g;
  let open = -1;
  for (let found = opener.exec(text); found; found = opener.exec(text)) open = found.index + found[0].length - 1;
  if (open < 0) return null;
  const end = closingBrace(text, open);
  return end < 0 ? null : text.slice(open + 1, end - 1).trim();
}

const wrapper = /^\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|mbox)\s*\{/;

interface Plain {
  readonly text: string;
  /** The whole content was set as text, so its letters are words and not variables. */
  readonly isWords: boolean;
}

/** Takes the typesetting off: spacing, sizes, dollar signs, and wrappers such as \text that hold the whole content. */
function plain(content: string): Plain {
  let isWords = false;
  let text = content
    .replace(/\\(?:left|right|displaystyle)(?![A-Za-z])/g, "")
    .replace(/\\(?:[,;:! ]|quad(?![A-Za-z])|qquad(?![A-Za-z]))/g, " ")
    .replace(/\\[dt]frac(?![A-Za-z])/g, "\\frac")
    .replace(/\\%/g, "%")
    .replace(/\\?\$/g, "")
    .replace(/[~\u00a0]/g, " ")
    .trim();
  for (let depth = 0; depth < 8; depth++) {
    const wrapped = wrapper.exec(text);
    if (wrapped === null || closingBrace(text, wrapped[0].length - 1) !== text.length) break;
    text = text.slice(wrapped[0].length, -1).trim();
    isWords = true;
  }
  const named = /^(?:\\?[A-Za-z]+|[A-Za-z]\([A-Za-z]\))\s*=([^=]*)$/.exec(text);
  return { text: (named ? named[1]! : text).replace(/\s+/g, " ").trim(), isWords };
}

const unitNames = new Set(
  (
    "mm cm dm km mg kg ml cl dl in inch inches ft foot feet yd yard yards mi mile miles mph kph lb lbs pound pounds oz ounce " +
    "ounces gram grams kilogram kilograms ton tons tonne tonnes meter meters metre metres centimeter centimeters kilometer " +
    "kilometers liter liters litre litres gallon gallons sec secs second seconds min mins minute minutes hr hrs hour hours day " +
    "days week weeks month months year years degree degrees deg percent dollar dollars cent cents euro euros unit units square " +
    "sq cubic per"
  ).split(" "),
);

const unitPart =
  /\s+|\\(?:text|textbf|textrm|mathrm|mbox)\s*\{[^{}]*\}|\\(?:circ|degree)(?![A-Za-z])|\^\s*(?:\d|\{\s*\d\s*\}|\{\s*\\circ\s*\}|\\circ(?![A-Za-z]))|[%°²³./]|[A-Za-zµ]+/uy;

function isUnit(text: string, isWords: boolean): boolean {
  unitPart.lastIndex = 0;
  let follows: "number" | "word" = "number";
  while (unitPart.lastIndex < text.length) {
    const part = unitPart.exec(text)?.[0];
    if (part === undefined) return false;
    if (part[0] === "^" && !part.includes("\\circ")) {
      // A power of the number itself is no unit.
      if (follows === "number") return false;
      continue;
    }
    const isName = /^[A-Za-zµ]/u.test(part);
    if (isName && !isWords && !unitNames.has(part.toLowerCase())) return false;
    if (isName || part.endsWith("}")) follows = "word";
  }
  return true;
}

/** numerator/denominator in lowest terms, as text; null when it is not a plain number or is too long to be worth it. */
function rational({ text, isWords }: Plain): string | null {
  if (text.length > 2000) return null;
  const fraction = /^([-−–+]?)\s*\\frac\s*(?:\{([^{}]+)\}|(\d))\s*(?:\{([^{}]+)\}|(\d))(.*)$/.exec(text);
  if (fraction) {
    const top = wholeNumber((fraction[2] ?? fraction[3])!);
    const bottom = wholeNumber((fraction[4] ?? fraction[5])!);
    if (top === null || bottom === null || !isUnit(fraction[6]!, isWords)) return null;
    return ratio(top, bottom, fraction[1] !== "" && fraction[1] !== "+");
  }
  const slash = /^([^/]+)\/([^/]+)$/.exec(text);
  if (slash) {
    const top = wholeNumber(slash[1]!);
    const bottom = wholeNumber(slash[2]!);
    if (top !== null && bottom !== null) return ratio(top, bottom, false);
  }
  for (const found of numbersIn(text)) {
    const before = text.slice(0, found.start).trim();
    if (before !== "" && before !== "+") return null;
    if (!isUnit(text.slice(found.end), isWords)) return null;
    return ratio(found.value, "1", false);
  }
  return null;
}

/** The text as one number with nothing beside it, or null. */
function wholeNumber(text: string): string | null {
  const trimmed = text.trim();
  const found = [...numbersIn(trimmed)];
  return found.length === 1 && found[0]!.start === 0 && found[0]!.end === trimmed.length ? found[0]!.value : null;
}

function scaled(value: string): [bigint, bigint] | null {
  if (value.includes("e")) return null;
  const [whole = "0", fraction = ""] = value.split(".");
  return [BigInt(whole + fraction), 10n ** BigInt(fraction.length)];
}

function ratio(top: string, bottom: string, negate: boolean): string | null {
  const above = scaled(top);
  const below = scaled(bottom);
  if (above === null || below === null || below[0] === 0n) return null;
  let numerator = above[0] * below[1] * (negate ? -1n : 1n);
  let denominator = above[1] * below[0];
  if (denominator < 0n) {
    numerator = -numerator;
    denominator = -denominator;
  }
  let [a, b] = [numerator < 0n ? -numerator : numerator, denominator];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n ? "0/1" : `${numerator / a}/${denominator / a}`;
}

/** One spelling for contents that count as equal. */
export function normalizeMath(content: string): string {
  const bare = plain(content);
  return rational(bare) ?? bare.text.replace(/\s+/g, "").replace(/\.$/, "");
}

/**
 * 1 when the last box of the text holds the reference, else 0.
 *
 * @param reference the content of the right box, or a solution that has one
 * @throws VERIFIER_REFERENCE_INVALID when the reference is empty
 */
export function scoreBoxed(text: string, reference: Reference): number {
  const written = String(reference);
  const expected = extractBoxed(written) ?? written.trim();
  if (expected === "") {
    throw new RollscopeError("VERIFIER_REFERENCE_INVALID", "The right answer is empty.", {
      next: "Correct the row of the task file.",
    });
  }
  const given = extractBoxed(text);
  return given !== null && given !== "" && normalizeMath(given) === normalizeMath(expected) ? 1 : 0;
}
