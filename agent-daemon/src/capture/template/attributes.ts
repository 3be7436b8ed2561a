// foo.bar, foo["bar"] and slices, as Jinja's immutable sandbox resolves them: `.` looks for a method before a key, `[]` for a
// key before a method, what is missing is undefined, and whatever would change a value cannot be called.
import { ArgumentReader } from "./arguments.ts";
import { reprOf } from "./pythonText.ts";
import { stringMethod } from "./stringMethods.ts";
import {
  type Arguments,
  areEqual,
  Callable,
  codePoints,
  type Dict,
  isDict,
  isList,
  lengthOf,
  Namespace,
  Tuple,
  typeFault,
  typeName,
  Undefined,
  undefinedFault,
  type Value,
  View,
} from "./values.ts";

export function attributeOf(object: Value, name: string): Value {
  if (object instanceof Undefined) throw undefinedFault(object);
  const own = memberOf(object, name);
  if (own !== undefined) return own;
  const item = isDict(object) ? object.get(name) : undefined;
  return item === undefined ? missing(object, name) : item;
}

export function itemOf(object: Value, key: Value): Value {
  if (object instanceof Undefined) throw undefinedFault(object);
  if (isDict(object)) {
    const value = object.get(key);
    if (value !== undefined) return value;
  } else {
    const index = typeof key === "boolean" ? Number(key) : typeof key === "bigint" ? Number(key) : undefined;
    const value = index === undefined ? undefined : elementAt(object, index);
    if (value !== undefined) return value;
  }
  const member = typeof key === "string" ? memberOf(object, key) : undefined;
  return member === undefined ? missing(object, key) : member;
}

export function sliceOf(object: Value, start: Value, stop: Value, step: Value): Value {
  if (object instanceof Undefined) throw undefinedFault(object);
  const [from, to, by] = [bound(start), bound(stop), bound(step) ?? 1];
  if (by === 0) throw typeFault("slice step cannot be zero");
  if (typeof object === "string") return pick(codePoints(object), from, to, by).join("");
  if (isList(object)) return pick(object, from, to, by);
  if (object instanceof Tuple) return new Tuple(pick(object.items, from, to, by));
  // A type without slices is a failed look-up, hence undefined.
  return missing(object, "slice");
}

function bound(value: Value): number | undefined {
  if (value === null) return undefined;
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "boolean") return Number(value);
  if (value instanceof Undefined) throw undefinedFault(value);
  throw typeFault("slice indices must be integers or None");
}

function pick<T>(items: ArrayLike<T>, start: number | undefined, stop: number | undefined, step: number): T[] {
  const size = items.length;
  const low = step > 0 ? 0 : -1;
  const high = step > 0 ? size : size - 1;
  const clamp = (value: number): number => Math.min(Math.max(value < 0 ? value + size : value, low), high);
  const from = start === undefined ? (step > 0 ? low : high) : clamp(start);
  const to = stop === undefined ? (step > 0 ? high : low) : clamp(stop);
  const result: T[] = [];
  for (let index = from; step > 0 ? index < to : index > to; index += step) {
    const item = items[index];
    if (item !== undefined) result.push(item);
  }
  return result;
}

function elementAt(object: Value, index: number): Value | undefined {
  const items = typeof object === "string" ? codePoints(object) : isList(object) ? object : undefined;
  const source = items ?? (object instanceof Tuple ? object.items : undefined);
  return source?.[index < 0 ? source.length + index : index];
}

function missing(object: Value, key: Value): Undefined {
  const what = typeof key === "string" ? `attribute '${key}'` : `element ${reprOf(key)}`;
  return new Undefined(`'${typeName(object)} object' has no ${what}`);
}

/** Methods that change their value: the sandbox hands out something that fails when called. */
const mutators: Readonly<Record<string, readonly string[]>> = {
  dict: ["clear", "pop", "popitem", "setdefault", "update"],
  list: ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"],
};

function memberOf(object: Value, name: string): Value | undefined {
  if (object instanceof Namespace) return object.attributes.get(name);
  if (name.startsWith("_")) return undefined;
  const type = typeName(object);
  if (mutators[type]?.includes(name)) {
    return new Undefined(`access to attribute '${name}' of '${type}' object is unsafe`);
  }
  const bind = (call: (args: Arguments) => Value): Callable => new Callable(`${type}.${name}`, call);
  if (typeof object === "string") {
    const method = stringMethod(object, name);
    return method && bind(method);
  }
  if (isDict(object)) {
    const method = dictMethods[name];
    return method && bind((args) => read(`dict.${name}`, args, (reader) => method(object, reader)));
  }
  if (isList(object) || object instanceof Tuple) {
    const method = sequenceMethods[name];
    const items = isList(object) ? object : object.items;
    return method && bind((args) => read(`${type}.${name}`, args, (reader) => method(items, reader)));
  }
  return undefined;
}

function read(owner: string, args: Arguments, use: (reader: ArgumentReader) => Value): Value {
  const reader = new ArgumentReader(owner, args);
  const result = use(reader);
  reader.end();
  return result;
}

type DictMethod = (self: Dict, args: ArgumentReader) => Value;
const dictMethods: Readonly<Record<string, DictMethod | undefined>> = Object.assign(Object.create(null), {
  get: (self, args) => {
    const key = args.required("key");
    const fallback = args.withDefault("default", null);
    const value = self.get(key);
    return value === undefined ? fallback : value;
  },
  items: (self) => itemsView(self),
  keys: (self) => new View("dict_keys", [...self.keys()]),
  values: (self) => new View("dict_values", [...self.values()]),
  copy: (self) => new Map(self),
} satisfies Record<string, DictMethod>);

export function itemsView(dict: Dict): View {
  return new View(
    "dict_items",
    Array.from(dict, (entry) => new Tuple(entry)),
  );
}

type SequenceMethod = (self: readonly Value[], args: ArgumentReader) => Value;
const sequenceMethods: Readonly<Record<string, SequenceMethod | undefined>> = Object.assign(Object.create(null), {
  index: (self, args) => {
    const wanted = args.required("value");
    const index = self.findIndex((item) => areEqual(item, wanted));
    if (index < 0) throw typeFault(`${reprOf(wanted)} is not in list`);
    return BigInt(index);
  },
  count: (self, args) => {
    const wanted = args.required("value");
    return BigInt(self.filter((item) => areEqual(item, wanted)).length);
  },
  copy: (self) => [...self],
} satisfies Record<string, SequenceMethod>);

/** len() as a template integer. */
export function lengthValue(value: Value): bigint {
  return BigInt(lengthOf(value));
}
