// The functions every chat template may call: Jinja's own and the two that model makers expect.
import { ArgumentReader } from "./arguments.ts";
import { textOf } from "./pythonText.ts";
import {
  type Arguments,
  Callable,
  isDict,
  iterate,
  Namespace,
  TemplateFault,
  typeFault,
  type Value,
} from "./values.ts";

const longestRange = 100_000;

/** `now` is asked each time a template wants the date. */
export function templateGlobals(now: () => Date): ReadonlyMap<string, Value> {
  const functions: Record<string, (args: Arguments) => Value> = {
    range: rangeOf,
    namespace: (args) => {
      const result = new Namespace();
      for (const [key, value] of entriesOf(args)) result.attributes.set(textOf(key), value);
      return result;
    },
    dict: (args) => new Map(entriesOf(args)),
    raise_exception: (args) => {
      throw new TemplateFault("raised_by_template", textOf(args.positional[0] ?? args.named.get("message") ?? null));
    },
    strftime_now: (args) => formatDate(now(), new ArgumentReader("strftime_now", args).text("format")),
  };
  return new Map(Object.entries(functions).map(([name, call]) => [name, new Callable(name, call)]));
}

function entriesOf({ positional, named }: Arguments): [Value, Value][] {
  const given = positional.flatMap((source): [Value, Value][] =>
    isDict(source)
      ? [...source]
      : Array.from(iterate(source), (pair) => {
          const [key = null, value = null] = iterate(pair);
          return [key, value];
        }),
  );
  return [...given, ...named];
}

function rangeOf(args: Arguments): Value {
  const reader = new ArgumentReader("range", args);
  const first = reader.optionalInteger("start") ?? 0;
  const second = reader.optionalInteger("stop");
  const step = reader.optionalInteger("step") ?? 1;
  reader.end();
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  if (step === 0) throw typeFault("range() arg 3 must not be zero");
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (length > longestRange) throw typeFault(`range too big; the sandbox blocks ranges larger than ${longestRange}`);
  return Array.from({ length }, (_, index) => BigInt(start + index * step));
}

const months = "January February March April May June July August September October November December".split(" ");
const days = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/** strftime in the C locale, local time. */
function formatDate(date: Date, format: string): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const [day, month, hour] = [date.getDate(), date.getMonth(), date.getHours()];
  const dayOfYear = Math.round(
    (Date.UTC(date.getFullYear(), month, day) - Date.UTC(date.getFullYear(), 0, 1)) / 86_400_000 + 1,
  );
  const fields: Readonly<Record<string, () => string>> = {
    a: () => days[date.getDay()]?.slice(0, 3) ?? "",
    A: () => days[date.getDay()] ?? "",
    b: () => months[month]?.slice(0, 3) ?? "",
    B: () => months[month] ?? "",
    d: () => two(day),
    e: () => String(day).padStart(2, " "),
    F: () => `${date.getFullYear()}-${two(month + 1)}-${two(day)}`,
    H: () => two(hour),
    I: () => two(((hour + 11) % 12) + 1),
    j: () => String(dayOfYear).padStart(3, "0"),
    m: () => two(month + 1),
    M: () => two(date.getMinutes()),
    p: () => (hour < 12 ? "AM" : "PM"),
    S: () => two(date.getSeconds()),
    T: () => `${two(hour)}:${two(date.getMinutes())}:${two(date.getSeconds())}`,
    w: () => String(date.getDay()),
    y: () => two(date.getFullYear() % 100),
    Y: () => String(date.getFullYear()),
    "%": () => "%",
  };
  return format.replace(/%(-?)([A-Za-z%])/g, (whole, unpadded: string, field: string) => {
    const text = fields[field]?.();
    if (text === undefined) throw typeFault(`the date format ${whole} is not supported`);
    return unpadded ? text.replace(/^[0 ]+(?=.)/, "") : text;
  });
}
