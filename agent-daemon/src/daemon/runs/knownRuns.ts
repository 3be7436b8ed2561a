// All runs that the daemon knows: those in folders that clients asked about, and those it started. The list outlives the daemon.
// Folders are watched while somebody wants to know; where watching is impossible, a slow look finds changes too.
import { existsSync, type FSWatcher, readdirSync, readFileSync, statSync, watch } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { RunSummary } from "../../../../protocol/runView.ts";
import { type RunFolder, writeWhole } from "../../runs/runFolder.ts";
import type { Clock } from "../../sampling/clock.ts";
import type { DaemonLog } from "../daemonLog.ts";
import { KnownRun } from "./knownRun.ts";

export interface KnownRuns {
  /** @throws RUN_NOT_FOUND when no run lies there */
  folder(path: string): RunFolder;
  /** A run, read up to now. @throws RUN_NOT_FOUND */
  run(path: string): Promise<KnownRun>;
  /** Looks into folders (runs, output folders, recipes' folders) and returns the runs found, newest first. */
  look(folders: readonly string[]): Promise<RunSummary[]>;
  /** All that are known, newest first. */
  list(): Promise<RunSummary[]>;
  /** A run that is being started: its folder is there, its journal is not. */
  add(path: string): KnownRun;
  /** Takes a run from the list. */
  forget(path: string): Promise<void>;
  /** Tells what changed; while somebody listens, folders are looked at for new runs too. */
  onChange(listener: (changed: KnownRun | null, removed: string | null) => void): () => void;
  onRemoved(listener: (folder: string) => void): () => void;
  dispose(): Promise<void>;
}

const registrySchema = z.object({ folders: z.array(z.string()), runs: z.array(z.string()) });

export interface KnownRunsOptions {
  readonly registry: string;
  readonly clock: Clock;
  readonly log: DaemonLog;
  /** Between slow looks at runs with a process, and at all others, in milliseconds. */
  readonly slow?: { readonly live: number; readonly others: number };
}

/** Folders kept in the list; the ones that were asked about first go first. */
const mostFolders = 200;
const mostWatched = 500;
/** Folders that may become a run's, and how long they have for it. */
const mostComing = 16;
const comingMilliseconds = 120_000;

function isRun(path: string): boolean {
  return existsSync(join(path, "journal.jsonl"));
}

export function openKnownRuns(options: KnownRunsOptions): KnownRuns {
  const { registry, clock, log } = options;
  const slow = options.slow ?? { live: 2000, others: 15_000 };
  const runs = new Map<string, KnownRun>();
  const folders = new Map<string, FSWatcher | null>();
  const coming = new Map<string, { readonly watcher: FSWatcher; readonly forget: () => void }>();
  const listeners = new Set<(changed: KnownRun | null, removed: string | null) => void>();
  let disposed = false;
  let stopTimer: (() => void) | null = null;
  let othersAt = 0;

  const removalListeners = new Set<(folder: string) => void>();
  const tell = (changed: KnownRun | null, removed: string | null) => {
    for (const listener of [...listeners]) listener(changed, removed);
  };

  const save = () => {
    try {
      writeWhole(registry, `${JSON.stringify({ folders: [...folders.keys()], runs: [...runs.keys()] })}\n`);
    } catch (error) {
      log.warn(`the list of runs could not be written: ${(error as Error).message}`);
    }
  };

  const open = (path: string): KnownRun => {
    let run = runs.get(path);
    if (run === undefined) {
      const made = new KnownRun(path, clock);
      run = made;
      runs.set(path, made);
      made.onChange(() => {
        tell(made, null);
        keepTime();
      });
      if (runs.size <= mostWatched) made.watch();
    }
    return run;
  };

  /** New runs of a folder; those whose folder is gone are dropped. */
  const scan = async (folder: string): Promise<KnownRun[]> => {
    const found: string[] = [];
    const below = (path: string) => {
      try {
        return readdirSync(path, { withFileTypes: true })
          .filter((entry) => entry.isDirectory())
          .map((entry) => join(path, entry.name));
      } catch {
        return [];
      }
    };
    if (isRun(folder)) found.push(folder);
    else {
      found.push(...below(folder).filter(isRun));
      // A recipe's folder keeps its runs in `runs`.
      found.push(...below(join(folder, "runs")).filter(isRun));
    }
    const opened = found.map(open);
    for (const run of opened) await run.refresh().catch((error) => log.warn(`${run.path}: ${error}`));
    return opened;
  };

  /** Waits until a folder that has just been made turns out to be a run's. */
  const awaitRun = (folder: string, name: string) => {
    const path = join(folder, name);
    if (coming.has(path) || coming.size >= mostComing || isRun(path)) return;
    try {
      const watcher = watch(path, { persistent: false }, () => {
        if (existsSync(path) && !isRun(path)) return;
        stopAwaiting(path);
        void scan(folder).then(save);
      });
      watcher.on("error", () => stopAwaiting(path));
      coming.set(path, { watcher, forget: clock.after(comingMilliseconds, () => stopAwaiting(path)) });
      // It may have become one before it was watched.
      if (isRun(path)) {
        stopAwaiting(path);
        void scan(folder).then(save);
      }
    } catch {
      // No folder, or gone already.
    }
  };
  const stopAwaiting = (path: string) => {
    const awaited = coming.get(path);
    coming.delete(path);
    awaited?.watcher.close();
    awaited?.forget();
  };

  const watchFolder = (folder: string) => {
    if (folders.get(folder) != null || disposed) return;
    let watcher: FSWatcher | null = null;
    try {
      watcher = watch(folder, { persistent: false }, (_, name) => {
        if (name !== null && statSync(join(folder, name), { throwIfNoEntry: false })?.isDirectory() === true)
          awaitRun(folder, name);
        // A recipe's folder may only now have got its `runs`.
        if (name === "runs") watchFolder(join(folder, name));
        void scan(folder).then(save);
      });
      watcher.on("error", () => {
        watcher?.close();
        if (folders.has(folder)) folders.set(folder, null);
      });
    } catch {
      // Not there yet, or no watches left.
    }
    folders.set(folder, watcher);
  };

  const remember = (folder: string) => {
    const places = isRun(folder) ? [] : [folder, join(folder, "runs")];
    for (const place of places) {
      if (place !== folder && !existsSync(place)) continue;
      watchFolder(place);
    }
    while (folders.size > mostFolders) {
      const [oldest, watcher] = folders.entries().next().value!;
      watcher?.close();
      folders.delete(oldest);
    }
  };

  const drop = async (path: string) => {
    const run = runs.get(path);
    if (run === undefined) return;
    runs.delete(path);
    await run.dispose();
    tell(null, path);
    for (const listener of [...removalListeners]) listener(path);
  };

  /** One look at what no watch may tell: processes that end, folders on other machines' disks, folders that are gone. */
  const lookSlowly = async () => {
    const isDue = clock.now() - othersAt >= slow.others;
    if (isDue) othersAt = clock.now();
    for (const run of [...runs.values()]) {
      if (!run.isLive && !isDue) continue;
      if (!existsSync(run.path)) await drop(run.path);
      else await run.refresh().catch((error) => log.warn(`${run.path}: ${error}`));
    }
    if (isDue && listeners.size > 0) for (const folder of [...folders.keys()]) await scan(folder);
  };

  /** The timer runs only while a run has a process or somebody listens. */
  const keepTime = () => {
    if (disposed || stopTimer !== null) return;
    const isLive = [...runs.values()].some((run) => run.isLive);
    if (!isLive && listeners.size === 0) return;
    stopTimer = clock.after(isLive ? slow.live : slow.others, () => {
      stopTimer = null;
      void lookSlowly().finally(keepTime);
    });
  };

  const list = async (): Promise<RunSummary[]> => {
    await restored;
    return newestFirst([...runs.values()].map((run) => run.summary()));
  };

  const restored = (async () => {
    let text: string;
    try {
      text = readFileSync(registry, "utf8");
    } catch {
      return;
    }
    let kept: z.infer<typeof registrySchema>;
    try {
      kept = registrySchema.parse(JSON.parse(text));
    } catch {
      log.warn("the list of runs was damaged and begins anew");
      return;
    }
    for (const folder of kept.folders) remember(folder);
    for (const path of kept.runs)
      if (existsSync(path))
        await open(path)
          .refresh()
          .catch(() => {});
    keepTime();
  })();

  const require = (path: string): KnownRun => {
    const absolute = resolve(path);
    const known = runs.get(absolute);
    if (known !== undefined) return known;
    if (!isRun(absolute)) {
      throw new RollscopeError("RUN_NOT_FOUND", `There is no run in ${absolute}.`, {
        next: "Look into its folder again; it may have been moved or removed.",
        at: { path: absolute },
      });
    }
    return open(absolute);
  };

  return {
    folder: (path) => require(path).folder,
    async run(path) {
      const run = require(path);
      if (!existsSync(run.path)) {
        await drop(run.path);
        return require(path);
      }
      await run.refresh();
      keepTime();
      return run;
    },
    async look(wanted) {
      await restored;
      const found = new Set<KnownRun>();
      for (const folder of wanted) {
        const absolute = resolve(folder);
        remember(absolute);
        for (const run of await scan(absolute)) found.add(run);
      }
      save();
      keepTime();
      return newestFirst([...found].map((run) => run.summary()));
    },
    list,
    add(path) {
      const run = open(resolve(path));
      save();
      return run;
    },
    async forget(path) {
      await drop(resolve(path));
      save();
    },
    onChange(listener) {
      listeners.add(listener);
      keepTime();
      return () => listeners.delete(listener);
    },
    onRemoved(listener) {
      removalListeners.add(listener);
      return () => removalListeners.delete(listener);
    },
    async dispose() {
      disposed = true;
      stopTimer?.();
      for (const watcher of folders.values()) watcher?.close();
      for (const path of [...coming.keys()]) stopAwaiting(path);
      await restored;
      await Promise.all([...runs.values()].map((run) => run.dispose()));
    },
  };
}

function newestFirst(summaries: RunSummary[]): RunSummary[] {
  return summaries.sort((a, b) => (b.begun ?? Number.POSITIVE_INFINITY) - (a.begun ?? Number.POSITIVE_INFINITY));
}
