// Makes a run out of files of other tools: a folder with a journal and records, listed, inspected, queried and exported like any
// run's. A file that is the archive of a run becomes that run again.
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { FileProblem } from "../../../protocol/importedTrajectory.ts";
import { openFileBlobs } from "../store/fileBlobs.ts";
import { importTrajectories } from "../store/interchange/importTrajectories.ts";
import { openTrajectoryFile } from "../store/interchange/openTrajectoryFile.ts";
import { everyDocument } from "../store/pages.ts";
import { openSqliteStore } from "../store/sqliteStore.ts";
import { openJournal, readJournal } from "./journal.ts";
import { unpackRun } from "./runArchive.ts";
import { createRunFolder, type RunFolder, runFolderAt } from "./runFolder.ts";

export interface ImportRequest {
  readonly files: readonly string[];
  /** Folder that the new run is made in, unless `into` names the run's own. */
  readonly outputDir: string;
  /** The run's own folder: made, or an earlier import that is added to; null: a new one in outputDir. */
  readonly into: string | null;
  readonly now: () => number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: { readonly file: string; readonly done: number; readonly total: number }) => void;
}

export interface ImportedFile {
  readonly path: string;
  /** null when nothing of it could be read. */
  readonly format: string | null;
  readonly records: number;
  readonly problems: readonly FileProblem[];
  /** All there were; `problems` lists the first thousand. */
  readonly problemCount: number;
}

export interface ImportedRun {
  readonly folder: RunFolder;
  readonly records: number;
  readonly files: readonly ImportedFile[];
}

/** What `recipe` of the journal says of a run that was imported. */
export const importedRecipe = "import";

/**
 * Problems of single records are told in the result and in the journal. Throws what makes a whole file unreadable when no file
 * could be read; RUN_FOLDER_UNWRITABLE; COMMAND_INVALID when `into` is something else than an import.
 */
export async function importRun(request: ImportRequest): Promise<ImportedRun> {
  const archive = request.files.length === 1 && (await isTar(request.files[0] as string));
  if (archive) {
    const target = request.into === null ? { outputDir: request.outputDir } : { into: request.into };
    const { folder, records } = await unpackRun(request.files[0] as string, target);
    const file = {
      path: request.files[0] as string,
      format: "rollscope-archive",
      records,
      problems: [],
      problemCount: 0,
    };
    return { folder, records, files: [file] };
  }
  // What cannot be read at all shall not leave an empty run behind.
  const failures = new Map<string, RollscopeError>();
  for (const path of request.files) {
    try {
      await (await openTrajectoryFile(path, request.signal === undefined ? {} : { signal: request.signal })).close();
    } catch (error) {
      if (!(error instanceof RollscopeError) || request.signal?.aborted) throw error;
      failures.set(path, error);
    }
  }
  const first = [...failures.values()][0];
  if (failures.size === request.files.length && first !== undefined) throw first;
  const { folder, attempt } = targetFolder(request);
  return await fill(folder, attempt, request, failures);
}

async function fill(
  folder: RunFolder,
  attempt: number,
  request: ImportRequest,
  failures: ReadonlyMap<string, RollscopeError>,
): Promise<ImportedRun> {
  const { run } = folder;
  const journal = openJournal(folder.journal, attempt, request.now);
  try {
    journal.append({
      type: "started",
      run,
      recipe: importedRecipe,
      model: "",
      steps: 0,
      seed: 0,
      evaluations: [],
      resumed: attempt === 1 ? null : { step: 0, checkpoint: null, voidedSteps: 0 },
    });
    const store = await openSqliteStore(folder.records);
    const files: ImportedFile[] = [];
    let records = 0;
    try {
      const blobs = await openFileBlobs(folder.blobs);
      const taken = new Set<string>();
      for await (const record of everyDocument(store.records, { run })) taken.add(record.id);
      for await (const task of everyDocument(store.tasks, { run })) taken.add(task.id);
      for (const path of request.files) {
        const failure = failures.get(path);
        if (failure !== undefined) {
          warn(failure);
          const problem = {
            code: failure.code,
            message: failure.message,
            next: failure.next,
            line: null,
            byte: null,
            member: null,
          };
          files.push({ path, format: null, records: 0, problems: [problem], problemCount: 1 });
          continue;
        }
        const file = await openTrajectoryFile(path, request.signal === undefined ? {} : { signal: request.signal });
        try {
          const imported = await importTrajectories(store, blobs, file, {
            run,
            now: request.now,
            taken,
            ...(request.signal === undefined ? {} : { signal: request.signal }),
            onProgress: (done, total) => request.onProgress?.({ file: path, done, total }),
          });
          records += imported.records;
          for (const { code, message, next } of file.problems)
            journal.append({ type: "warning", step: null, error: { code, message, next } });
          files.push({
            path,
            format: file.format,
            records: imported.records,
            problems: [...file.problems],
            problemCount: file.problemCount,
          });
        } finally {
          await file.close();
        }
      }
    } finally {
      await store.dispose();
    }
    journal.append({ type: "ended", status: "completed", step: 0, error: null, peakMemory: null, record: null });
    return { folder, records, files };
  } catch (error) {
    const known = error instanceof RollscopeError ? error : null;
    journal.append({
      type: "ended",
      status: request.signal?.aborted ? "stopped" : "failed",
      step: 0,
      error: {
        code: known?.code ?? "RUN_FAILED",
        message: error instanceof Error ? error.message : String(error),
        next: known?.next ?? "Import the files again into a new folder.",
      },
      peakMemory: null,
      record: null,
    });
    throw error;
  } finally {
    journal.dispose();
  }

  function warn({ code, message, next }: RollscopeError): void {
    journal.append({ type: "warning", step: null, error: { code, message, next } });
  }
}

function targetFolder({ into, outputDir, files, now }: ImportRequest): { folder: RunFolder; attempt: number } {
  if (into === null) {
    const name = `imported-${basename(files[0] as string).replace(/(\.[A-Za-z]+)+$/, "")}`;
    return { folder: createRunFolder(outputDir, name, new Date(now())), attempt: 1 };
  }
  const path = resolve(into);
  if (!existsSync(path) || readdirSync(path).length === 0) {
    const made = runFolderAt(path);
    try {
      mkdirSync(dirname(path), { recursive: true });
      mkdirSync(path, { recursive: true, mode: 0o700 });
      for (const inside of [made.blobs, made.checkpoints, made.recipe]) mkdirSync(inside);
    } catch (error) {
      throw new RollscopeError(
        "RUN_FOLDER_UNWRITABLE",
        `The folder ${path} cannot be made: ${(error as Error).message}.`,
        {
          next: "Choose another folder with --into.",
          cause: error,
          at: { path },
        },
      );
    }
    return { folder: made, attempt: 1 };
  }
  const folder = runFolderAt(path);
  const starts = readJournal(folder.journal).events.filter((event) => event.type === "started");
  if (starts.length > 0 && starts.every((event) => event.recipe === importedRecipe))
    return { folder, attempt: Math.max(...starts.map((event) => event.attempt)) + 1 };
  throw new RollscopeError("COMMAND_INVALID", `${path} is not empty, and no earlier import.`, {
    next: "Name a folder that does not exist yet, or leave --into out.",
    at: { path },
  });
}

/** By content: a tar has its mark at byte 257. */
async function isTar(path: string): Promise<boolean> {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, "r");
  } catch {
    // Whoever opens it next says what is wrong.
    return false;
  }
  try {
    const mark = Buffer.alloc(5);
    const { bytesRead } = await file.read(mark, 0, 5, 257);
    return bytesRead === 5 && mark.toString("latin1") === "ustar";
  } catch {
    return false;
  } finally {
    await file.close();
  }
}
