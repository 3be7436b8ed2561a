// Starts the system's Chromium for tests. Nothing it loads leaves the machine: other hosts than this one do not resolve.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

export interface ChromiumOptions {
  /** After the flags that every test has; `--js-flags=--expose-gc` for one that measures memory. */
  readonly flags?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/** A browser without a window. It ends with `close`, and with the process that started it. */
export function launchChromium(options: ChromiumOptions = {}): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath(),
    args: [...flags, ...(options.flags ?? [])],
    env: { ...environmentOf(process.env), ...options.environment },
  });
}

function environmentOf(values: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

function chromiumPath(): string {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(folder, "chromium");
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  throw new Error("chromium is not on PATH; run node scripts/setup-vscode.mjs");
}
