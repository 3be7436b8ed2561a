// A run as one file: a tar of its configuration, environment, recipe, journal, metrics and every document, with the blobs that they
// name. Documents are lines of JSON, so that the archive is read without a store, and the store is made anew from them.
import { createReadStream, existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { create, extract } from "tar";
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";
import { decodeDocument, encodeDocument } from "../store/documentText.ts";
import { openFileBlobs } from "../store/fileBlobs.ts";
import { jsonLine } from "../store/interchange/exportChat.ts";
import type { RecordStore } from "../store/interface.ts";
import { everyDocument } from "../store/pages.ts";
import { openSqliteStore } from "../store/sqliteStore.ts";
import { type RunFolder, runFolderAt } from "./runFolder.ts";
import { writeLines } from "./writeLines.ts";

const manifestSchema = z.object({
  /** Says what this tar is. */
  rollscope: z.literal("run"),
  version: z.literal(1),
  run: z.string().min(1),
  name: z.string().min(1),
  records: z.int().min(0),
  documents: z.record(z.string(), z.int().min(0)),
  blobs: z.int().min(0),
});

const collections = ["tasks", "records", "calls", "toolEvents", "recordData", "plans", "steps"] as const;
type Collection = (typeof collections)[number];

/** Files of a run's folder that go into an archive as they are. */
const wholeFiles = /^(config\.resolved\.yaml|environment\.json|journal(\.\w+)?\.jsonl)$/;
const documentsAtOnce = 200;

/** Writes the archive beside `out` and moves it there when it is whole. @throws EXPORT_FAILED, and what the stores throw */
export async function writeArchive(folder: RunFolder, store: RecordStore, out: string): Promise<{ records: number }> {
  const work = await mkdtemp(`${resolve(out)}.part-`);
  try {
    const counts: { [collection: string]: number } = {};
    await mkdir(join(work, "documents"));
    for (const collection of collections) {
      const documents = documentLines(store, collection, folder.run);
      counts[collection] = await writeLines(join(work, "documents", `${collection}.jsonl`), documents);
    }
    await writeLines(join(work, "metrics.jsonl"), metricLines(store, folder.run));
    for (const name of await readdir(folder.path))
      if (wholeFiles.test(name)) await cp(join(folder.path, name), join(work, name));
    if (existsSync(folder.recipe)) await cp(folder.recipe, join(work, "recipe"), { recursive: true });
    const blobs = existsSync(folder.blobs) ? await copyBlobs(folder.blobs, join(work, "blobs")) : 0;
    const records = counts["records"] ?? 0;
    const manifest = {
      rollscope: "run",
      version: 1,
      run: folder.run,
      name: folder.name,
      records,
      documents: counts,
      blobs,
    };
    await writeFile(join(work, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    const others = (await readdir(work)).filter((name) => name !== "manifest.json").sort();
    await create({ file: `${work}.tar`, cwd: work, portable: true, noMtime: true }, ["manifest.json", ...others]);
    await rename(`${work}.tar`, out);
    return { records };
  } finally {
    await rm(work, { recursive: true, force: true });
    await rm(`${work}.tar`, { force: true });
  }
}

/** One line a step: JSON that every reader understands, NaN and the infinities as words. */
async function* metricLines(store: RecordStore, run: string): AsyncIterable<string> {
  for await (const step of everyDocument(store.steps, { run, void: true }, { order: "step" })) {
    const { attempt, metrics, weightVersion, wallMs, committed, voidedBy } = step;
    yield `${jsonLine({ step: step.step, attempt, voidedBy, weightVersion, wallMs, committed, metrics })}\n`;
  }
}

async function* documentLines(store: RecordStore, collection: Collection, run: string): AsyncIterable<string> {
  for await (const document of documentsOf(store, collection, run)) yield `${encodeDocument(document)}\n`;
}

/** Voided and uncommitted ones too. */
async function* documentsOf(store: RecordStore, collection: Collection, run: string): AsyncIterable<unknown> {
  switch (collection) {
    case "recordData":
      return yield* everyDocument(store.recordData, { run, void: true });
    case "plans":
      return yield* everyDocument(store.plans, { run, void: true });
    case "steps":
      return yield* everyDocument(store.steps, { run, void: true });
    case "tasks":
      return yield* everyDocument(store.tasks, { run });
    case "records":
      return yield* everyDocument(store.records, { run });
    case "calls":
      return yield* everyDocument(store.calls, { run });
    case "toolEvents":
      return yield* everyDocument(store.toolEvents, { run });
  }
}

async function copyBlobs(from: string, to: string): Promise<number> {
  let copied = 0;
  for (const folder of await readdir(from)) {
    if (!/^[0-9a-f]{2}$/.test(folder)) continue;
    await mkdir(join(to, folder), { recursive: true });
    for (const name of await readdir(join(from, folder))) {
      await cp(join(from, folder, name), join(to, folder, name));
      copied++;
    }
  }
  return copied;
}

/**
 * Makes the run's folder again, from an archive. Nothing is there under its name before it is whole.
 *
 * @throws IMPORT_FILE_INVALID, IMPORT_FORMAT_UNKNOWN, RUN_FOLDER_UNWRITABLE
 */
export async function unpackRun(
  archive: string,
  target: { readonly outputDir: string } | { readonly into: string },
): Promise<{ folder: RunFolder; records: number }> {
  const parent = "into" in target ? dirname(resolve(target.into)) : resolve(target.outputDir);
  await mkdir(parent, { recursive: true });
  const work = await mkdtemp(join(parent, ".unpacking-"));
  try {
    // The library refuses names that lead outside; links and devices are no part of an archive of ours.
    await extract({
      file: archive,
      cwd: work,
      strict: true,
      filter: (_path, entry) => "type" in entry && (entry.type === "File" || entry.type === "Directory"),
    }).catch((cause: unknown) => {
      throw damaged(archive, cause instanceof Error ? cause.message : String(cause), cause);
    });
    const manifest = await readManifest(archive, work);
    const place = "into" in target ? resolve(target.into) : await freePlace(parent, manifest.name);
    if (existsSync(place) && (await readdir(place)).length > 0) {
      throw new RollscopeError("COMMAND_INVALID", `${place} is not empty.`, {
        next: "Name a folder that does not exist yet.",
        at: { path: place },
      });
    }
    await restore(archive, work, manifest);
    await rm(place, { recursive: true, force: true });
    await rename(work, place);
    return { folder: runFolderAt(place), records: manifest.records };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function readManifest(archive: string, work: string): Promise<z.infer<typeof manifestSchema>> {
  try {
    return manifestSchema.parse(JSON.parse(await readFile(join(work, "manifest.json"), "utf8")));
  } catch (cause) {
    throw new RollscopeError(
      "IMPORT_FORMAT_UNKNOWN",
      `${archive}: the tar is no archive of a run: it has no manifest.json of one.`,
      {
        next: "Archives are written by `rollscope export RUN --format archive`; unpack other tars first.",
        cause,
        at: { file: archive },
      },
    );
  }
}

async function freePlace(parent: string, wanted: string): Promise<string> {
  const name = basename(wanted);
  for (let n = 1; ; n++) {
    const place = join(parent, n === 1 ? name : `${name}-${n}`);
    if (!existsSync(place)) return place;
  }
}

/** The store out of the documents, and the blobs by their hashes. */
async function restore(archive: string, work: string, manifest: z.infer<typeof manifestSchema>): Promise<void> {
  const blobs = await openFileBlobs(join(work, "blobs"));
  let found = 0;
  for await (const hash of blobs.list()) {
    // Reading compares its bytes with its hash.
    await blobs.get(hash);
    found++;
  }
  if (found !== manifest.blobs) throw damaged(archive, `${found} of ${manifest.blobs} blobs are there`);
  const store = await openSqliteStore(join(work, "records.sqlite"));
  try {
    for (const collection of collections) {
      const count = await insertAll(store, collection, join(work, "documents", `${collection}.jsonl`), archive);
      const wanted = manifest.documents[collection] ?? 0;
      if (count !== wanted) throw damaged(archive, `${count} of ${wanted} documents of ${collection} are there`);
    }
  } finally {
    await store.dispose();
  }
  for (const name of ["checkpoints", "recipe"]) await mkdir(join(work, name), { recursive: true });
  for (const name of ["documents", "manifest.json"]) await rm(join(work, name), { recursive: true, force: true });
  if (!(await stat(join(work, "journal.jsonl")).catch(() => null))) throw damaged(archive, "it has no journal");
}

async function insertAll(store: RecordStore, collection: Collection, path: string, archive: string): Promise<number> {
  if (!existsSync(path)) return 0;
  let count = 0;
  let batch: never[] = [];
  const flush = async () => {
    if (batch.length > 0) await store[collection].insert(batch);
    count += batch.length;
    batch = [];
  };
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    if (line === "") continue;
    try {
      // The store checks each document against its schema.
      batch.push(decodeDocument(line) as never);
    } catch (cause) {
      throw damaged(archive, `a document of ${collection} is no JSON`, cause);
    }
    if (batch.length >= documentsAtOnce) await flush();
  }
  await flush();
  return count;
}

function damaged(archive: string, why: string, cause?: unknown): RollscopeError {
  return new RollscopeError("IMPORT_FILE_INVALID", `${archive}: the archive is damaged or incomplete (${why}).`, {
    next: "Copy or export it again.",
    cause,
    at: { file: archive },
  });
}
