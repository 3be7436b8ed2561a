// One daemon from start to end: takes the lock, opens what methods need, listens, and closes everything in reverse order when it is
// told to, is signalled, or has lost its lock. Runs go on without it.

import { cpus, hostname, platform, totalmem } from "node:os";
import type { HelloResult } from "../../../protocol/daemonMethods.ts";
import type { Clock } from "../sampling/clock.ts";
import { openDaemonLog } from "./daemonLog.ts";
import { createMethodTable } from "./methods/allMethods.ts";
import type { CallMethod } from "./methods/methodTypes.ts";
import type { ProgramCommand } from "./programCommand.ts";
import { openKnownRuns } from "./runs/knownRuns.ts";
import { type DaemonHome, makePrivateFolder } from "./server/daemonHome.ts";
import { takeLock } from "./server/daemonLock.ts";
import { listenOnSocket } from "./server/socketServer.ts";
import { createSupervisor } from "./supervisor/supervisor.ts";

export interface DaemonOptions {
  readonly home: DaemonHome;
  readonly version: string;
  readonly clock: Clock;
  readonly program: ProgramCommand;
  /** Told each line of the log. */
  readonly echo?: (line: string) => void;
}

export interface Daemon {
  readonly socket: string;
  readonly pid: number;
  /** Resolves, with the reason, once everything is closed. */
  readonly ended: Promise<string>;
  stop(reason: string): Promise<void>;
}

/** How often it looks whether the lock still is its own. */
const lockMilliseconds = 60_000;

/** @throws DAEMON_RUNNING, DAEMON_HOME_UNUSABLE */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { home, version, clock, program } = options;
  makePrivateFolder(home.folder);
  const since = clock.now();
  const lock = takeLock(home.lock, { socket: home.socket, version, since });
  const log = openDaemonLog(home.log, clock.now, options.echo === undefined ? {} : { echo: options.echo });
  let end: (reason: string) => void = () => {};
  const ended = new Promise<string>((resolve) => {
    end = resolve;
  });
  try {
    const runs = openKnownRuns({ registry: home.registry, clock, log });
    const supervisor = createSupervisor({ program, clock, log, runs });
    const call: CallMethod = (...given) => table.call(...given);
    const table = createMethodTable({ version, clock, log, runs, supervisor, program, call });
    const describe = () => ({ ...describeMachine(version, since), log: home.log });
    let stopping: Promise<void> | null = null;
    const stop = (reason: string): Promise<void> => {
      stopping ??= (async () => {
        log.info(`stopping: ${reason}`);
        forgetLock();
        await server.dispose();
        await table.dispose();
        await runs.dispose();
        lock.dispose();
        log.info("stopped");
        end(reason);
      })();
      return stopping;
    };
    const server = await listenOnSocket({
      socket: home.socket,
      table,
      log,
      describe,
      onShutdown: () => void stop("a client asked for it"),
      onSessions: () => {},
    });
    let forgetLock = () => {};
    const watchLock = () => {
      forgetLock = clock.after(lockMilliseconds, () => {
        if (lock.isMine()) watchLock();
        else void stop("another daemon took the lock");
      });
    };
    watchLock();
    log.info(`daemon ${version} listens at ${home.socket} (process ${process.pid})`);
    return { socket: home.socket, pid: process.pid, ended, stop };
  } catch (error) {
    lock.dispose();
    throw error;
  }
}

function describeMachine(version: string, started: number): Omit<HelloResult, "session" | "protocol"> {
  const processors = cpus();
  return {
    version,
    pid: process.pid,
    started,
    machine: {
      hostname: hostname(),
      platform: platform(),
      cpus: processors.length,
      cpuModel: processors[0]?.model ?? "unknown",
      memory: totalmem(),
      node: process.version,
    },
  };
}
