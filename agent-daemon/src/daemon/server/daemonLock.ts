// One daemon a user and machine. The lock is a file that appears whole (a hard link, atomic on network file systems too) and names
// its owner by number and start; one whose owner is gone, or that says nothing readable, is set aside. Nothing is ever signalled.
import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { writable } from "./daemonHome.ts";
import { isSameProcess, startOfProcess } from "./processIdentity.ts";

export const lockContentSchema = z.object({
  pid: z.int().min(1),
  /** As startOfProcess says. */
  start: z.string().min(1),
  socket: z.string().min(1),
  version: z.string(),
  /** Milliseconds since 1970. */
  since: z.number(),
});
export type LockContent = z.infer<typeof lockContentSchema>;

export interface DaemonLock {
  readonly content: LockContent;
  /** False once another daemon took the lock: then this one must end. */
  isMine(): boolean;
  dispose(): void;
}

/** The living owner of a lock; null when there is none. */
export function readLock(file: string): LockContent | null {
  const content = parseLock(readText(file));
  return content !== null && isSameProcess(content.pid, content.start) ? content : null;
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function parseLock(text: string | null): LockContent | null {
  if (text === null) return null;
  try {
    return lockContentSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Setting a dead owner's lock aside may meet others who do the same; each round one of them gets on. */
const mostRounds = 20;

/**
 * @throws DAEMON_RUNNING naming the owner's process and socket; DAEMON_HOME_UNUSABLE
 */
export function takeLock(file: string, given: Pick<LockContent, "socket" | "version" | "since">): DaemonLock {
  const start = startOfProcess(process.pid);
  if (start === null) throw new Error("this process cannot see when it started");
  const content: LockContent = { pid: process.pid, start, ...given };
  const text = `${JSON.stringify(content)}\n`;
  const own = `${file}.${process.pid}-${randomBytes(6).toString("hex")}`;
  try {
    writable(own, () => writeFileSync(own, text, { mode: 0o600 }));
    for (let round = 0; round < mostRounds; round++) {
      try {
        linkSync(own, file);
        return lockOf(file, text, content);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const found = readText(file);
      if (found === null) continue;
      const owner = parseLock(found);
      if (owner !== null && isSameProcess(owner.pid, owner.start)) throw alreadyRunning(owner);
      setAside(file, found);
    }
  } finally {
    rmSync(own, { force: true });
  }
  throw new RollscopeError("DAEMON_START_FAILED", `The lock ${file} changes faster than it can be read.`, {
    next: "Look for a program that starts daemons in a loop, then try again.",
    at: { path: file },
  });
}

function alreadyRunning(owner: LockContent): RollscopeError {
  return new RollscopeError("DAEMON_RUNNING", `A daemon is running already: process ${owner.pid} at ${owner.socket}.`, {
    next: "Use it, or end it with `rollscope daemon stop`; runs go on.",
    at: { pid: owner.pid, socket: owner.socket },
  });
}

/** Removes the lock if it still says what was found; another daemon's new lock goes back to its place. */
function setAside(file: string, found: string): void {
  const aside = `${file}.${process.pid}-${randomBytes(6).toString("hex")}.stale`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  try {
    if (readText(aside) !== found) linkSync(aside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

function lockOf(file: string, text: string, content: LockContent): DaemonLock {
  const isMine = () => readText(file) === text;
  return {
    content,
    isMine,
    dispose: () => {
      if (isMine()) rmSync(file, { force: true });
    },
  };
}
