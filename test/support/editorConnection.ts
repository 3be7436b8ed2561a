// The extension's connection to a daemon, over the bridge and in a home of its own, without an editor around it. The daemon that it
// starts ends with the test.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type ConnectionState, DaemonConnection, type Log } from "../../extension/daemon/connection.ts";
import { createLauncher } from "../../extension/daemon/launch.ts";

export const silentLog: Log = { info: () => {}, warn: () => {}, error: () => {} };
const node = { file: process.execPath, version: process.versions.node, origin: "system" } as const;

/** Resolves when no process of that number is left. */
async function ended(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export interface EditorConnection {
  readonly connection: DaemonConnection;
  /** Resolves once it is in that state. */
  reached(kind: ConnectionState["kind"]): Promise<ConnectionState>;
  /** Tries again, where it would wait for its time to come. */
  retry(): void;
}

export function temporaryEditorHome(): string {
  const home = mkdtempSync(join(tmpdir(), "rollscope-home-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

/** @param file the bundled command line */
export function connectEditor(file: string, home: string): EditorConnection {
  const environment = { ROLLSCOPE_HOME: home };
  let retry = () => {};
  const connection = new DaemonConnection({
    version: "0.0.0",
    log: silentLog,
    findLauncher: async () =>
      createLauncher({ kind: "script", origin: "home", file, node: null }, { ...node, environment }),
    later: (milliseconds, then) => {
      // The limit of hello is real; the pauses before tries are the test's.
      if (milliseconds >= 20_000) {
        const timer = setTimeout(then, milliseconds);
        return () => clearTimeout(timer);
      }
      retry = then;
      return () => {
        retry = () => {};
      };
    },
  });
  onTestFinished(async () => {
    const { state } = connection;
    if (state.kind === "connected") {
      await connection.request("shutdown", {}).catch(() => {});
      await ended(state.hello.pid);
    }
    connection.dispose();
  });
  return {
    connection,
    reached: (kind) =>
      new Promise((resolve) => {
        if (connection.state.kind === kind) return resolve(connection.state);
        const off = connection.onState((state) => {
          if (state.kind !== kind) return;
          off();
          resolve(state);
        });
      }),
    retry: () => retry(),
  };
}
