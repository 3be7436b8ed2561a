// The values a chat template computes with: Python's, because templates are written for Python. Integers are bigint, floats
// are number, so that 1 and 1.0 stay apart. Nothing here may change a value that came in.

export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | readonly Value[]
  | Tuple
  | Dict
  | Undefined
  | View
  | Generator
  | Namespace
  | Callable;

/** Insertion-ordered, like Python's. */
export type Dict = ReadonlyMap<Value, Value>;

export class Tuple {
  readonly items: readonly Value[];
  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** Jinja's default undefined: prints as nothing, is empty and false, and fails on almost everything else. */
export class Undefined {
  /** What the failure will say. */
  readonly hint: string;
  constructor(hint: string) {
    this.hint = hint;
  }
}

/** dict.items(), keys() or values(). */
export class View {
  readonly label: "dict_items" | "dict_keys" | "dict_values";
  readonly items: readonly Value[];
  constructor(label: View["label"], items: readonly Value[]) {
    this.label = label;
    this.items = items;
  }
}

/** What select, reject, map and their kind return: iterable once, without a length, always true. */
export class Generator {
  private readonly source: Iterator<Value>;
  constructor(source: Iterable<Value>) {
    this.source = source[Symbol.iterator]();
  }
  *drain(): Iterable<Value> {
    for (let next = this.source.next(); next.done !== true; next = this.source.next()) yield next.value;
  }
}

export class Namespace {
  readonly attributes = new Map<string, Value>();
}

export interface Arguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

export class Callable {
  readonly name: string;
  readonly call: (args: Arguments) => Value;
  constructor(name: string, call: (args: Arguments) => Value) {
    this.name = name;
    this.call = call;
  }
}

/** Why rendering stopped, as the reference tells them apart. */
export type FaultKind = "raised_by_template" | "undefined_value" | "runtime_type" | "recursion";

export class TemplateFault extends Error {
  readonly kind: FaultKind;
  constructor(kind: FaultKind, message: string) {
    super(message);
    this.name = "TemplateFault";
    this.kind = kind;
  }
}

export function typeFault(message: string): TemplateFault {
  return new TemplateFault("runtime_type", message);
}

export function undefinedFault(value: Undefined): TemplateFault {
  return new TemplateFault("undefined_value", value.hint);
}

export function isDict(value: Value): value is Dict {
  return value instanceof Map;
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** Python's name of the value's type. */
export function typeName(value: Value): string {
  if (value === null) return "NoneType";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return "float";
  if (typeof value === "string") return "str";
  if (isList(value)) return "list";
  if (isDict(value)) return "dict";
  if (value instanceof Tuple) return "tuple";
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof View) return value.label;
  if (value instanceof Generator) return "generator";
  if (value instanceof Namespace) return "Namespace";
  return "function";
}

export function isTrue(value: Value): boolean {
  if (value === null || value instanceof Undefined) return false;
  if (typeof value === "object") {
    if (isList(value)) return value.length > 0;
    if (isDict(value)) return value.size > 0;
    if (value instanceof Tuple || value instanceof View) return value.items.length > 0;
    return true;
  }
  return Boolean(value);
}

/** int, float or bool as Python's numbers see it: bool counts as 0 and 1. */
export function asNumber(value: Value): bigint | number | undefined {
  if (typeof value === "bigint" || typeof value === "number") return value;
  if (typeof value === "boolean") return value ? 1n : 0n;
  return undefined;
}

export function areEqual(left: Value, right: Value): boolean {
  if (left === right) return true;
  const [a, b] = [asNumber(left), asNumber(right)];
  // biome-ignore lint/suspicious/noDoubleEquals: 1n == 1 is Python's 1 == 1.0
  if (a !== undefined && b !== undefined) return a == b;
  if (left instanceof Undefined) return right instanceof Undefined;
  if (isList(left)) return isList(right) && areEqualItems(left, right);
  if (left instanceof Tuple) return right instanceof Tuple && areEqualItems(left.items, right.items);
  if (!isDict(left) || !isDict(right) || left.size !== right.size) return false;
  for (const [key, value] of left) {
    const other = right.get(key);
    if (other === undefined || !areEqual(value, other)) return false;
  }
  return true;
}

function areEqualItems(left: readonly Value[], right: readonly Value[]): boolean {
  return left.length === right.length && left.every((item, index) => areEqual(item, right[index] ?? null));
}

/** Items in Python's iteration order: a text gives its characters, a dict its keys, undefined nothing. */
export function iterate(value: Value): Iterable<Value> {
  if (typeof value === "string") return value;
  if (isList(value)) return value;
  if (isDict(value)) return value.keys();
  if (value instanceof Tuple || value instanceof View) return value.items;
  if (value instanceof Generator) return value.drain();
  if (value instanceof Undefined) return [];
  throw typeFault(`'${typeName(value)}' object is not iterable`);
}

/** Python's len(): characters are code points. */
export function lengthOf(value: Value): number {
  if (typeof value === "string") return codePointCount(value);
  if (isList(value)) return value.length;
  if (isDict(value)) return value.size;
  if (value instanceof Tuple || value instanceof View) return value.items.length;
  if (value instanceof Undefined) return 0;
  throw typeFault(`object of type '${typeName(value)}' has no len()`);
}

const surrogate = /[\ud800-\udfff]/;

export function codePointCount(text: string): number {
  if (!surrogate.test(text)) return text.length;
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** The text as a list of code points; a plain index works when there is nothing above U+FFFF. */
export function codePoints(text: string): readonly string[] | string {
  return surrogate.test(text) ? Array.from(text) : text;
}
