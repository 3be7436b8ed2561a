// Stores of runs opened for reading and kept for the next request: a few at a time, the longest unused one closed first. What is
// handed out stays valid while it is in use. Never writes.
import { existsSync } from "node:fs";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { RecipeConfig } from "../../../../protocol/recipe.ts";
import { loadModelText, type ModelText } from "../../engines/tokenizer/load.ts";
import { readConfig } from "../../runs/configFile.ts";
import { readRunEnvironment } from "../../runs/environment.ts";
import type { RunFolder } from "../../runs/runFolder.ts";
import { openFileBlobs } from "../../store/fileBlobs.ts";
import { openSqliteStore } from "../../store/sqliteStore.ts";
import type { RecordSource } from "./recordTrajectory.ts";

const keptRuns = 8;

export interface RunReaders {
  /**
   * Calls `work` with the run's stores.
   *
   * @throws RUN_FOLDER_INVALID when nothing was stored yet
   */
  read<T>(folder: RunFolder, work: (source: RecordSource) => Promise<T>): Promise<T>;
  /** As `read`, until `release` is called. */
  hold(folder: RunFolder): Promise<{ readonly source: RecordSource; release(): void }>;
  dispose(): Promise<void>;
}

interface Kept {
  readonly source: Promise<RecordSource>;
  users: number;
}

export function openRunReaders(): RunReaders {
  const kept = new Map<string, Kept>();
  const closeUnused = async (limit: number) => {
    for (const [path, entry] of kept) {
      if (kept.size <= limit) return;
      if (entry.users > 0) continue;
      kept.delete(path);
      await entry.source.then(({ store }) => store.dispose()).catch(() => {});
    }
  };
  const hold: RunReaders["hold"] = async (folder) => {
    const entry = kept.get(folder.path) ?? { source: openSource(folder), users: 0 };
    kept.delete(folder.path);
    kept.set(folder.path, entry);
    entry.users += 1;
    let held = true;
    const release = () => {
      if (held) entry.users -= 1;
      held = false;
    };
    try {
      const source = await entry.source;
      await closeUnused(keptRuns);
      return { source, release };
    } catch (error) {
      release();
      // The next request tries again: the run may have begun to write by then.
      if (kept.get(folder.path) === entry) kept.delete(folder.path);
      throw error;
    }
  };
  return {
    hold,
    async read(folder, work) {
      const { source, release } = await hold(folder);
      try {
        return await work(source);
      } finally {
        release();
      }
    },
    dispose: () => closeUnused(0),
  };
}

async function openSource(folder: RunFolder): Promise<RecordSource> {
  if (!existsSync(folder.records)) {
    throw new RollscopeError("RUN_FOLDER_INVALID", `The run ${folder.run} has no records yet.`, {
      next: "Wait until its first phase is over.",
      at: { path: folder.records },
    });
  }
  const store = await openSqliteStore(folder.records, { readOnly: true });
  const blobs = await openFileBlobs(folder.blobs);
  let text: ModelText | null | undefined;
  return {
    folder: folder.path,
    run: folder.run,
    store,
    blobs,
    config: configOf(folder),
    text() {
      text ??= textOf(folder);
      return text;
    },
  };
}

function configOf(folder: RunFolder): RecipeConfig | null {
  try {
    return readConfig(folder);
  } catch {
    return null;
  }
}

function textOf(folder: RunFolder): ModelText | null {
  const path = readRunEnvironment(folder)?.model.path;
  return path === undefined || !existsSync(path) ? null : loadModelText(path);
}
