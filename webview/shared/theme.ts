// The theme in force, as canvas code needs it: read from the editor's variables, and read again whenever the body's class or the
// variables change. Colours come from those variables only.
import { type ReadonlySignal, signal } from "@preact/signals";
import { colourText, contrast, over, parseColour, type Rgb, seriesColours, withContrast } from "./colour.ts";

export type ThemeKind = "light" | "dark" | "highContrast" | "highContrastLight";

export interface Theme {
  readonly kind: ThemeKind;
  readonly background: string;
  readonly foreground: string;
  readonly muted: string;
  readonly grid: string;
  /** A quiet area. */
  readonly rest: string;
  readonly focus: string;
  readonly error: string;
  readonly warning: string;
  /** At least 3:1 to the background (4.5:1 in high contrast). */
  readonly series: readonly string[];
  readonly font: string;
  readonly reducedMotion: boolean;
}

export const seriesCount = 20;

const media = {
  dark: "(prefers-color-scheme: dark)",
  contrast: "(prefers-contrast: more)",
  forced: "(forced-colors: active)",
  calm: "(prefers-reduced-motion: reduce)",
} as const;

const current = signal<Theme | null>(null);
let watching = false;

/** Follows the theme from the first use on. */
export function theme(): ReadonlySignal<Theme> {
  if (!watching) {
    watching = true;
    watch();
  }
  return current as ReadonlySignal<Theme>;
}

function watch(): void {
  const inEditor = /(^|\s)vscode-/.test(document.body.className);
  let scheduled = false;
  const update = () => {
    scheduled = false;
    if (!inEditor) dressPlainPage();
    const next = readTheme();
    if (JSON.stringify(next) !== JSON.stringify(current.peek())) current.value = next;
  };
  // Editors change the class and the variables one after the other: read both when they are done.
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    queueMicrotask(update);
  };
  const observer = new MutationObserver(schedule);
  const attributes = { attributes: true, attributeFilter: ["class", "style", "data-vscode-theme-id"] };
  observer.observe(document.body, attributes);
  observer.observe(document.documentElement, attributes);
  for (const query of Object.values(media)) matchMedia(query).addEventListener("change", schedule);
  update();
}

const plainClasses = ["vscode-light", "vscode-dark", "vscode-high-contrast", "vscode-high-contrast-light"];

/** A browser has no editor to say what it looks like: the person's own preference decides. */
function dressPlainPage(): void {
  const is = (query: string) => matchMedia(query).matches;
  const dark = is(media.dark);
  const high = is(media.contrast) || is(media.forced);
  const wanted = high
    ? dark
      ? ["vscode-high-contrast"]
      : ["vscode-high-contrast", "vscode-high-contrast-light"]
    : [dark ? "vscode-dark" : "vscode-light"];
  const { classList } = document.body;
  for (const name of plainClasses) classList.toggle(name, wanted.includes(name));
  // Adding a class that is there would be heard as a change.
  if (!classList.contains("plain-browser")) classList.add("plain-browser");
}

function kindOf(classes: DOMTokenList): ThemeKind {
  if (classes.contains("vscode-high-contrast-light")) return "highContrastLight";
  if (classes.contains("vscode-high-contrast")) return "highContrast";
  return classes.contains("vscode-dark") ? "dark" : "light";
}

function readTheme(): Theme {
  const style = getComputedStyle(document.body);
  const kind = kindOf(document.body.classList);
  const isDark = kind === "dark" || kind === "highContrast";
  const ground: Rgb = isDark ? { r: 0, g: 0, b: 0, a: 1 } : { r: 255, g: 255, b: 255, a: 1 };
  const ink: Rgb = isDark ? { r: 255, g: 255, b: 255, a: 1 } : { r: 0, g: 0, b: 0, a: 1 };
  const variable = (name: string) => parseColour(style.getPropertyValue(`--vscode-${name}`));
  const background = over(variable("editor-background") ?? ground, ground);
  const foreground = over(variable("foreground") ?? variable("editor-foreground") ?? ink, background);
  const high = kind === "highContrast" || kind === "highContrastLight";
  const least = high ? 4.5 : 3;
  const base = ["blue", "orange", "green", "purple", "red", "yellow"].map(
    (name) => variable(`charts-${name}`) ?? foreground,
  );
  const readable = (colour: Rgb | null, ratio: number) =>
    colourText(withContrast(colour ?? foreground, background, ratio));
  const faint = (share: number) => colourText(over({ ...foreground, a: share }, background));
  return {
    kind,
    background: colourText(background),
    foreground: readable(foreground, 4.5),
    muted: readable(variable("descriptionForeground"), 4.5),
    grid: faint(high ? 0.35 : contrast(foreground, background) > 8 ? 0.1 : 0.14),
    rest: faint(high ? 0.4 : 0.2),
    focus: readable(variable("focusBorder"), 3),
    error: readable(variable("errorForeground") ?? variable("charts-red"), 4.5),
    warning: readable(variable("editorWarning-foreground") ?? variable("charts-yellow"), 3),
    series: seriesColours(base, background, seriesCount, least).map(colourText),
    font: `11px ${style.getPropertyValue("--vscode-font-family") || "sans-serif"}`,
    reducedMotion: document.body.classList.contains("vscode-reduce-motion") || matchMedia(media.calm).matches,
  };
}
