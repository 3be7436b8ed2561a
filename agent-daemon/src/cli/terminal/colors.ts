// Colours, or none: decided once per stream from NO_COLOR, FORCE_COLOR and what the stream is. Only the sixteen colours that
// follow the terminal's own theme are used, so that light and dark stay readable.

const codes = {
  bold: [1, 22],
  dim: [2, 22],
  underline: [4, 24],
  inverse: [7, 27],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const;

export type Color = keyof typeof codes;

/** Puts text in a colour, or leaves it as it is. */
export type Paint = (color: Color, text: string) => string;

export const plainPaint: Paint = (_, text) => text;

const ansiPaint: Paint = (color, text) => {
  if (text === "") return text;
  const [on, off] = codes[color];
  return `\u001b[${on}m${text}\u001b[${off}m`;
};

/** NO_COLOR (not empty) wins over everything, FORCE_COLOR over what the stream is. */
export function hasColors(isTerminal: boolean, environment: Readonly<Record<string, string | undefined>>): boolean {
  if ((environment["NO_COLOR"] ?? "") !== "") return false;
  const forced = environment["FORCE_COLOR"];
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  return isTerminal && environment["TERM"] !== "dumb";
}

export function createPaint(colors: boolean): Paint {
  return colors ? ansiPaint : plainPaint;
}
