// How a client gets to a daemon: the socket that the lock of a living one names, or one that is started and waited for.
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createConnection } from "node:net";
import { homedir } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { ProgramCommand } from "../programCommand.ts";
import { type DaemonHome, makePrivateFolder, writable } from "./daemonHome.ts";
import { readLock } from "./daemonLock.ts";

/** The daemon mostly waits: memory counts more than speed. Whatever it starts is started without these. */
export const thriftyFlags: readonly string[] = ["--max-semi-space-size=2", "--optimize-for-size"];

/** From the first try on. */
const startMilliseconds = 20_000;
const lookMilliseconds = 40;

/** Socket of the daemon that answers; null when none does. */
export async function runningDaemon(home: DaemonHome): Promise<string | null> {
  const owner = readLock(home.lock);
  return owner !== null && (await answers(owner.socket)) ? owner.socket : null;
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/**
 * Socket of the daemon, which is started in a session of its own when none is there.
 *
 * @throws DAEMON_START_FAILED with the last lines that it wrote; DAEMON_HOME_UNUSABLE
 */
export async function ensureDaemon(home: DaemonHome, program: ProgramCommand): Promise<string> {
  const there = await runningDaemon(home);
  if (there !== null) return there;
  makePrivateFolder(home.folder);
  const words = `${home.log}.start`;
  const output = writable(words, () => openSync(words, "w", 0o600));
  let ended: string | null = null;
  const child = spawn(program.file, [...thriftyFlags, ...program.args, "daemon"], {
    cwd: homedir(),
    detached: true,
    stdio: ["ignore", output, output],
  });
  closeSync(output);
  child.once("error", (error) => {
    ended = error.message;
  });
  child.once("exit", (code, signal) => {
    ended ??= signal === null ? `exit code ${code}` : `signal ${signal}`;
  });
  child.unref();
  const began = Date.now();
  for (;;) {
    const socket = await runningDaemon(home);
    if (socket !== null) return socket;
    // One that another client started may have been first; then ours has ended, and that one answers soon.
    if (Date.now() - began > (ended === null ? startMilliseconds : startMilliseconds / 4)) break;
    if (ended !== null && readLock(home.lock) === null) break;
    await pause(lookMilliseconds);
  }
  throw new RollscopeError(
    "DAEMON_START_FAILED",
    `The daemon did not start: ${ended ?? "no answer in time"}. ${tailOf(words)}`.trim(),
    {
      next: `Look into ${home.log}, then try again.`,
      at: { path: home.log },
    },
  );
}

function tailOf(file: string): string {
  try {
    return readFileSync(file, "utf8").trim().split("\n").slice(-5).join("\n");
  } catch {
    return "";
  }
}
