// The daemon's own log: one line a happening, with its time, in a file of bounded size whose predecessor is kept. It holds no
// contents of runs and nothing secret.
import { appendFileSync, renameSync, statSync } from "node:fs";

export interface DaemonLog {
  info(line: string): void;
  warn(line: string): void;
  error(line: string, error?: unknown): void;
}

/** @param echo told every line too: a daemon in the foreground shows them */
export function openDaemonLog(
  file: string,
  now: () => number,
  options: { readonly echo?: (line: string) => void; readonly bytes?: number } = {},
): DaemonLog {
  const most = options.bytes ?? 1_000_000;
  const write = (level: string, text: string) => {
    const line = `${new Date(now()).toISOString()} ${level} ${text.replaceAll("\n", "\n  ")}`;
    options.echo?.(line);
    try {
      appendFileSync(file, `${line}\n`, { mode: 0o600 });
      if (statSync(file).size > most) renameSync(file, `${file}.1`);
    } catch {
      // A full disk must not end the daemon.
    }
  };
  return {
    info: (line) => write("info", line),
    warn: (line) => write("warn", line),
    error: (line, error) =>
      write("error", error === undefined ? line : `${line}: ${error instanceof Error ? error.stack : String(error)}`),
  };
}
