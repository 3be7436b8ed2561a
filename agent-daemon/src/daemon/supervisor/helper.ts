// Finds the native helper and starts it: as the parent of a run, which outlives this process, or to be asked about GPUs.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { RollscopeError } from "../../../../protocol/errors.ts";

/** From the sources the folder is four levels up, from bundles in dist/ or build/ fewer. @throws SUPERVISOR_HELPER_MISSING */
export function helperProgram(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const candidates = ["../../../..", "../../..", ".."].map((up) =>
    join(here, up, "native", "build", "rollscope-helper"),
  );
  const found = candidates.find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new RollscopeError(
    "SUPERVISOR_HELPER_MISSING",
    "The native helper, which starts and watches runs, is not built.",
    {
      next: "Run `npm run setup`, or install a payload for this platform; `rollscope run` works without it.",
      at: { file: candidates.at(-1) ?? "" },
    },
  );
}

const messageSchema = z.discriminatedUnion("event", [
  z.object({ event: z.literal("started"), pid: z.int(), start: z.string() }),
  z.object({ event: z.literal("debugger"), url: z.string() }),
  z.object({ event: z.literal("failed"), message: z.string() }),
  z.object({ event: z.literal("ended") }),
]);
export type HelperMessage = z.infer<typeof messageSchema>;

export interface SuperviseOptions {
  /** The run's folder: process.json, run.log and exit.json are written there. */
  readonly folder: string;
  readonly attempt: number;
  readonly debug: boolean;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly logBytes?: number;
}

/**
 * Starts the helper in a session of its own. It goes on when this process ends.
 *
 * @param tell called with each message, and with `ended` at the latest when the helper is gone
 * @throws SUPERVISOR_HELPER_MISSING
 */
export function supervise(options: SuperviseOptions, tell: (message: HelperMessage) => void): ChildProcess {
  const { folder, attempt, debug, command, cwd, logBytes } = options;
  const words = ["supervise", "--folder", folder, "--attempt", String(attempt)];
  if (logBytes !== undefined) words.push("--log-bytes", String(logBytes));
  if (debug) words.push("--debug");
  const child = spawn(helperProgram(), [...words, "--", ...command], {
    cwd,
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  child.unref();
  let over = false;
  const end = () => {
    if (over) return;
    over = true;
    tell({ event: "ended" });
  };
  child.once("error", (error) => {
    tell({ event: "failed", message: error.message });
    end();
  });
  child.once("exit", end);
  if (child.stdout !== null) {
    createInterface(child.stdout).on("line", (line) => {
      const message = parseMessage(line);
      if (message === null) return;
      if (message.event === "ended") end();
      else tell(message);
    });
    // It must not hold a daemon that wants to end.
    (child.stdout as unknown as { unref?: () => void }).unref?.();
  }
  return child;
}

function parseMessage(line: string): HelperMessage | null {
  try {
    return messageSchema.parse(JSON.parse(line));
  } catch {
    return null;
  }
}
