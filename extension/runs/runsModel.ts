// The runs that this window knows, as the daemon tells them; complete again after every reconnect. Knows nothing of how they are shown.
import type { RunStatus, RunSummary } from "../../protocol/runView.ts";
import type { DaemonConnection } from "../daemon/connection.ts";

export const activeStatuses: ReadonlySet<RunStatus> = new Set(["starting", "running", "paused", "stopping"]);

export function isActive(run: RunSummary): boolean {
  return activeStatuses.has(run.status);
}

export interface RunsModel {
  readonly all: () => readonly RunSummary[];
  readonly get: (folder: string) => RunSummary | undefined;
  readonly onChange: (listener: () => void) => () => void;
  /** Resolves once the daemon has told its runs. */
  readonly ready: () => Promise<void>;
  /** Folders that may hold runs changed. */
  readonly lookAgain: () => Promise<void>;
  /** What an answer of the daemon says, before the notification comes. */
  readonly accept: (run: RunSummary) => void;
  readonly dispose: () => void;
}

/** Newest first; runs that have not begun are the newest of all. */
export function inOrder(runs: Iterable<RunSummary>): RunSummary[] {
  const begun = (run: RunSummary) => run.begun ?? Number.POSITIVE_INFINITY;
  return [...runs].sort((a, b) => (begun(a) === begun(b) ? a.folder.localeCompare(b.folder) : begun(b) - begun(a)));
}

/** @param folders where the window's runs may lie */
export function createRunsModel(connection: DaemonConnection, folders: () => Promise<string[]>): RunsModel {
  let runs = new Map<string, RunSummary>();
  let watching: Promise<void> | null = null;
  const listeners = new Set<() => void>();
  const changed = () => {
    for (const listener of listeners) listener();
  };
  const watch = async () => {
    const [looked, known] = await Promise.all([
      connection.request("runs/look", { folders: await folders() }),
      connection.request("runs/watch", {}),
    ]);
    runs = new Map([...known.runs, ...looked.runs].map((run) => [run.folder, run]));
    changed();
  };
  const ready = () => {
    watching ??= watch().catch((error: unknown) => {
      watching = null;
      throw error;
    });
    return watching;
  };
  const offs = [
    connection.on("runs/changed", (change) => {
      for (const run of change.changed) runs.set(run.folder, run);
      for (const folder of change.removed) runs.delete(folder);
      changed();
    }),
    connection.onState((state) => {
      if (state.kind === "connected") {
        watching = null;
        void ready().catch(() => {});
      }
    }),
  ];
  return {
    all: () => inOrder(runs.values()),
    get: (folder) => runs.get(folder),
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    ready,
    lookAgain: async () => {
      watching = null;
      await ready();
    },
    accept: (run) => {
      runs.set(run.folder, run);
      changed();
    },
    dispose: () => {
      for (const off of offs) off();
      listeners.clear();
    },
  };
}
