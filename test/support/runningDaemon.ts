// A daemon as a process of its own in a temporary home, with the toy engines; ended, with whatever it started, when the test ends.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { connectDaemon, type DaemonClient } from "../../agent-daemon/src/daemon/client.ts";
import { type DaemonHome, daemonHome } from "../../agent-daemon/src/daemon/server/daemonHome.ts";
import { readLock } from "../../agent-daemon/src/daemon/server/daemonLock.ts";
import { isSameProcess } from "../../agent-daemon/src/daemon/server/processIdentity.ts";
import { type Program, startProgram } from "./program.ts";

export interface RunningDaemon {
  readonly home: DaemonHome;
  readonly folder: string;
  readonly program: Program;
  connect(name?: string): Promise<DaemonClient>;
  /** Starts another one in the same home. */
  again(): Promise<RunningDaemon>;
}

/** Looks again until it is so; fails after a generous time. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  milliseconds = 60_000,
): Promise<NonNullable<T>> {
  const end = Date.now() + milliseconds;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found as NonNullable<T>;
    if (Date.now() > end) throw new Error(`${what} did not come about in ${milliseconds} ms`);
    await pause(25);
  }
}

export function temporaryDaemonHome(): { readonly folder: string; readonly home: DaemonHome } {
  const folder = mkdtempSync(join(tmpdir(), "rollscope-home-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { folder, home: daemonHome({ ROLLSCOPE_HOME: folder }) };
}

/** @param script the bundled toyRollscope */
export async function runDaemon(script: string, at = temporaryDaemonHome()): Promise<RunningDaemon> {
  const { folder, home } = at;
  const program = startProgram(script, ["daemon"], ["env", `ROLLSCOPE_HOME=${folder}`]);
  program.process.stdin?.end();
  onTestFinished(async () => {
    program.process.kill("SIGKILL");
    await program.ended;
  });
  const gone = program.ended.then(({ code, errors }) => {
    throw new Error(`the daemon ended with ${code}: ${errors}`);
  });
  gone.catch(() => {});
  const lock = await Promise.race([
    gone,
    until("a daemon that answers", async () => {
      const found = readLock(home.lock);
      if (found === null || found.pid !== program.process.pid) return null;
      try {
        (await connectDaemon(found.socket, { name: "probe", version: "0" })).dispose();
        return found;
      } catch {
        return null;
      }
    }),
  ]);
  return {
    home,
    folder,
    program,
    async connect(name = "test") {
      const client = await connectDaemon(lock.socket, { name, version: "0.0.0" });
      onTestFinished(() => client.dispose());
      return client;
    },
    again: () => runDaemon(script, at),
  };
}

/** Ends a process that a test started through the daemon, if it still is the same one. */
export function endLater(folder: string): void {
  onTestFinished(async () => {
    if (!existsSync(join(folder, "process.json"))) return;
    const text = readFileSync(join(folder, "process.json"), "utf8");
    const started = JSON.parse(text) as { pid: number; start: string; helper: number; helperStart: string };
    if (isSameProcess(started.pid, started.start)) process.kill(started.pid, "SIGKILL");
    // The helper writes down how it ended, into the folder that is removed next.
    await until(
      "the end of the run's process and of its helper",
      () => !isSameProcess(started.pid, started.start) && !isSameProcess(started.helper, started.helperStart),
    );
  });
}
