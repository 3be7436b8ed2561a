// Where a command writes: the result to stdout, everything about it to stderr, coloured only on a terminal. With --json the
// result is one document and stdout has nothing else.
import { RollscopeError } from "../../../protocol/errors.ts";
import { formatJson } from "./jsonOutput.ts";
import { createPaint, hasColors, type Paint } from "./terminal/colors.ts";
import type { TerminalStream } from "./terminal/screen.ts";
import { harmless } from "./terminal/text.ts";

export interface OutputStream extends TerminalStream {
  readonly isTTY?: boolean | undefined;
}

export interface Streams {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface Output {
  readonly json: boolean;
  readonly paint: Paint;
  readonly isTerminal: boolean;
  /** Columns of stdout; null when it is no terminal. */
  readonly width: number | null;
  /** Lines for people; with --json they go to stderr. */
  lines(lines: readonly string[]): void;
  /** The document of --json; nothing without it. */
  document(document: unknown): void;
  note(text: string): void;
  error(error: unknown): void;
}

export function createOutput(streams: Streams, json: boolean): Output {
  const { stdout, stderr, environment } = streams;
  const isTerminal = stdout.isTTY === true && environment["TERM"] !== "dumb";
  const paint = createPaint(!json && hasColors(stdout.isTTY === true, environment));
  const paintError = createPaint(hasColors(stderr.isTTY === true, environment));
  return {
    json,
    paint,
    isTerminal: isTerminal && !json,
    width: isTerminal ? Math.max(20, stdout.columns ?? 80) : null,
    lines(lines) {
      if (lines.length > 0) (json ? stderr : stdout).write(`${lines.join("\n")}\n`);
    },
    document(document) {
      if (json) stdout.write(`${formatJson(document)}\n`);
    },
    note: (text) => void stderr.write(`${text}\n`),
    error(error) {
      const shown = describeError(error);
      if (json) stdout.write(`${formatJson({ error: shown })}\n`);
      const where = shown.code === null ? "" : ` [${shown.code}]`;
      stderr.write(`${paintError("red", "error:")} ${harmless(shown.message)}${where}\n`);
      if (shown.next !== null) stderr.write(`${paintError("dim", harmless(shown.next))}\n`);
      if (shown.stack !== null && environment["ROLLSCOPE_DEBUG"]) stderr.write(`${harmless(shown.stack)}\n`);
    },
  };
}

export interface ShownError {
  readonly code: string | null;
  readonly message: string;
  readonly next: string | null;
  readonly at: Readonly<Record<string, string | number>>;
  readonly stack: string | null;
}

/** An error of the product as it is; any other one as a fault of the program, which it is. */
export function describeError(error: unknown): ShownError {
  if (error instanceof RollscopeError) {
    const cause = error.cause instanceof Error ? `\ncaused by ${error.cause.stack}` : "";
    return {
      code: error.code,
      message: error.message,
      next: error.next,
      at: error.at,
      stack: `${error.stack}${cause}`,
    };
  }
  return {
    code: null,
    message: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    next: "This is a fault of Rollscope. Run again with ROLLSCOPE_DEBUG=1 and report what it prints.",
    at: {},
    stack: error instanceof Error ? (error.stack ?? null) : null,
  };
}
