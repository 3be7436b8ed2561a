// Numbers as people read them: a few significant digits, durations, sizes, percentages. Exact values are what --json is for.

/** Four significant digits, exponents only where they are shorter; NaN and infinities as words. */
export function formatNumber(value: number, digits = 4): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (Number.isInteger(value) && magnitude < 1e7) return minus(String(value));
  if (magnitude < 1e-3 || magnitude >= 1e7)
    return minus(value.toExponential(Math.max(0, digits - 2)).replace("e+", "e"));
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(magnitude)));
  return minus(value.toFixed(Math.min(decimals, digits)));
}

function minus(text: string): string {
  return text.replace(/^-/, "−").replace("e-", "e−");
}

/** `0.0 s`, `12.3 s`, `4:05`, `1:02:33`. */
export function formatDuration(milliseconds: number): string {
  if (!Number.isFinite(milliseconds)) return "–";
  if (milliseconds < 59_950) return `${(Math.max(0, milliseconds) / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

export function formatPercent(fraction: number): string {
  return Number.isFinite(fraction) ? `${minus((fraction * 100).toFixed(1))} %` : formatNumber(fraction);
}

/** Decimal units, as disks are sold. */
export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit]}`;
}

/** `2026-01-31 14:25:01`, local time. */
export function formatTime(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
