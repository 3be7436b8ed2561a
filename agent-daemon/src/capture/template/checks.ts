// Jinja's tests: what stands after `is`, and what select, reject and their kind take by name.
import { ArgumentReader } from "./arguments.ts";
import { compare, contains } from "./operators.ts";
import { textOf } from "./pythonText.ts";
import {
  type Arguments,
  areEqual,
  asNumber,
  Callable,
  isDict,
  isList,
  Namespace,
  Tuple,
  typeFault,
  Undefined,
  type Value,
  View,
} from "./values.ts";

type Check = (value: Value, args: ArgumentReader) => boolean;

const isIterable = (value: Value): boolean =>
  typeof value === "string" ||
  (typeof value === "object" && value !== null && !(value instanceof Callable) && !(value instanceof Namespace));

const remainder = (value: Value, by: Value): number => {
  const [a, b] = [asNumber(value), asNumber(by)];
  if (a === undefined || b === undefined) throw typeFault("this test needs numbers");
  if (Number(b) === 0) throw typeFault("integer modulo by zero");
  return typeof a === "bigint" && typeof b === "bigint" ? Number(a % b) : Number(a) % Number(b);
};

const equal: Check = (value, args) => areEqual(value, args.required("other"));
const ordered =
  (operator: string, holds: (order: number) => boolean): Check =>
  (value, args) =>
    holds(compare(operator, value, args.required("other")));
const lessThan = ordered("<", (order) => order < 0);
const lessOrEqual = ordered("<=", (order) => order <= 0);
const greaterThan = ordered(">", (order) => order > 0);
const greaterOrEqual = ordered(">=", (order) => order >= 0);
const notEqual: Check = (value, args) => !areEqual(value, args.required("other"));

const checks: ReadonlyMap<string, Check> = new Map<string, Check>([
  ["defined", (value) => !(value instanceof Undefined)],
  ["undefined", (value) => value instanceof Undefined],
  ["none", (value) => value === null],
  ["boolean", (value) => typeof value === "boolean"],
  ["true", (value) => value === true],
  ["false", (value) => value === false],
  ["integer", (value) => typeof value === "bigint"],
  ["float", (value) => typeof value === "number"],
  ["number", (value) => asNumber(value) !== undefined],
  ["string", (value) => typeof value === "string"],
  ["mapping", (value) => isDict(value)],
  ["iterable", isIterable],
  [
    "sequence",
    (value) =>
      typeof value === "string" ||
      isList(value) ||
      isDict(value) ||
      value instanceof Tuple ||
      value instanceof Undefined,
  ],
  ["callable", (value) => value instanceof Callable],
  ["escaped", () => false],
  ["lower", (value) => textOf(value) === textOf(value).toLowerCase() && /\p{Ll}/u.test(textOf(value))],
  ["upper", (value) => textOf(value) === textOf(value).toUpperCase() && /\p{Lu}/u.test(textOf(value))],
  ["odd", (value) => Math.abs(remainder(value, 2n)) === 1],
  ["even", (value) => remainder(value, 2n) === 0],
  ["divisibleby", (value, args) => remainder(value, args.required("num")) === 0],
  ["sameas", (value, args) => isSame(value, args.required("other"))],
  ["in", (value, args) => contains(args.required("seq"), value)],
  ["eq", equal],
  ["equalto", equal],
  ["==", equal],
  ["ne", notEqual],
  ["!=", notEqual],
  ["lt", lessThan],
  ["lessthan", lessThan],
  ["<", lessThan],
  ["le", lessOrEqual],
  ["<=", lessOrEqual],
  ["gt", greaterThan],
  ["greaterthan", greaterThan],
  [">", greaterThan],
  ["ge", greaterOrEqual],
  [">=", greaterOrEqual],
]);

export function isCheck(name: string): boolean {
  return checks.has(name);
}

export function applyCheck(name: string, value: Value, args: Arguments): boolean {
  const check = checks.get(name);
  if (!check) throw typeFault(`No test named '${name}'.`);
  const reader = new ArgumentReader(name, args);
  const holds = check(value, reader);
  reader.end();
  return holds;
}

/** Python's `is`, as far as it is defined by value: small constants are the same object, containers are their own. */
function isSame(left: Value, right: Value): boolean {
  return left === right && typeof left === typeof right && !(left instanceof View);
}
