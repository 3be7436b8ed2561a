// The folder of a run: its name, its layout, and how runs are found again. Everything a run writes lies in here; the folder
// belongs to the user alone (0700), because control.json holds a token.
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readSync, renameSync, writeFileSync } from "node:fs";
import { basename, join, resolve, sep } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";

export interface RunFolder {
  /** Absolute path. */
  readonly path: string;
  /** Name of the folder: the run's id. */
  readonly run: string;
  readonly config: string;
  readonly recipe: string;
  readonly environment: string;
  readonly journal: string;
  readonly records: string;
  readonly blobs: string;
  readonly checkpoints: string;
  readonly control: string;
}

export function runFolderAt(path: string): RunFolder {
  const absolute = resolve(path);
  const inside = (name: string) => join(absolute, name);
  return {
    path: absolute,
    run: basename(absolute),
    config: inside("config.resolved.yaml"),
    recipe: inside("recipe"),
    environment: inside("environment.json"),
    journal: inside("journal.jsonl"),
    records: inside("records.sqlite"),
    blobs: inside("blobs"),
    checkpoints: inside("checkpoints"),
    control: inside("control.json"),
  };
}

/** `20260131-142501`, local time. */
function timestamp(now: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const date = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  return `${date}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
}

/** A name that is safe in a path on every system. */
function slug(name: string): string {
  const safe = name
    .normalize("NFKD")
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[-.]+|[-.]+$/g, "");
  return safe === "" ? "run" : safe.slice(0, 60);
}

/**
 * Makes a folder of its own for a new run: `<name>-<time>`, with a counter when that is taken.
 *
 * @throws RUN_FOLDER_UNWRITABLE
 */
export function createRunFolder(outputDir: string, name: string, now: Date): RunFolder {
  const base = `${slug(name)}-${timestamp(now)}`;
  try {
    mkdirSync(outputDir, { recursive: true });
    for (let count = 1; ; count++) {
      const path = join(outputDir, count === 1 ? base : `${base}-${count}`);
      try {
        mkdirSync(path, { mode: 0o700 });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
        throw error;
      }
      const folder = runFolderAt(path);
      for (const inside of [folder.blobs, folder.checkpoints, folder.recipe]) mkdirSync(inside);
      return folder;
    }
  } catch (error) {
    throw new RollscopeError(
      "RUN_FOLDER_UNWRITABLE",
      `No run folder can be made in ${outputDir}: ${(error as Error).message}.`,
      {
        next: "Choose another folder with --output-dir or ROLLSCOPE_OUTPUT_DIR.",
        cause: error,
        at: { path: outputDir },
      },
    );
  }
}

/** Writes a file whole or not at all. */
export function writeWhole(file: string, contents: string, mode = 0o600): void {
  const temporary = `${file}.${process.pid}.part`;
  writeFileSync(temporary, contents, { mode });
  renameSync(temporary, file);
}

function isRunFolder(path: string): boolean {
  return existsSync(join(path, "journal.jsonl"));
}

/** All runs below a folder, oldest name first. */
export function listRunFolders(outputDir: string): RunFolder[] {
  if (!existsSync(outputDir)) return [];
  return readdirSync(outputDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && isRunFolder(join(outputDir, entry.name)))
    .map((entry) => runFolderAt(join(outputDir, entry.name)))
    .sort((a, b) => (a.run < b.run ? -1 : 1));
}

/**
 * Finds a run by its path, its name, or an unambiguous beginning of its name; `latest` is the newest.
 *
 * @throws RUN_NOT_FOUND, RUN_AMBIGUOUS
 */
export function findRun(wanted: string, outputDir: string): RunFolder {
  if (isRunFolder(wanted)) return runFolderAt(wanted);
  const runs = listRunFolders(outputDir);
  if (wanted === "latest") {
    const newest = runs
      .map((folder) => ({ folder, at: startOf(folder) }))
      .sort((a, b) => a.at - b.at)
      .at(-1);
    if (newest !== undefined) return newest.folder;
  }
  const exact = runs.find((folder) => folder.run === wanted);
  if (exact !== undefined) return exact;
  const matching = wanted.includes(sep) ? [] : runs.filter((folder) => folder.run.startsWith(wanted));
  if (matching.length === 1) return matching[0] as RunFolder;
  if (matching.length > 1) {
    throw new RollscopeError("RUN_AMBIGUOUS", `${wanted} is the beginning of ${matching.length} runs.`, {
      next: `Name one of ${matching.map((folder) => folder.run).join(", ")}.`,
      at: { run: wanted },
    });
  }
  throw new RollscopeError("RUN_NOT_FOUND", `There is no run ${wanted} in ${outputDir}.`, {
    next:
      runs.length === 0
        ? "Start one with `rollscope run RECIPE`, or name the folder with --output-dir."
        : `Newest: ${runs.at(-1)?.run}. \`rollscope list\` shows all.`,
    at: { run: wanted },
  });
}

/** Milliseconds since 1970 of a run's first event. */
function startOf(folder: RunFolder): number {
  const descriptor = openSync(folder.journal, "r");
  try {
    const head = Buffer.alloc(256);
    const length = readSync(descriptor, head, 0, head.length, 0);
    return Number(/"at":(\d+)/.exec(head.toString("utf8", 0, length))?.[1] ?? 0);
  } finally {
    closeSync(descriptor);
  }
}
