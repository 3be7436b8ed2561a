// The lock of a run's folder: one process coordinates a run, whatever moment it is at. It is a write lock of SQLite on a file
// of its own, which the system lets go when its process ends, however it ends; no number of a process is ever trusted.
import { RollscopeError } from "../../../protocol/errors.ts";
import { SqliteConnection } from "../store/sqliteConnection.ts";
import type { RunFolder } from "./runFolder.ts";

export interface RunLock {
  /** Lets the next process have the run. */
  dispose(): void;
}

/**
 * Takes the lock without waiting.
 *
 * @throws RUN_ACTIVE when another attempt holds it; RUN_FOLDER_INVALID where the file is damaged; RUN_FOLDER_UNWRITABLE
 */
export function lockRun(folder: RunFolder): RunLock {
  let connection: SqliteConnection | null = null;
  try {
    connection = new SqliteConnection(folder.lock, { busyMilliseconds: 0 });
    connection.exec("BEGIN IMMEDIATE");
  } catch (cause) {
    connection?.dispose();
    if (cause instanceof RollscopeError && cause.code === "STORE_BUSY") {
      throw new RollscopeError("RUN_ACTIVE", `Another process is running ${folder.name}.`, {
        next: "`rollscope list` shows how far it is; `rollscope stop` ends it.",
        cause,
        at: { run: folder.run },
      });
    }
    // Not mended here: two processes that mend at once could both believe that they hold it.
    if (cause instanceof RollscopeError && cause.code === "STORE_CORRUPT") {
      throw new RollscopeError("RUN_FOLDER_INVALID", `The lock of ${folder.name} is damaged: ${folder.lock}.`, {
        next: "Delete that file, which holds no data, and resume; a process that runs the run must have ended before.",
        cause,
        at: { path: folder.lock },
      });
    }
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new RollscopeError("RUN_FOLDER_UNWRITABLE", `The run's folder cannot be locked: ${said}`, {
      next: "Look at its permissions and the space on its disk.",
      cause,
      at: { path: folder.lock },
    });
  }
  const held = connection;
  return {
    dispose() {
      // Closing alone leaves it locked until the binding has collected its statements.
      held.exec("ROLLBACK");
      held.dispose();
    },
  };
}
