// A token's text and numbers as they are shown. Pure.

/** White space and control characters made visible; everything else as it is. */
export function visibleText(text: string): string {
  return text
    .replaceAll("\n", "↵")
    .replaceAll("\t", "⇥")
    .replaceAll("\r", "␍")
    .replaceAll(" ", "·")
    .replace(/\p{Cc}/gu, (letter) => String.fromCharCode(letter < " " ? 0x2400 + letter.charCodeAt(0) : 0x2421));
}

/** The shortest decimal that is the same 32-bit number; `exact`: every digit that the number has. */
export function storedNumber(value: number, exact: boolean): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Object.is(value, -0)) return "−0";
  if (exact || Number.isInteger(value)) return String(value).replaceAll("-", "−");
  for (let digits = 1; digits <= 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === Math.fround(value)) return String(short).replaceAll("-", "−");
  }
  return String(value).replaceAll("-", "−");
}

/** "12": a turn; "t12": a token; numbers as people see them, so turns count from 1 and tokens from 0. */
export function readPlace(text: string): { readonly kind: "turn" | "token"; readonly number: number } | null {
  const found = /^\s*(t(?:oken)?\s*)?#?(\d{1,12})\s*$/i.exec(text);
  if (found === null) return null;
  const number = Number(found[2]);
  if (found[1] !== undefined) return { kind: "token", number };
  return number === 0 ? null : { kind: "turn", number: number - 1 };
}
