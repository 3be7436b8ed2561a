// Jinja's filters, those that templates use: each one as the reference computes it, on Python's values.
import { ArgumentReader } from "./arguments.ts";
import { attributeOf, itemOf, itemsView, lengthValue } from "./attributes.ts";
import { applyCheck } from "./checks.ts";
import { applyBinary, compare, formatPercent } from "./operators.ts";
import { type WriteOptions, writeJson } from "./pythonJson.ts";
import { textOf } from "./pythonText.ts";
import { capitalize, replaceText, splitLines, strip } from "./stringMethods.ts";
import {
  type Arguments,
  areEqual,
  asNumber,
  type Dict,
  Generator,
  isDict,
  isList,
  isTrue,
  iterate,
  Tuple,
  typeFault,
  typeName,
  Undefined,
  type Value,
  View,
} from "./values.ts";

type Filter = (value: Value, args: ArgumentReader) => Value;

const collect = (value: Value): Value[] => [...iterate(value)];
const noArguments: Arguments = { positional: [], named: new Map() };

/** A dotted path, an integer or a name, as `attribute=` takes it; each step like foo[step]. */
function byPath(value: Value, path: Value, fallback?: Value): Value {
  const steps: Value[] =
    typeof path === "string"
      ? path.split(".").map((step) => (/^\d+$/.test(step) ? BigInt(step) : step))
      : path === null
        ? []
        : [path];
  const found = steps.reduce((current: Value, step) => itemOf(current, step), value);
  return found instanceof Undefined && fallback !== undefined ? fallback : found;
}

function textKey(value: Value, caseSensitive: boolean): Value {
  return typeof value === "string" && !caseSensitive ? value.toLowerCase() : value;
}

function sorted(items: readonly Value[], key: (item: Value) => Value, reverse: boolean): Value[] {
  const keyed = items.map((item) => [key(item), item] as const);
  keyed.sort(([a], [b]) => (reverse ? -compare("<", a, b) : compare("<", a, b)));
  return keyed.map(([, item]) => item);
}

function extreme(value: Value, args: ArgumentReader, wanted: 1 | -1): Value {
  const caseSensitive = isTrue(args.optional("case_sensitive") ?? false);
  const path = args.optional("attribute") ?? null;
  const key = (item: Value): Value => textKey(byPath(item, path), caseSensitive);
  const [first, ...rest] = collect(value);
  if (first === undefined) return new Undefined("No aggregated item, sequence was empty.");
  return rest.reduce((best, item) => (Math.sign(compare("<", key(item), key(best))) === wanted ? item : best), first);
}

/** select, reject, selectattr, rejectattr: the first argument of the attr forms is the path, the next the test's name. */
function selection(keep: boolean, byAttribute: boolean): FilterWithArguments {
  return (value, { positional, named }) => {
    const rest = [...positional];
    const path = byAttribute ? rest.shift() : undefined;
    if (byAttribute && path === undefined) throw typeFault("Missing parameter for attribute name");
    const check = rest.shift();
    const args: Arguments = { positional: rest, named };
    const holds = (item: Value): boolean => {
      const subject = path === undefined ? item : byPath(item, path);
      return check === undefined ? isTrue(subject) : applyCheck(textOf(check), subject, args);
    };
    return new Generator(lazily(iterate(value), (item) => (holds(item) === keep ? [item] : [])));
  };
}

function* lazily(items: Iterable<Value>, use: (item: Value) => Iterable<Value>): Iterable<Value> {
  for (const item of items) yield* use(item);
}

const mapFilter: FilterWithArguments = (value, { positional, named }) => {
  const attribute = named.get("attribute");
  if (positional.length === 0 && attribute !== undefined) {
    const fallback = named.get("default");
    return new Generator(lazily(iterate(value), (item) => [byPath(item, attribute, fallback)]));
  }
  const [name, ...rest] = positional;
  if (name === undefined) throw typeFault("map requires a filter argument");
  return new Generator(
    lazily(iterate(value), (item) => [applyFilter(textOf(name), item, { positional: rest, named })]),
  );
};

const toJson: Filter = (value, args) => {
  const ensureAscii = isTrue(args.optional("ensure_ascii") ?? false);
  const indent = args.optional("indent") ?? null;
  const separators = args.optional("separators") ?? null;
  const options: WriteOptions = {
    ensureAscii,
    indent:
      typeof indent === "bigint" ? " ".repeat(Math.max(Number(indent), 0)) : indent === null ? null : textOf(indent),
    separators: separators === null ? null : pairOfTexts(separators),
    sortKeys: isTrue(args.optional("sort_keys") ?? false),
  };
  return writeJson(value, options);
};

function pairOfTexts(value: Value): [string, string] {
  const [item, key, ...rest] = collect(value);
  if (typeof item !== "string" || typeof key !== "string" || rest.length > 0) {
    throw typeFault("separators must be a pair of texts");
  }
  return [item, key];
}

const indent: Filter = (value, args) => {
  const width = args.optional("width") ?? 4n;
  const first = isTrue(args.optional("first") ?? false);
  const blank = isTrue(args.optional("blank") ?? false);
  const margin = typeof width === "string" ? width : " ".repeat(Number(asNumber(width) ?? 0));
  const [head = "", ...rest] = splitLines(`${textOf(value)}\n`);
  const tail = rest.map((line) => `\n${line !== "" || blank ? margin : ""}${line}`).join("");
  return (first ? margin : "") + head + tail;
};

const round: Filter = (value, args) => {
  const precision = args.optionalInteger("precision") ?? 0;
  const method = args.optionalText("method") ?? "common";
  const number = asNumber(value);
  if (number === undefined) throw typeFault(`type ${typeName(value)} doesn't define __round__ method`);
  const scale = 10 ** precision;
  if (method === "ceil") return Math.ceil(Number(number) * scale) / scale;
  if (method === "floor") return Math.floor(Number(number) * scale) / scale;
  if (method !== "common") throw typeFault("method must be common, ceil or floor");
  if (typeof number === "bigint") return number;
  // Python rounds half to even, on the exact binary value.
  const scaled = number * scale;
  const near = Math.round(scaled);
  const isTie = Math.abs(scaled - Math.trunc(scaled)) === 0.5;
  return (isTie && near % 2 !== 0 ? near - 1 : near) / scale;
};

const title: Filter = (value) =>
  textOf(value)
    .split(/([-\s({[<]+)/u)
    .map(capitalize)
    .join("");

const toInteger: Filter = (value, args) => {
  const fallback = args.withDefault("default", 0n);
  const base = args.optionalInteger("base") ?? 10;
  const number = asNumber(value);
  if (typeof number === "bigint") return number;
  if (typeof number === "number") return Number.isFinite(number) ? BigInt(Math.trunc(number)) : fallback;
  if (typeof value !== "string") return fallback;
  const text = strip(value, undefined, "both").replace(/(?<=\d)_(?=\d)/g, "");
  if (base === 10 && /^[+-]?\d+$/.test(text)) return BigInt(text.replace("+", ""));
  const parsed = base === 10 ? pythonFloat(text) : Number.parseInt(text, base);
  return parsed !== undefined && Number.isFinite(parsed) ? BigInt(Math.trunc(parsed)) : fallback;
};

function floatOr(text: string, fallback: Value): Value {
  const parsed = pythonFloat(strip(text, undefined, "both"));
  return parsed === undefined ? fallback : parsed;
}

function pythonFloat(text: string): number | undefined {
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined;
}

const toFloat: Filter = (value, args) => {
  const fallback = args.withDefault("default", 0);
  const number = asNumber(value);
  if (number !== undefined) return Number(number);
  return typeof value === "string" ? floatOr(value, fallback) : fallback;
};

const groupBy: Filter = (value, args) => {
  const path = args.required("attribute");
  const fallback = args.optional("default");
  const caseSensitive = isTrue(args.optional("case_sensitive") ?? false);
  const key = (item: Value): Value => textKey(byPath(item, path, fallback), caseSensitive);
  const groups: [Value, Value[]][] = [];
  for (const item of sorted(collect(value), key, false)) {
    const last = groups.at(-1);
    if (last && areEqual(last[0], key(item))) last[1].push(item);
    else groups.push([key(item), [item]]);
  }
  return groups.map(([, items]) => new Tuple([byPath(items[0] ?? null, path, fallback), items]));
};

const batch: Filter = (value, args) => {
  const size = args.optionalInteger("linecount") ?? 1;
  const fill = args.optional("fill_with") ?? null;
  const items = collect(value);
  const rows: Value[][] = [];
  for (let at = 0; at < items.length; at += Math.max(size, 1)) rows.push(items.slice(at, at + size));
  const last = rows.at(-1);
  if (fill !== null) while (last && last.length < size) last.push(fill);
  return new Generator(rows);
};

const dictSort: Filter = (value, args) => {
  const caseSensitive = isTrue(args.optional("case_sensitive") ?? false);
  const by = args.optionalText("by") ?? "key";
  const reverse = isTrue(args.optional("reverse") ?? false);
  if (by !== "key" && by !== "value") throw typeFault('You can only sort by either "key" or "value"');
  const entries = collect(itemsView(asDict(value)));
  const key = (entry: Value): Value => textKey(itemOf(entry, by === "key" ? 0n : 1n), caseSensitive);
  return sorted(entries, key, reverse);
};

function asDict(value: Value): Dict {
  if (isDict(value)) return value;
  throw typeFault("Can only get item pairs from a mapping.");
}

const unique: Filter = (value, args) => {
  const caseSensitive = isTrue(args.optional("case_sensitive") ?? false);
  const path = args.optional("attribute") ?? null;
  const seen: Value[] = [];
  return new Generator(
    lazily(iterate(value), (item) => {
      const key = textKey(byPath(item, path), caseSensitive);
      if (seen.some((other) => areEqual(other, key))) return [];
      seen.push(key);
      return [item];
    }),
  );
};

const sum: Filter = (value, args) => {
  const path = args.optional("attribute") ?? null;
  const start = args.withDefault("start", 0n);
  return collect(value).reduce((total, item) => applyBinary("+", total, byPath(item, path)), start);
};

const reversed: Filter = (value) => {
  if (typeof value === "string") return Array.from(value).reverse().join("");
  if (value instanceof Generator || value instanceof Undefined) throw typeFault("argument must be iterable");
  return new Generator(collect(value).reverse());
};

const last: Filter = (value) => {
  if (value instanceof Generator) throw typeFault("'generator' object is not reversible");
  return collect(value).at(-1) ?? new Undefined("No last item, sequence was empty.");
};

const defaultFilter: Filter = (value, args) => {
  const fallback = args.withDefault("default_value", "");
  const whenFalse = isTrue(args.optional("boolean") ?? false);
  return value instanceof Undefined || (whenFalse && !isTrue(value)) ? fallback : value;
};

const htmlEntities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "'": "&#39;",
  '"': "&#34;",
};
const escapeHtml: Filter = (value) => textOf(value).replace(/[&<>'"]/g, (character) => htmlEntities[character] ?? "");

const simple: Readonly<Record<string, Filter>> = {
  abs: (value) => {
    const number = asNumber(value);
    if (number === undefined) throw typeFault(`bad operand type for abs(): '${typeName(value)}'`);
    return number < 0 ? -number : number;
  },
  attr: (value, args) => attributeOf(value, args.text("name")),
  batch,
  capitalize: (value) => capitalize(textOf(value)),
  count: lengthValue,
  d: defaultFilter,
  default: defaultFilter,
  dictsort: dictSort,
  e: escapeHtml,
  escape: escapeHtml,
  first: (value) => {
    for (const item of iterate(value)) return item;
    return new Undefined("No first item, sequence was empty.");
  },
  float: toFloat,
  groupby: groupBy,
  indent,
  int: toInteger,
  items: (value) => (value instanceof Undefined ? new View("dict_items", []) : itemsView(asDict(value))),
  join: (value, args) => {
    const separator = textOf(args.withDefault("d", ""));
    const path = args.optional("attribute") ?? null;
    return collect(value)
      .map((item) => textOf(byPath(item, path)))
      .join(separator);
  },
  last,
  length: lengthValue,
  list: (value) => collect(value),
  lower: (value) => textOf(value).toLowerCase(),
  max: (value, args) => extreme(value, args, 1),
  min: (value, args) => extreme(value, args, -1),
  replace: (value, args) => {
    const [from, to] = [textOf(args.required("old")), textOf(args.required("new"))];
    return replaceText(textOf(value), from, to, args.optionalInteger("count") ?? -1);
  },
  reverse: reversed,
  round,
  safe: (value) => textOf(value),
  sort: (value, args) => {
    const reverse = isTrue(args.optional("reverse") ?? false);
    const caseSensitive = isTrue(args.optional("case_sensitive") ?? false);
    const path = args.optional("attribute") ?? null;
    return sorted(collect(value), (item) => textKey(byPath(item, path), caseSensitive), reverse);
  },
  string: (value) => textOf(value),
  sum,
  title,
  tojson: toJson,
  trim: (value, args) => strip(textOf(value), args.optionalText("chars"), "both"),
  unique,
  upper: (value) => textOf(value).toUpperCase(),
  wordcount: (value) => BigInt(textOf(value).match(/\w+/gu)?.length ?? 0),
};

type FilterWithArguments = (value: Value, args: Arguments) => Value;
const filters: ReadonlyMap<string, FilterWithArguments> = new Map<string, FilterWithArguments>([
  ...Object.entries(simple).map(([name, filter]): [string, FilterWithArguments] => [
    name,
    (value, args) => {
      const reader = new ArgumentReader(name, args);
      const result = filter(value, reader);
      reader.end();
      return result;
    },
  ]),
  ["format", (value, { positional }) => formatPercent(textOf(value), new Tuple(positional))],
  ["map", mapFilter],
  ["reject", selection(false, false)],
  ["rejectattr", selection(false, true)],
  ["select", selection(true, false)],
  ["selectattr", selection(true, true)],
]);

export function isFilter(name: string): boolean {
  return filters.has(name);
}

export function applyFilter(name: string, value: Value, args: Arguments = noArguments): Value {
  const filter = filters.get(name);
  if (!filter) throw typeFault(`No filter named '${name}'.`);
  const result = filter(value, args);
  return isList(result) ? [...result] : result;
}
