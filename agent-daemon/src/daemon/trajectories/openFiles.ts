// Files of trajectories that clients look at: each is opened once, told about while it is indexed, and closed with its last user. A
// file that changed since is another one.
import { statSync } from "node:fs";
import { openTrajectoryFile, type TrajectoryFile } from "../../store/interchange/openTrajectoryFile.ts";

/** While a file is indexed, users hear of it at most so often. */
const tellMilliseconds = 200;

export interface HeldFile {
  readonly file: TrajectoryFile;
  release(): void;
}

export interface OpenFiles {
  /**
   * @param onChange called while the file is indexed, and when that is over
   * @throws what openTrajectoryFile throws
   */
  hold(path: string, onChange: () => void): Promise<HeldFile>;
  dispose(): Promise<void>;
}

interface Entry {
  readonly file: Promise<TrajectoryFile>;
  readonly listeners: Set<() => void>;
}

export function createOpenFiles(now: () => number): OpenFiles {
  const entries = new Map<string, Entry>();
  const keyOf = (path: string) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return `${path} ${stat?.ino} ${stat?.size} ${stat?.mtimeMs}`;
  };
  const open = (path: string): Entry => {
    const listeners = new Set<() => void>();
    let told = 0;
    const file = openTrajectoryFile(path, {
      onProgress: ({ done, total }) => {
        if (done < total && now() - told < tellMilliseconds) return;
        told = now();
        for (const listener of listeners) listener();
      },
    });
    return { file, listeners };
  };
  const close = async (key: string) => {
    const entry = entries.get(key);
    entries.delete(key);
    await entry?.file.then((file) => file.close()).catch(() => {});
  };
  return {
    async hold(path, onChange) {
      const key = keyOf(path);
      const entry = entries.get(key) ?? open(path);
      entries.set(key, entry);
      const listener = () => onChange();
      entry.listeners.add(listener);
      const release = () => {
        entry.listeners.delete(listener);
        if (entry.listeners.size === 0 && entries.get(key) === entry) void close(key);
      };
      try {
        return { file: await entry.file, release };
      } catch (error) {
        release();
        throw error;
      }
    },
    async dispose() {
      for (const key of [...entries.keys()]) await close(key);
    },
  };
}
