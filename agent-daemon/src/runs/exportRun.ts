// A run's records for other tools and other machines: lines of chat, training rows, or the whole run as one archive. A file under
// the wanted name is whole or not there.
import { existsSync } from "node:fs";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";
import { openFileBlobs } from "../store/fileBlobs.ts";
import { chatLines } from "../store/interchange/exportChat.ts";
import { openSqliteStore } from "../store/sqliteStore.ts";
import { writeTrainingRows } from "./exportTraining.ts";
import { writeArchive } from "./runArchive.ts";
import type { RunFolder } from "./runFolder.ts";
import { writeLines } from "./writeLines.ts";

export const exportFormats = ["chat", "training", "archive"] as const;
export type ExportFormat = (typeof exportFormats)[number];

const endings: { readonly [Format in ExportFormat]: string } = {
  chat: ".chat.jsonl",
  training: ".training.safetensors",
  archive: ".rollscope.tar",
};

/** The name of an export that was given none. */
export function exportName(folder: RunFolder, format: ExportFormat): string {
  return `${folder.name}${endings[format]}`;
}

export interface ExportResult {
  readonly path: string;
  /** Lines of chat, training rows, or records. */
  readonly records: number;
  readonly bytes: number;
}

/** @throws EXPORT_FAILED, EXPORT_NOTHING, RUN_FOLDER_INVALID, and what the stores throw */
export async function exportRun(folder: RunFolder, format: ExportFormat, out: string): Promise<ExportResult> {
  const path = resolve(out);
  if (!existsSync(folder.records)) {
    throw new RollscopeError("RUN_FOLDER_INVALID", `The run ${folder.run} has no records yet.`, {
      next: "Wait until its first phase is over.",
      at: { path: folder.records },
    });
  }
  const store = await openSqliteStore(folder.records, { readOnly: true });
  try {
    await mkdir(dirname(path), { recursive: true });
    const blobs = await openFileBlobs(folder.blobs);
    let records: number;
    if (format === "archive") records = (await writeArchive(folder, store, path)).records;
    else if (format === "training") records = (await writeTrainingRows(store, blobs, folder.run, path)).rows;
    else records = await writeWholeLines(chatLines(store, blobs, folder.run), path);
    return { path, records, bytes: (await stat(path)).size };
  } catch (error) {
    if (error instanceof RollscopeError) throw error;
    throw new RollscopeError("EXPORT_FAILED", `The export ${path} cannot be written: ${(error as Error).message}.`, {
      next: "Choose another place with --out, with enough space and the right to write there.",
      cause: error,
      at: { path },
    });
  } finally {
    await store.dispose();
  }
}

async function writeWholeLines(lines: AsyncIterable<string>, path: string): Promise<number> {
  const part = `${path}.${process.pid}.part`;
  try {
    const count = await writeLines(part, lines);
    await rename(part, path);
    return count;
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
