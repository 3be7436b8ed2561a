// Where the daemon keeps its lock, socket, log and list of runs: ~/.rollscope/daemon, or below ROLLSCOPE_HOME; private to its user.
// The lock and the socket carry the machine's name, because a home may lie on several machines at once.

import { createHash } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync } from "node:fs";
import { homedir, hostname, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { RollscopeError } from "../../../../protocol/errors.ts";

export interface DaemonHome {
  readonly folder: string;
  readonly lock: string;
  /** Longest of all, so perhaps elsewhere: see socketPath. */
  readonly socket: string;
  readonly log: string;
  /** Folders that clients asked about, and runs. */
  readonly registry: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** What sun_path takes on the systems we know, without its zero. */
const longestSocketPath = 103;

export function rollscopeHome(environment: Environment): string {
  return environment["ROLLSCOPE_HOME"] || join(homedir(), ".rollscope");
}

export function daemonHome(environment: Environment): DaemonHome {
  const folder = join(rollscopeHome(environment), "daemon");
  const machine =
    hostname()
      .replaceAll(/[^A-Za-z0-9.-]/g, "_")
      .slice(0, 40) || "localhost";
  return {
    folder,
    lock: join(folder, `${machine}.lock`),
    socket: socketPath(join(folder, `${machine}.sock`), environment),
    log: join(folder, `${machine}.log`),
    registry: join(folder, `${machine}.runs.json`),
  };
}

/** In the folder where that fits; else in the user's run-time folder, else in a private folder of the temporary one. */
function socketPath(wanted: string, environment: Environment): string {
  if (Buffer.byteLength(wanted) <= longestSocketPath) return wanted;
  const name = `rollscope-${createHash("sha256").update(wanted).digest("hex").slice(0, 16)}.sock`;
  const runtime = environment["XDG_RUNTIME_DIR"];
  if (runtime && Buffer.byteLength(join(runtime, name)) <= longestSocketPath) return join(runtime, name);
  const short = join(tmpdir(), `rollscope-${userInfo().uid}`, name);
  return Buffer.byteLength(short) <= longestSocketPath ? short : join("/tmp", `rollscope-${userInfo().uid}`, name);
}

/**
 * Makes a folder that only its user can enter.
 *
 * @throws DAEMON_HOME_UNUSABLE when it is somebody else's, a link, or cannot be made
 */
export function makePrivateFolder(folder: string): void {
  const unusable = (why: string, cause?: unknown) =>
    new RollscopeError("DAEMON_HOME_UNUSABLE", `${folder} ${why}.`, {
      next: "Set ROLLSCOPE_HOME to a folder of your own.",
      cause,
      at: { path: folder },
    });
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found = lstatSync(folder);
    if (!found.isDirectory()) throw unusable("is no folder");
    if (found.uid !== userInfo().uid) throw unusable("belongs to another user");
    if ((found.mode & 0o077) !== 0) chmodSync(folder, 0o700);
  } catch (error) {
    if (error instanceof RollscopeError) throw error;
    throw unusable("cannot be made or made private", error);
  }
}

/** Does what writes a file of the home. @throws DAEMON_HOME_UNUSABLE with the file's path when the system refuses it */
export function writable<T>(file: string, write: () => T): T {
  try {
    return write();
  } catch (cause) {
    throw new RollscopeError("DAEMON_HOME_UNUSABLE", `${file} cannot be written: ${(cause as Error).message}.`, {
      next: "Free space there or correct its permissions, or set ROLLSCOPE_HOME to another folder.",
      cause,
      at: { path: file },
    });
  }
}
