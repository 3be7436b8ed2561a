// Numbers in running text, and the verifier that asks for the last one. Numbers are compared as exact decimals, never as
// floating point. All of it takes time linear in the text.
//
// What counts as one number:
// - digits, with thousands groups when every group after the first has three digits (`1,250,000`; `3,12` is two numbers);
// - a fraction after one point that digits follow (`29.00`, `.5`; a full stop is not part of it), an exponent (`2e-5`);
// - a minus sign (-, − or –) that touches it or its currency sign, unless something is being subtracted from (`5-3`).
import { RollscopeError } from "../../../../protocol/errors.ts";

export interface FoundNumber {
  /** The exact value in one spelling: no leading or trailing zeros, no commas, `-` only when not 0. */
  readonly value: string;
  /** Range in the text, sign included. */
  readonly start: number;
  readonly end: number;
}

/** What a task file may hold as the right answer. */
export type Reference = string | number | bigint;

const isDigit = (code: number) => code >= 48 && code <= 57;

/** One spelling for each value: sign, digits without zeros at either end, and a power of ten where digits alone would not do. */
function canonical(negative: boolean, whole: string, fraction: string, exponent: bigint): string {
  let digits = whole + fraction;
  let power = exponent - BigInt(fraction.length);
  let first = 0;
  while (first < digits.length && digits.charCodeAt(first) === 48) first++;
  let last = digits.length;
  while (last > first && digits.charCodeAt(last - 1) === 48) last--;
  power += BigInt(digits.length - last);
  digits = digits.slice(first, last);
  if (digits === "") return "0";
  const sign = negative ? "-" : "";
  if (power >= 0n && power <= 40n) return sign + digits + "0".repeat(Number(power));
  if (power < 0n && power >= -40n) {
    const places = Number(-power);
    const padded = digits.padStart(places + 1, "0");
    return `${sign}${padded.slice(0, -places)}.${padded.slice(-places)}`;
  }
  return `${sign}${digits}e${power}`;
}

/** Where the sign before a number at `start` stands, or −1. */
function findMinus(text: string, start: number, floor: number): number {
  let at = start - 1;
  if (at >= floor && "$€£¥".includes(text[at]!)) {
    at--;
    if (at >= floor && text[at] === "\\") at--;
  }
  if (at < floor || !"-−–".includes(text[at]!)) return -1;
  const before = at > 0 ? text[at - 1]! : " ";
  return /[\p{L}\p{N})\]}%]/u.test(before) ? -1 : at;
}

/** Every number of a text, in order. */
export function* numbersIn(text: string): Generator<FoundNumber> {
  const groups = /\d+(?:,\d+)*/y;
  const fractionAt = /\.(\d+)/y;
  const exponentAt = /[eE]([+-]?\d{1,15})(?![\p{L}\d])/uy;
  let floor = 0;
  for (let at = 0; at < text.length; ) {
    const leadingPoint = text[at] === "." && isDigit(text.charCodeAt(at + 1)) && !isDigit(text.charCodeAt(at - 1));
    if (!leadingPoint && !isDigit(text.charCodeAt(at))) {
      at++;
      continue;
    }
    const start = at;
    let whole = "";
    let hasFraction = true;
    if (!leadingPoint) {
      groups.lastIndex = at;
      const run = groups.exec(text)![0];
      const parts = run.split(",");
      const first = parts[0]!;
      const grouped =
        parts.length > 1 && first.length <= 3 && first[0] !== "0" && parts.slice(1).every((part) => part.length === 3);
      if (parts.length > 1 && !grouped) {
        // A list: its members but the last have no fraction of their own, since a comma follows them.
        for (const part of parts.slice(0, -1)) {
          yield number(text, at, at + part.length, part, "", 0n, floor);
          at += part.length + 1;
          floor = at;
        }
        continue;
      }
      whole = parts.join("");
      at += run.length;
      hasFraction = true;
    }
    let fraction = "";
    if (hasFraction) {
      fractionAt.lastIndex = at;
      const found = fractionAt.exec(text);
      if (found) {
        fraction = found[1]!;
        at += found[0].length;
      }
    }
    let exponent = 0n;
    exponentAt.lastIndex = at;
    const power = exponentAt.exec(text);
    if (power) {
      exponent = BigInt(power[1]!.replace("+", ""));
      at += power[0].length;
    }
    yield number(text, start, at, whole, fraction, exponent, floor);
    floor = at;
  }
}

function number(
  text: string,
  start: number,
  end: number,
  whole: string,
  fraction: string,
  exponent: bigint,
  floor: number,
): FoundNumber {
  const minus = findMinus(text, start, floor);
  const value = canonical(minus >= 0, whole, fraction, exponent);
  return { value, start: minus >= 0 ? minus : start, end };
}

/** The first number of a text, or null. */
export function firstNumber(text: string): string | null {
  for (const found of numbersIn(text)) return found.value;
  return null;
}

/**
 * The number a text answers with: the first one after its last `=`, and where it has no `=`, or no number after that, its
 * last number. null when it has none.
 */
export function extractNumber(text: string): string | null {
  const equals = text.lastIndexOf("=");
  let last: FoundNumber | null = null;
  for (const found of numbersIn(text)) {
    if (equals >= 0 && found.start > equals) return found.value;
    last = found;
  }
  return last?.value ?? null;
}

/**
 * The right answer as a number: a number, or text with exactly one.
 * @throws VERIFIER_REFERENCE_INVALID
 */
export function referenceNumber(reference: Reference): string {
  const found = [...numbersIn(String(reference))];
  if (found.length === 1) return found[0]!.value;
  throw new RollscopeError(
    "VERIFIER_REFERENCE_INVALID",
    `The right answer ${JSON.stringify(String(reference).slice(0, 80))} is not one number.`,
    { next: "Correct the row of the task file, or use a verifier for text." },
  );
}

/** 1 when the text answers (see extractNumber) with the reference, else 0. */
export function scoreNumber(text: string, reference: Reference): number {
  return extractNumber(text) === referenceNumber(reference) ? 1 : 0;
}
