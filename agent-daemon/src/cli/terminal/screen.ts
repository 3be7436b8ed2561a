// A block of lines at the bottom of a terminal that is redrawn in place. Other output goes above it. It restores the cursor
// whatever happens, and never draws more often than a person can see.
import type { Clock } from "../../sampling/clock.ts";
import { widthOf } from "./text.ts";

/** The part of a terminal's output stream that is used. */
export interface TerminalStream {
  write(text: string): unknown;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

export interface Screen {
  /** Asks for a redraw; frames closer than `interval` are joined. */
  invalidate(): void;
  /** Prints lines above the block, for good. */
  print(lines: readonly string[]): void;
  /** Draws a last time and leaves the block where it stands. */
  dispose(): void;
}

const hideCursor = "\u001b[?25l";
const showCursor = "\u001b[?25h";
const clearBelow = "\u001b[J";
const clearLine = "\u001b[K";

/** @param frame the lines of the block for a size; none may be wider or taller than that */
export function createScreen(
  stream: TerminalStream,
  clock: Clock,
  frame: (size: { readonly width: number; readonly height: number }) => readonly string[],
  interval = 100,
): Screen {
  /** Columns of each line of the block. */
  let drawn: readonly number[] = [];
  let lastDraw = Number.NEGATIVE_INFINITY;
  let pending: (() => void) | null = null;
  let disposed = false;
  const onExit = () => stream.write(showCursor);

  const columns = () => stream.columns ?? 80;
  const size = () => ({ width: Math.max(20, columns()), height: Math.max(4, (stream.rows ?? 24) - 1) });
  /** A terminal that has become narrower has wrapped the lines of the block: there are more rows to go up. */
  const home = () => {
    const rows = drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns())), 0);
    return rows === 0 ? "\r" : `\u001b[${rows}A\r`;
  };
  const draw = () => {
    pending?.();
    pending = null;
    lastDraw = clock.now();
    const { width, height } = size();
    const lines = frame({ width, height }).slice(0, height);
    const widths = lines.map(widthOf);
    // Each line is ended by an own line feed, so that the cursor always stands below the block. After a full line the cursor
    // still stands on its last character, which clearing would take away.
    const text = lines.map((line, row) => `${line}${(widths[row] ?? 0) < columns() ? clearLine : ""}\n`);
    stream.write(`${home()}${text.join("")}${clearBelow}`);
    drawn = widths;
  };
  stream.write(hideCursor);
  process.once("exit", onExit);
  return {
    invalidate() {
      if (disposed || pending !== null) return;
      const wait = lastDraw + interval - clock.now();
      if (wait <= 0) draw();
      else pending = clock.after(wait, draw);
    },
    print(lines) {
      stream.write(`${home()}${clearBelow}${lines.map((line) => `${line}\n`).join("")}`);
      drawn = [];
      if (!disposed) draw();
    },
    dispose() {
      if (disposed) return;
      draw();
      disposed = true;
      process.removeListener("exit", onExit);
      stream.write(showCursor);
    },
  };
}
