// Python's str() and repr() of template values. Text printed here reaches the model, so every character counts.
import {
  Callable,
  Generator,
  isDict,
  isList,
  Namespace,
  Tuple,
  typeFault,
  typeName,
  Undefined,
  type Value,
  View,
} from "./values.ts";

/** What {{ value }} prints. */
export function textOf(value: Value): string {
  if (typeof value === "string") return value;
  if (value instanceof Undefined) return "";
  return reprOf(value);
}

export function reprOf(value: Value): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return floatText(value);
  if (typeof value === "string") return quoted(value);
  if (value instanceof Undefined) return "Undefined";
  if (isList(value)) return `[${value.map(reprOf).join(", ")}]`;
  if (isDict(value)) return `{${[...value].map(([key, item]) => `${reprOf(key)}: ${reprOf(item)}`).join(", ")}}`;
  if (value instanceof Tuple) {
    return value.items.length === 1 ? `(${reprOf(value.items[0]!)},)` : `(${value.items.map(reprOf).join(", ")})`;
  }
  if (value instanceof View) return `${value.label}([${value.items.map(reprOf).join(", ")}])`;
  if (value instanceof Namespace) return `<Namespace ${reprOf(value.attributes)}>`;
  // Python would print a memory address, which no two renders share.
  if (value instanceof Callable || value instanceof Generator) {
    throw typeFault(`a ${typeName(value)} has no text`);
  }
  return value satisfies never;
}

/** Shortest text that reads back as the same double; exponent form below 1e-4 and from 1e16 on. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa = "", power = "0"] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const exponent = Number(power);
  const sign = value < 0 ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
    const exponentText = `${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
    return `${sign}${digits[0]}${fraction}e${exponentText}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}

const escapes: ReadonlyMap<string, string> = new Map([
  ["\\", "\\\\"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let result = quote;
  for (const character of text) {
    const escaped = escapes.get(character);
    if (escaped !== undefined) result += escaped;
    else if (character === quote) result += `\\${quote}`;
    else result += /^[^\p{C}\p{Z}]$/u.test(character) || character === " " ? character : codeEscape(character);
  }
  return result + quote;
}

function codeEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code <= 0xff) return `\\x${hex.padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}
