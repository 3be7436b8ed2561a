// The methods of Python's str. Positions are code points; white space is what str.isspace() says, which has U+001C–1F and
// U+0085 and lacks U+FEFF.
import { ArgumentReader } from "./arguments.ts";
import { textOf } from "./pythonText.ts";
import { type Arguments, isList, iterate, Tuple, typeFault, typeName, type Value } from "./values.ts";

type Method = (self: string, args: ArgumentReader) => Value;

const spaceClass = "\\t-\\r\\u001c- \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const leadingSpace = new RegExp(`^[${spaceClass}]+`, "u");
const onlySpace = new RegExp(`^[${spaceClass}]+$`, "u");
const wordRun = new RegExp(`[^${spaceClass}]+`, "gu");
const isSpaceCode = (code: number): boolean => onlySpace.test(String.fromCharCode(code));
// biome-ignore lint/suspicious/noControlCharactersInRegex: str.splitlines() splits at these
const lineEnd = /\r\n|[\n\r\v\f\u001c-\u001e\u0085\u2028\u2029]/g;

/** str.strip and its one-sided forms; `characters` is a set, absent: white space. */
export function strip(text: string, characters: string | undefined, sides: "both" | "left" | "right"): string {
  if (characters === undefined) {
    const left = sides === "right" ? text : text.replace(leadingSpace, "");
    if (sides === "left") return left;
    let end = left.length;
    while (end > 0 && isSpaceCode(left.charCodeAt(end - 1))) end--;
    return left.slice(0, end);
  }
  const set = new Set(characters);
  const points = Array.from(text);
  let [from, to] = [0, points.length];
  if (sides !== "right") while (from < to && set.has(points[from] ?? "")) from++;
  if (sides !== "left") while (to > from && set.has(points[to - 1] ?? "")) to--;
  return points.slice(from, to).join("");
}

export function replaceText(text: string, from: string, to: string, count: number): string {
  if (count < 0) return from === "" ? replaceText(text, from, to, text.length + 1) : text.split(from).join(to);
  if (from === "") {
    const points = Array.from(text);
    return (
      points.map((point, index) => (index < count ? to + point : point)).join("") + (count > points.length ? to : "")
    );
  }
  const parts = text.split(from);
  const head = parts.slice(0, count + 1).join(to);
  return parts.length > count + 1 ? [head, ...parts.slice(count + 1)].join(from) : head;
}

export function capitalize(text: string): string {
  const [first = "", ...rest] = text;
  return first.toUpperCase() + rest.join("").toLowerCase();
}

export function splitLines(text: string, keepEnds = false): string[] {
  const lines: string[] = [];
  let start = 0;
  for (const match of text.matchAll(lineEnd)) {
    const end = match.index + match[0].length;
    lines.push(text.slice(start, keepEnds ? end : match.index));
    start = end;
  }
  if (start < text.length) lines.push(text.slice(start));
  return lines;
}

function split(text: string, separator: string | undefined, limit: number, fromRight: boolean): string[] {
  if (separator === "") throw typeFault("empty separator");
  if (separator === undefined) return splitWords(text, limit, fromRight);
  const parts = text.split(separator);
  if (limit < 0 || parts.length <= limit + 1) return parts;
  if (fromRight) {
    const cut = parts.length - limit;
    return [parts.slice(0, cut).join(separator), ...parts.slice(cut)];
  }
  return [...parts.slice(0, limit), parts.slice(limit).join(separator)];
}

function splitWords(text: string, limit: number, fromRight: boolean): string[] {
  const words = [...text.matchAll(wordRun)];
  if (limit < 0 || words.length <= limit) return words.map((word) => word[0]);
  if (fromRight) {
    const kept = limit === 0 ? [] : words.slice(-limit);
    const before = words[words.length - limit - 1];
    const rest = before ? text.slice(0, before.index + before[0].length) : "";
    return [...(rest === "" ? [] : [rest]), ...kept.map((word) => word[0])];
  }
  const rest = words[limit];
  const head = words.slice(0, limit).map((word) => word[0]);
  return rest ? [...head, text.slice(rest.index)] : head;
}

function hasAffix(self: string, args: ArgumentReader, atEnd: boolean): boolean {
  const affix = args.required(atEnd ? "suffix" : "prefix");
  const start = args.optionalInteger("start");
  const end = args.optionalInteger("end");
  const text = start === undefined && end === undefined ? self : Array.from(self).slice(start, end).join("");
  const options = affix instanceof Tuple ? affix.items : [affix];
  return options.some((option) => {
    if (typeof option !== "string")
      throw typeFault(`startswith first arg must be str or a tuple of str, not ${typeName(option)}`);
    return atEnd ? text.endsWith(option) : text.startsWith(option);
  });
}

function find(self: string, args: ArgumentReader, last: boolean): bigint {
  const wanted = args.text("sub");
  const [from, to] = [args.optionalInteger("start") ?? 0, args.optionalInteger("end")];
  const points = Array.from(self);
  const start = from < 0 ? Math.max(points.length + from, 0) : from;
  const text = points.slice(start, to).join("");
  const index = last ? text.lastIndexOf(wanted) : text.indexOf(wanted);
  return index < 0 ? -1n : BigInt(start + Array.from(text.slice(0, index)).length);
}

function found(index: bigint): bigint {
  if (index < 0n) throw typeFault("substring not found");
  return index;
}

function partition(self: string, args: ArgumentReader, last: boolean): Tuple {
  const separator = args.text("sep");
  if (separator === "") throw typeFault("empty separator");
  const index = last ? self.lastIndexOf(separator) : self.indexOf(separator);
  if (index < 0) return new Tuple(last ? ["", "", self] : [self, "", ""]);
  return new Tuple([self.slice(0, index), separator, self.slice(index + separator.length)]);
}

function padded(self: string, args: ArgumentReader, side: "left" | "right" | "center"): string {
  const missing = (args.optionalInteger("width") ?? 0) - Array.from(self).length;
  const fill = args.optionalText("fillchar") ?? " ";
  if (missing <= 0) return self;
  if (side === "left") return self + fill.repeat(missing);
  if (side === "right") return fill.repeat(missing) + self;
  // The odd one goes left only when the width is odd too.
  const left = Math.floor(missing / 2) + (missing & (Array.from(self).length + missing) & 1);
  return fill.repeat(left) + self + fill.repeat(missing - left);
}

const all =
  (pattern: RegExp): Method =>
  (self) =>
    self !== "" && Array.from(self).every((point) => pattern.test(point));
const cased =
  (pattern: RegExp, other: RegExp): Method =>
  (self) =>
    pattern.test(self) && !other.test(self);

const methods: Readonly<Record<string, Method>> = {
  upper: (self) => self.toUpperCase(),
  lower: (self) => self.toLowerCase(),
  casefold: (self) => self.toLowerCase().replaceAll("ß", "ss"),
  capitalize: (self) => capitalize(self),
  title: (self) => self.replace(/\p{L}+/gu, capitalize),
  swapcase: (self) =>
    Array.from(self, (point) => (point === point.toLowerCase() ? point.toUpperCase() : point.toLowerCase())).join(""),
  strip: (self, args) => strip(self, args.optionalText("chars"), "both"),
  lstrip: (self, args) => strip(self, args.optionalText("chars"), "left"),
  rstrip: (self, args) => strip(self, args.optionalText("chars"), "right"),
  split: (self, args) => split(self, args.optionalText("sep"), args.optionalInteger("maxsplit") ?? -1, false),
  rsplit: (self, args) => split(self, args.optionalText("sep"), args.optionalInteger("maxsplit") ?? -1, true),
  splitlines: (self, args) => splitLines(self, args.optional("keepends") === true),
  startswith: (self, args) => hasAffix(self, args, false),
  endswith: (self, args) => hasAffix(self, args, true),
  removeprefix: (self, args) => {
    const prefix = args.text("prefix");
    return self.startsWith(prefix) ? self.slice(prefix.length) : self;
  },
  removesuffix: (self, args) => {
    const suffix = args.text("suffix");
    return suffix !== "" && self.endsWith(suffix) ? self.slice(0, -suffix.length) : self;
  },
  replace: (self, args) => replaceText(self, args.text("old"), args.text("new"), args.optionalInteger("count") ?? -1),
  join: (self, args) => {
    const parts: string[] = [];
    for (const item of iterate(args.required("iterable"))) {
      if (typeof item !== "string") {
        throw typeFault(`sequence item ${parts.length}: expected str instance, ${typeName(item)} found`);
      }
      parts.push(item);
    }
    return parts.join(self);
  },
  find: (self, args) => find(self, args, false),
  rfind: (self, args) => find(self, args, true),
  index: (self, args) => found(find(self, args, false)),
  rindex: (self, args) => found(find(self, args, true)),
  count: (self, args) => {
    const wanted = args.text("sub");
    return BigInt(wanted === "" ? Array.from(self).length + 1 : self.split(wanted).length - 1);
  },
  partition: (self, args) => partition(self, args, false),
  rpartition: (self, args) => partition(self, args, true),
  ljust: (self, args) => padded(self, args, "left"),
  rjust: (self, args) => padded(self, args, "right"),
  center: (self, args) => padded(self, args, "center"),
  zfill: (self, args) => {
    const [, sign = "", digits = ""] = /^([+-]?)([\s\S]*)$/.exec(self) ?? [];
    return sign + digits.padStart((args.optionalInteger("width") ?? 0) - sign.length, "0");
  },
  isspace: (self) => onlySpace.test(self),
  isalpha: all(/^\p{L}$/u),
  isalnum: all(/^[\p{L}\p{N}]$/u),
  isdigit: all(/^[\p{Nd}\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089]$/u),
  isdecimal: all(/^\p{Nd}$/u),
  isnumeric: all(/^\p{N}$/u),
  isupper: cased(/\p{Lu}/u, /[\p{Ll}\p{Lt}]/u),
  islower: cased(/\p{Ll}/u, /[\p{Lu}\p{Lt}]/u),
};

/** str.format takes any arguments, so it is not in the table. Plain fields only: {}, {0}, {name}. */
function format(self: string, args: Arguments): string {
  let next = 0;
  return self.replace(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (whole, field: string | undefined) => {
    if (whole === "{{") return "{";
    if (whole === "}}") return "}";
    if (field === undefined) throw typeFault("Single brace encountered in format string");
    if (!/^\w*$/.test(field)) throw typeFault(`the format field {${field}} is not supported`);
    const value = /^\d*$/.test(field) ? args.positional[field === "" ? next++ : Number(field)] : args.named.get(field);
    if (value === undefined) throw typeFault(`no argument for the format field {${field}}`);
    return textOf(value);
  });
}

/** A method of str by name, bound to `self`. */
export function stringMethod(self: string, name: string): ((args: Arguments) => Value) | undefined {
  if (name === "format") return (args) => format(self, args);
  if (!Object.hasOwn(methods, name)) return undefined;
  const method = methods[name];
  return (args) => {
    const reader = new ArgumentReader(`str.${name}`, args);
    const result = method?.(self, reader) ?? null;
    reader.end();
    return isList(result) ? [...result] : result;
  };
}
