// One line of terminal output, in the theme's terminal colours. Text nodes only.
import type { AnsiLine, AnsiStyle } from "./ansi.ts";

const names = ["Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White"];

function colourOf(colour: AnsiStyle["foreground"]): string | undefined {
  if (colour === null) return undefined;
  if (typeof colour === "string") return colour;
  return `var(--vscode-terminal-ansi${colour < 8 ? "" : "Bright"}${names[colour % 8]})`;
}

export function TerminalLine({ line }: { readonly line: AnsiLine }) {
  return (
    <>
      {line.map(({ text, style }, index) => {
        const look = ["bold", "dim", "italic", "underline"] as const;
        const classes = look.filter((name) => style[name]).map((name) => `ansi-${name}`);
        const [color, backgroundColor] = [colourOf(style.foreground), colourOf(style.background)];
        if (classes.length === 0 && color === undefined && backgroundColor === undefined) return text;
        return (
          <span key={index} class={classes.join(" ")} style={{ color, backgroundColor }}>
            {text}
          </span>
        );
      })}
    </>
  );
}
