// Colour arithmetic: reading CSS colours, contrast as WCAG counts it, and moving a colour until it can be told from its ground.

export interface Rgb {
  /** 0…255 */
  readonly r: number;
  readonly g: number;
  readonly b: number;
  /** 0…1 */
  readonly a: number;
}

/** #rgb, #rgba, #rrggbb, #rrggbbaa, rgb(…), rgba(…); null for what it cannot read. */
export function parseColour(text: string): Rgb | null {
  const value = text.trim();
  const hex = /^#([0-9a-f]{3,8})$/i.exec(value)?.[1];
  if (hex !== undefined && hex.length !== 5 && hex.length !== 7) {
    const wide = hex.length <= 4 ? [...hex].map((digit) => digit + digit).join("") : hex;
    const part = (at: number) => Number.parseInt(wide.slice(at, at + 2), 16);
    return { r: part(0), g: part(2), b: part(4), a: wide.length === 8 ? part(6) / 255 : 1 };
  }
  const parts = /^rgba?\(([^)]*)\)$/i
    .exec(value)?.[1]
    ?.split(/[\s,/]+/)
    .filter((part) => part !== "");
  if (parts === undefined || parts.length < 3) return null;
  const numbers = parts.map((part, index) =>
    part.endsWith("%") ? (Number(part.slice(0, -1)) / 100) * (index === 3 ? 1 : 255) : Number(part),
  );
  if (numbers.some((number) => !Number.isFinite(number))) return null;
  return { r: numbers[0]!, g: numbers[1]!, b: numbers[2]!, a: numbers[3] ?? 1 };
}

export function colourText({ r, g, b, a }: Rgb): string {
  const parts = [r, g, b].map((part) => Math.round(part));
  return a >= 1 ? `rgb(${parts.join(", ")})` : `rgba(${parts.join(", ")}, ${a.toFixed(3)})`;
}

/** Linear mixture in sRGB; 0 is `from`. */
export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const part = (one: number, other: number) => one + (other - one) * share;
  return { r: part(from.r, to.r), g: part(from.g, to.g), b: part(from.b, to.b), a: part(from.a, to.a) };
}

/** As it looks on an opaque ground. */
export function over(colour: Rgb, ground: Rgb): Rgb {
  return { ...mix({ ...ground, a: 1 }, { ...colour, a: 1 }, colour.a), a: 1 };
}

/** Relative luminance, WCAG 2.2. */
function luminance({ r, g, b }: Rgb): number {
  const linear = (part: number) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** 1…21, of opaque colours. */
export function contrast(one: Rgb, other: Rgb): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

const white: Rgb = { r: 255, g: 255, b: 255, a: 1 };
const black: Rgb = { r: 0, g: 0, b: 0, a: 1 };

/** The colour, moved as little as needed towards white or black until its contrast to the ground is at least `least`. */
export function withContrast(colour: Rgb, ground: Rgb, least: number): Rgb {
  const solid = over(colour, ground);
  if (contrast(solid, ground) >= least) return solid;
  const end = contrast(white, ground) >= contrast(black, ground) ? white : black;
  for (let share = 0.04; share < 1; share += 0.04) {
    const moved = mix(solid, end, share);
    if (contrast(moved, ground) >= least) return moved;
  }
  return end;
}

/** Hue in degrees, saturation and lightness 0…1. */
function hslOf({ r, g, b }: Rgb): [number, number, number] {
  const [x, y, z] = [r / 255, g / 255, b / 255];
  const most = Math.max(x, y, z);
  const range = most - Math.min(x, y, z);
  const lightness = most - range / 2;
  if (range === 0) return [0, 0, lightness];
  const hue = most === x ? ((y - z) / range) % 6 : most === y ? (z - x) / range + 2 : (x - y) / range + 4;
  return [hue * 60, range / (1 - Math.abs(2 * lightness - 1)), lightness];
}

function rgbOf(hue: number, saturation: number, lightness: number): Rgb {
  const part = (shift: number) => {
    const k = (shift + (((hue % 360) + 360) % 360) / 30) % 12;
    return (
      255 * (lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1)))
    );
  };
  return { r: part(0), g: part(8), b: part(4), a: 1 };
}

/** `count` colours from the theme's few: themselves first, then the same hues turned, each to be told from the ground. */
export function seriesColours(base: readonly Rgb[], ground: Rgb, count: number, least: number): Rgb[] {
  const turns = [0, 28, -24, 52, 80, -56];
  const colours: Rgb[] = [];
  for (let at = 0; colours.length < count; at++) {
    const [hue, saturation, lightness] = hslOf(base[at % base.length]!);
    const round = Math.floor(at / base.length);
    const turned = round === 0 ? base[at]! : rgbOf(hue + (turns[round % turns.length] ?? 0), saturation, lightness);
    colours.push(withContrast(turned, ground, least));
  }
  return colours;
}
