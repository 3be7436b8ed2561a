// The folder of a run: its name, its layout, and how runs are found again. Everything a run writes lies in here; the folder
// belongs to the user alone (0700), because control.json holds a token.
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join, resolve, sep } from "node:path";
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";
import { journalFiles } from "./journalFiles.ts";

export interface RunFolder {
  /** Absolute path. */
  readonly path: string;
  /** The run's id, in its records, steps and journal: the name its folder was made with. */
  readonly run: string;
  /** The folder's name now; it is another one when the folder was copied or renamed. */
  readonly name: string;
  readonly config: string;
  readonly recipe: string;
  readonly environment: string;
  readonly journal: string;
  readonly records: string;
  readonly blobs: string;
  readonly checkpoints: string;
  readonly control: string;
  readonly lock: string;
}

export function runFolderAt(path: string): RunFolder {
  const absolute = resolve(path);
  const inside = (name: string) => join(absolute, name);
  return {
    path: absolute,
    run: writtenId(headOfJournal(absolute, 65_536)) ?? basename(absolute),
    name: basename(absolute),
    config: inside("config.resolved.yaml"),
    recipe: inside("recipe"),
    environment: inside("environment.json"),
    journal: inside("journal.jsonl"),
    records: inside("records.sqlite"),
    blobs: inside("blobs"),
    checkpoints: inside("checkpoints"),
    control: inside("control.json"),
    lock: inside("lock.sqlite"),
  };
}

/** The id in the first begin of a run; null when none was written. */
function writtenId(journal: string): string | null {
  const id = /"type":"started","run":("(?:[^"\\]|\\.)*")/.exec(journal)?.[1];
  return id === undefined ? null : z.string().parse(JSON.parse(id));
}

/** Its first bytes, also when it was rotated since. */
function headOfJournal(folder: string, length: number): string {
  const { snapshot, current } = journalFiles(join(folder, "journal.jsonl"));
  return headOf(existsSync(snapshot) ? snapshot : current, length);
}

function headOf(file: string, length: number): string {
  if (!existsSync(file)) return "";
  const descriptor = openSync(file, "r");
  try {
    const head = Buffer.alloc(length);
    return head.toString("utf8", 0, readSync(descriptor, head, 0, length, 0));
  } finally {
    closeSync(descriptor);
  }
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

/**
 * What the system said while a file of a run was read or written (no space left, not permitted), as a coded error. Every other
 * error comes back as it is.
 */
export function folderError(error: unknown, folder: RunFolder): unknown {
  if (error instanceof RollscopeError || !(error instanceof Error)) return error;
  const { syscall, code, path, dest } = error as NodeJS.ErrnoException & { readonly dest?: string };
  if (syscall === undefined || code === undefined) return error;
  const file = dest ?? path ?? folder.path;
  return new RollscopeError(
    "RUN_FOLDER_UNWRITABLE",
    `A file of ${folder.run} cannot be read or written: ${error.message}.`,
    {
      next: "Look at the permissions and the free space there; `rollscope resume` goes on when a run had begun.",
      cause: error,
      at: { path: String(file) },
    },
  );
}

/** Writes a file whole or not at all. */
export function writeWhole(file: string, contents: string, mode = 0o600): void {
  const temporary = `${file}.${process.pid}.part`;
  try {
    writeFileSync(temporary, contents, { mode });
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
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
    .sort((a, b) => (a.name < b.name ? -1 : 1));
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
  const exact = runs.find((folder) => folder.name === wanted);
  if (exact !== undefined) return exact;
  const matching = wanted.includes(sep) ? [] : runs.filter((folder) => folder.name.startsWith(wanted));
  if (matching.length === 1) return matching[0] as RunFolder;
  if (matching.length > 1) {
    throw new RollscopeError("RUN_AMBIGUOUS", `${wanted} is the beginning of ${matching.length} runs.`, {
      next: `Name one of ${matching.map((folder) => folder.name).join(", ")}.`,
      at: { run: wanted },
    });
  }
  throw new RollscopeError("RUN_NOT_FOUND", `There is no run ${wanted} in ${outputDir}.`, {
    next:
      runs.length === 0
        ? "Start one with `rollscope run RECIPE`, or name the folder with --output-dir."
        : `Newest: ${runs.at(-1)?.name}. \`rollscope list\` shows all.`,
    at: { run: wanted },
  });
}

/** Milliseconds since 1970 of a run's first event. */
function startOf(folder: RunFolder): number {
  return Number(/"at":(\d+)/.exec(headOfJournal(folder.path, 256))?.[1] ?? 0);
}
