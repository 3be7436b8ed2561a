// Where records go, tried on the disk that runs are made on: a store is made, written, read through a second connection while the
// first is open; a column file is written and read back by its hash.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { openFileBlobs } from "../../store/fileBlobs.ts";
import { fileSystemOf } from "../../store/fileSystemOf.ts";
import { openSqliteStore } from "../../store/sqliteStore.ts";
import type { DoctorContext, Finding } from "./finding.ts";

const run = "doctor";

export async function checkStore({ scratch, writable, outputDir }: DoctorContext): Promise<Finding> {
  if (!writable) {
    return {
      status: "failed",
      detail: `${outputDir} cannot be written.`,
      next: "Choose another folder for runs with --output-dir or ROLLSCOPE_OUTPUT_DIR.",
    };
  }
  const path = join(scratch, "records.sqlite");
  const store = await openSqliteStore(path);
  try {
    const task = {
      ...{ id: "t0", run, name: "t0", split: "train" as const, epoch: 0, index: 0, payload: { a: 1 }, groupSize: 1 },
      ...{ status: "running" as const, scores: [], created: Date.now() },
    };
    await store.tasks.insert([task]);
    const isWal = existsSync(`${path}-wal`);
    const reader = await openSqliteStore(path, { readOnly: true });
    const { items } = await reader.tasks.query({ run });
    await reader.dispose();
    const type = fileSystemOf(scratch) ?? "unknown file system";
    if (items.length !== 1 || !isWal) {
      return {
        status: "failed",
        detail: `SQLite does not keep what is written to ${outputDir} (${type}).`,
        next: "Use a folder on a local disk: --output-dir or ROLLSCOPE_OUTPUT_DIR.",
      };
    }
    return { status: "ok", detail: `written and read beside each other in ${outputDir} (${type})`, next: null };
  } finally {
    await store.dispose();
  }
}

export async function checkBlobs({ scratch }: DoctorContext): Promise<Finding> {
  const blobs = await openFileBlobs(join(scratch, "blobs"));
  const bytes = Uint8Array.from({ length: 65_536 }, (_, index) => index % 251);
  const handle = await blobs.put(bytes);
  const back = await blobs.get(handle);
  if (back === null || Buffer.compare(Buffer.from(back), Buffer.from(bytes)) !== 0) {
    return {
      status: "failed",
      detail: "A file that was written came back as something else.",
      next: "Check the disk; use another folder with --output-dir.",
    };
  }
  return { status: "ok", detail: "64 KiB written and read back by hash", next: null };
}
