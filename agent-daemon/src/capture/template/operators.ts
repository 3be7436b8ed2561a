// Python's operators on template values. Whatever Python refuses (text + list, text + None) is refused here too.
import { compareText } from "./pythonJson.ts";
import { reprOf, textOf } from "./pythonText.ts";
import {
  areEqual,
  asNumber,
  isDict,
  isList,
  isTrue,
  iterate,
  Tuple,
  typeFault,
  typeName,
  Undefined,
  undefinedFault,
  type Value,
} from "./values.ts";

const largestRepeat = 10_000_000;
const largestExponent = 10_000n;

/** Everything but `and` and `or`, which do not always evaluate their right side. */
export function applyBinary(operator: string, left: Value, right: Value): Value {
  switch (operator) {
    case "~":
      return textOf(left) + textOf(right);
    case "==":
      return areEqual(left, right);
    case "!=":
      return !areEqual(left, right);
    case "in":
      return contains(right, left);
    case "not in":
      return !contains(right, left);
    case "<":
      return compare(operator, left, right) < 0;
    case "<=":
      return compare(operator, left, right) <= 0;
    case ">":
      return compare(operator, left, right) > 0;
    case ">=":
      return compare(operator, left, right) >= 0;
    case "+":
    case "-":
    case "*":
    case "/":
    case "//":
    case "%":
    case "**":
      return arithmetic(operator, left, right);
    default:
      throw typeFault(`the operator ${operator} is not known`);
  }
}

export function applyUnary(operator: string, value: Value): Value {
  if (operator === "not") return !isTrue(value);
  if (value instanceof Undefined) throw undefinedFault(value);
  const number = asNumber(value);
  if (number === undefined) throw typeFault(`bad operand type for unary ${operator}: '${typeName(value)}'`);
  return operator === "-" ? -number : number;
}

function arithmetic(operator: "+" | "-" | "*" | "/" | "//" | "%" | "**", left: Value, right: Value): Value {
  if (left instanceof Undefined) throw undefinedFault(left);
  if (right instanceof Undefined) throw undefinedFault(right);
  const [a, b] = [asNumber(left), asNumber(right)];
  if (a !== undefined && b !== undefined) {
    if (typeof a === "bigint" && typeof b === "bigint" && operator !== "/") return integers(operator, a, b);
    return floats(operator, Number(a), Number(b));
  }
  if (operator === "+") {
    if (typeof left === "string" && typeof right === "string") return left + right;
    if (isList(left) && isList(right)) return [...left, ...right];
    if (left instanceof Tuple && right instanceof Tuple) return new Tuple([...left.items, ...right.items]);
    if (typeof left === "string") throw typeFault(`can only concatenate str (not "${typeName(right)}") to str`);
  }
  if (operator === "*") {
    const repeated = repeat(left, b) ?? repeat(right, a);
    if (repeated !== undefined) return repeated;
  }
  if (operator === "%" && typeof left === "string") return formatPercent(left, right);
  throw typeFault(`unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`);
}

function integers(operator: string, a: bigint, b: bigint): Value {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "**":
      if (b < 0n) return Number(a) ** Number(b);
      if (b > largestExponent) throw typeFault("the exponent is too large");
      return a ** b;
  }
  if (b === 0n) throw typeFault("integer modulo by zero");
  const remainder = a % b;
  const isUneven = remainder !== 0n && remainder < 0n !== b < 0n;
  if (operator === "%") return isUneven ? remainder + b : remainder;
  return isUneven ? a / b - 1n : a / b;
}

function floats(operator: string, a: number, b: number): number {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "**":
      return a ** b;
  }
  if (b === 0) throw typeFault("division by zero");
  if (operator === "/") return a / b;
  if (operator === "//") return Math.floor(a / b);
  const remainder = a % b;
  return remainder !== 0 && remainder < 0 !== b < 0 ? remainder + b : remainder;
}

function repeat(value: Value, times: bigint | number | undefined): Value | undefined {
  if (typeof times !== "bigint") return undefined;
  const size = typeof value === "string" ? value.length : isList(value) ? value.length : undefined;
  if (size === undefined) return undefined;
  const count = times < 0n ? 0 : Number(times);
  if (size * count > largestRepeat) throw typeFault("the repeated value is too large");
  if (typeof value === "string") return value.repeat(count);
  return isList(value) ? Array.from({ length: count }, () => value).flat() : undefined;
}

export function contains(container: Value, item: Value): boolean {
  if (typeof container === "string") {
    if (typeof item === "string") return container.includes(item);
    if (item instanceof Undefined) throw typeFault("'in <string>' requires string as left operand, not Undefined");
    throw typeFault(`'in <string>' requires string as left operand, not ${typeName(item)}`);
  }
  if (isDict(container)) return container.has(item);
  if (container === null || typeof container !== "object") {
    throw typeFault(`argument of type '${typeName(container)}' is not iterable`);
  }
  for (const entry of iterate(container)) if (areEqual(entry, item)) return true;
  return false;
}

/** Negative, 0 or positive; NaN compares false with everything, so it gives NaN. */
export function compare(operator: string, left: Value, right: Value): number {
  if (left instanceof Undefined) throw undefinedFault(left);
  if (right instanceof Undefined) throw undefinedFault(right);
  const [a, b] = [asNumber(left), asNumber(right)];
  if (a !== undefined && b !== undefined) {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (typeof left === "string" && typeof right === "string") return compareText(left, right);
  const [first, second] = [sequence(left), sequence(right)];
  if (first && second && isList(left) === isList(right)) {
    for (let index = 0; index < Math.min(first.length, second.length); index++) {
      const [x, y] = [first[index] ?? null, second[index] ?? null];
      if (!areEqual(x, y)) return compare(operator, x, y);
    }
    return first.length - second.length;
  }
  throw typeFault(`'${operator}' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`);
}

function sequence(value: Value): readonly Value[] | undefined {
  return isList(value) ? value : value instanceof Tuple ? value.items : undefined;
}

/** The common part of Python's % formatting: %s, %r, %d, %f with a precision, %%. */
export function formatPercent(format: string, values: Value): string {
  const args = values instanceof Tuple ? [...values.items] : [values];
  const text = format.replace(/%(?:\.(\d+))?(.)/g, (whole, precision: string | undefined, kind: string) => {
    if (kind === "%") return "%";
    const value = args.shift();
    if (value === undefined) throw typeFault("not enough arguments for format string");
    const number = asNumber(value);
    if (kind === "s" && precision === undefined) return textOf(value);
    if (kind === "r" && precision === undefined) return reprOf(value);
    if ((kind === "d" || kind === "i") && number !== undefined)
      return typeof number === "bigint" ? `${number}` : BigInt(Math.trunc(number)).toString();
    if (kind === "f" && number !== undefined) return Number(number).toFixed(Number(precision ?? "6"));
    throw typeFault(`the format ${whole} is not supported for ${typeName(value)}`);
  });
  if (args.length > 0 && !isDict(values)) throw typeFault("not all arguments converted during string formatting");
  return text;
}
