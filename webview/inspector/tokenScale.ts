// How a token's number becomes a colour. Blue to orange, which every kind of colour vision tells apart; the ground itself is the
// middle, or the quiet end. Pure.
import { colourText, contrast, mix, parseColour, type Rgb } from "../shared/colour.ts";

export type ScaleKind = "signed" | "around1" | "surprise" | "amount" | "between" | "binary";

const kinds: Readonly<Record<string, ScaleKind>> = {
  logprob: "surprise",
  sampledLogprob: "surprise",
  old: "surprise",
  new: "surprise",
  reference: "surprise",
  ratio: "around1",
  weight: "around1",
  advantage: "signed",
  gradient: "signed",
  mismatch: "signed",
  value: "signed",
  tokenReward: "signed",
  return: "signed",
  entropy: "amount",
  version: "between",
  staleness: "between",
  mask: "binary",
};

/** Columns that can colour a strip, in the order in which they are offered. */
export const colouringColumns = Object.keys(kinds);

export interface TokenScale {
  readonly kind: ScaleKind;
  /** −1…1 where signs matter, else 0…1; NaN for no number. */
  position(value: number): number;
  /** Numbers of the legend, in order of position. */
  readonly stops: readonly number[];
}

/** @param least of the whole trajectory; the scale does not change while one scrolls */
export function tokenScale(column: string, least: number, greatest: number): TokenScale {
  const kind = kinds[column] ?? "amount";
  const clamp = (share: number, low: number) => Math.max(low, Math.min(1, share));
  // Square roots: one outlier must not make all others look alike.
  const root = (share: number) => Math.sign(share) * Math.sqrt(Math.abs(share));
  const square = (share: number) => Math.sign(share) * share * share;
  const halves = [-1, -0.5, 0, 0.5, 1];
  const quarters = [0, 0.25, 0.5, 0.75, 1];
  if (kind === "binary") return { kind, position: (value) => value, stops: [0, 1] };
  if (kind === "signed") {
    const most = Math.max(Math.abs(least), Math.abs(greatest)) || 1;
    return {
      kind,
      position: (value) => clamp(root(value / most), -1),
      stops: halves.map((share) => square(share) * most),
    };
  }
  if (kind === "around1") {
    const size = (value: number) => (value > 0 ? Math.abs(Math.log(value)) : 0);
    const most = Math.max(size(least), size(greatest)) || Math.log(2);
    return {
      kind,
      position: (value) => (value > 0 ? clamp(root(Math.log(value) / most), -1) : value === 0 ? -1 : Number.NaN),
      stops: halves.map((share) => Math.exp(square(share) * most)),
    };
  }
  if (kind === "between") {
    const width = greatest - least;
    if (width <= 0) return { kind, position: (value) => (Number.isNaN(value) ? value : 0.5), stops: [least] };
    const stops = [...new Set(quarters.map((share) => Math.round(least + share * width)))];
    return { kind, position: (value) => clamp((value - least) / width, 0), stops };
  }
  const most = (kind === "surprise" ? -least : greatest) || 1;
  const sign = kind === "surprise" ? -1 : 1;
  return {
    kind,
    position: (value) => clamp(root(Math.max(0, (sign * value) / most)), 0),
    stops: quarters.map((share) => sign * square(share) * most || 0),
  };
}

export interface Paint {
  readonly background: string;
  readonly color: string;
}

const black: Rgb = { r: 0, g: 0, b: 0, a: 1 };
const white: Rgb = { r: 255, g: 255, b: 255, a: 1 };
const ends = {
  light: { low: { r: 40, g: 120, b: 190, a: 1 }, high: { r: 226, g: 120, b: 20, a: 1 } },
  dark: { low: { r: 70, g: 160, b: 225, a: 1 }, high: { r: 235, g: 140, b: 40, a: 1 } },
} as const;
const levels = 16;

/** Of a theme. */
export interface Ground {
  readonly background: string;
  readonly foreground: string;
}

/** Paints positions in a theme. Text on a painted ground has a contrast of at least 4.5:1. */
export function painter(theme: Ground): (position: number) => Paint | null {
  const ground = parseColour(theme.background) ?? white;
  const ink = parseColour(theme.foreground) ?? black;
  const { low, high } = ends[contrast(ground, white) > contrast(ground, black) ? "dark" : "light"];
  const known = new Map<number, Paint>();
  return (position) => {
    if (!Number.isFinite(position)) return null;
    const level = Math.round(position * levels);
    let paint = known.get(level);
    if (paint === undefined) {
      const fill = mix(ground, level < 0 ? low : high, (Math.abs(level) / levels) * 0.95);
      const readable = [ink, black, white].find((colour) => contrast(colour, fill) >= 4.5) ?? black;
      paint = { background: colourText(fill), color: colourText(readable) };
      known.set(level, paint);
    }
    return paint;
  };
}
