// Documents as JSON text and back, exactly: integers of any size, NaN, infinities, −0 and bytes survive. It must never
// change a value on the way; what JSON has no word for becomes an object with one key that begins with "$".
import { parse, stringify } from "lossless-json";

/** Anything a document is made of. */
export type DocumentValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Uint8Array
  | readonly DocumentValue[]
  | { readonly [key: string]: DocumentValue };

const smallestInt64 = -(2n ** 63n);
const largestInt64 = 2n ** 63n - 1n;

/** A whole number of 16 or more digits that is not part of a fraction or an exponent: JSON.parse might change it. */
const longInteger = /(?<![.\d])\d{16,}(?![.\deE])/;

/** Keys with a value of undefined are left out, as JSON does; a bigint that a number can hold comes back as a number. */
export function encodeDocument(value: unknown): string {
  const state = { bigint: false };
  const plain = toPlain(value, state);
  return (state.bigint ? stringify(plain) : JSON.stringify(plain)) as string;
}

/** Throws SyntaxError when the text is not JSON. */
export function decodeDocument(text: string): unknown {
  const parsed = longInteger.test(text) ? parse(text, undefined, parseNumber) : JSON.parse(text);
  return fromPlain(parsed);
}

function parseNumber(text: string): number | bigint {
  if (!/^-?\d+$/.test(text)) return Number(text);
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : BigInt(text);
}

function toPlain(value: unknown, state: { bigint: boolean }): unknown {
  if (typeof value === "number") return plainNumber(value);
  if (typeof value === "bigint") {
    const number = Number(value);
    if (Number.isSafeInteger(number)) return number;
    // Inside SQLite an integer beyond 64 bits would lose digits.
    if (value < smallestInt64 || value > largestInt64) return { $int: `${value}` };
    state.bigint = true;
    return value;
  }
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array)
    return { $bytes: Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64") };
  if (Array.isArray(value)) return value.map((item) => toPlain(item, state));
  const plain = copyEntries(value as { readonly [key: string]: unknown }, (item) => toPlain(item, state));
  return isMarked(plain) ? { $object: plain } : plain;
}

function plainNumber(value: number): unknown {
  if (Number.isFinite(value)) {
    if (Object.is(value, -0)) return { $number: "-0" };
    // Whole numbers this large are written by JSON like exact integers, which they need not be.
    return Math.abs(value) > Number.MAX_SAFE_INTEGER && Math.abs(value) < 1e21 && Number.isInteger(value)
      ? { $number: `${value}` }
      : value;
  }
  return { $number: `${value}` };
}

function fromPlain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = fromPlain(value[i]);
    return value;
  }
  const object = value as { [key: string]: unknown };
  if (isMarked(object)) {
    if (typeof object["$number"] === "string") return Number(object["$number"]);
    if (typeof object["$int"] === "string") return BigInt(object["$int"]);
    if (typeof object["$bytes"] === "string") return new Uint8Array(Buffer.from(object["$bytes"], "base64"));
    if (typeof object["$object"] === "object" && object["$object"] !== null) {
      return copyEntries(object["$object"] as { [key: string]: unknown }, fromPlain);
    }
  }
  return copyEntries(object, fromPlain);
}

function isMarked(object: { readonly [key: string]: unknown }): boolean {
  let keys = 0;
  let marked = false;
  for (const key in object) {
    keys++;
    if (keys > 1) return false;
    marked = key.startsWith("$");
  }
  return marked;
}

/** A key named __proto__ is data like any other. */
function copyEntries(
  object: { readonly [key: string]: unknown },
  copy: (value: unknown) => unknown,
): { [key: string]: unknown } {
  const result: { [key: string]: unknown } = {};
  for (const key of Object.keys(object)) {
    const item = copy(object[key]);
    if (key === "__proto__") {
      Object.defineProperty(result, key, { value: item, enumerable: true, configurable: true, writable: true });
    } else {
      result[key] = item;
    }
  }
  return result;
}
