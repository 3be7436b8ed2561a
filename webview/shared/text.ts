// Numbers, durations, sizes and times as people read them, in the page's language. Pure but for the language in force.
import { signal } from "@preact/signals";

export type Language = "en" | "zh-cn";

/** Set once from host/ready. */
export const language = signal<Language>("en");

export function languageOf(locale: string): Language {
  return /^zh\b/i.test(locale) ? "zh-cn" : "en";
}

const localeOf = (name: Language) => (name === "en" ? "en-US" : "zh-CN");

const formats = new Map<string, Intl.NumberFormat>();

/** Kept, because making one takes longer than a chart's whole axis may. */
function numberFormat(digits: number | null): Intl.NumberFormat {
  const key = `${language.value} ${digits}`;
  let format = formats.get(key);
  if (format === undefined) {
    const options = digits === null ? {} : { maximumSignificantDigits: digits };
    format = new Intl.NumberFormat(localeOf(language.value), options);
    formats.set(key, format);
  }
  return format;
}

const minus = (text: string) => text.replace("-", "−");

/** Up to `digits` significant digits, small and large ones as powers of ten: "0.0123", "1,234", "3.1e−11", "NaN", "∞". */
export function numberText(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined) return "–";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e7) {
    const [mantissa, exponent] = value.toExponential(Math.max(0, digits - 2)).split("e");
    return minus(`${mantissa!.replace(/\.?0+$/, "")}e`) + minus(exponent!.replace("+", ""));
  }
  return minus(numberFormat(Number.isInteger(value) ? 7 : digits).format(value));
}

export function countText(value: number): string {
  return numberFormat(null).format(value);
}

/** "12.3 %" */
export function percentText(fraction: number, digits = 1): string {
  if (!Number.isFinite(fraction)) return numberText(fraction);
  return minus(`${(fraction * 100).toFixed(digits)} %`);
}

/** Two units at most: "850 ms", "12.4 s", "3 min 5 s", "2 h 10 min", "3 d 4 h". */
export function durationText(milliseconds: number): string {
  const zh = language.value === "zh-cn";
  const unit = (value: number, en: string, other: string) => (zh ? `${value} ${other}` : `${value} ${en}`);
  if (milliseconds < 1000) return unit(Math.round(milliseconds), "ms", "毫秒");
  const seconds = milliseconds / 1000;
  if (seconds < 59.95) return unit(Number(seconds.toFixed(seconds < 10 ? 1 : 0)), "s", "秒");
  const whole = Math.round(seconds);
  const pair = (large: string, small: string) => (small === "" ? large : `${large} ${small}`);
  const part = (value: number, en: string, other: string) => (value === 0 ? "" : unit(value, en, other));
  if (whole < 3600) return pair(unit(Math.floor(whole / 60), "min", "分"), part(whole % 60, "s", "秒"));
  const minutes = Math.round(whole / 60);
  if (minutes < 1440) return pair(unit(Math.floor(minutes / 60), "h", "小时"), part(minutes % 60, "min", "分"));
  const hours = Math.round(minutes / 60);
  return pair(unit(Math.floor(hours / 24), "d", "天"), part(hours % 24, "h", "小时"));
}

const sizeUnits = ["B", "KB", "MB", "GB", "TB", "PB"] as const;

/** Powers of 1024, three digits: "1.50 GB". */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1023.5 && unit < sizeUnits.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${sizeUnits[unit]}`;
}
