// The cache of fetched models and data: one folder an entry, each with a manifest of source, files, sizes and hashes. An
// entry appears whole or not at all; of two processes that want the same one, the second waits for the first.
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";
import { hashFile } from "./download.ts";

const manifestName = "rollscope-source.json";

const manifestSchema = z.strictObject({
  /** As written in model.source or data. */
  source: z.string(),
  revision: z.string().nullable(),
  /** The commit that the revision meant then; null for sources that have none. */
  commit: z.string().nullable(),
  /** Milliseconds since 1970. */
  fetched: z.number(),
  files: z.array(z.strictObject({ name: z.string(), size: z.int(), sha256: z.string() })),
});

export type Manifest = z.infer<typeof manifestSchema>;

export interface CacheEntry extends Manifest {
  /** Name in the cache. */
  readonly name: string;
  readonly folder: string;
  readonly bytes: number;
}

export type EntryKind = "models" | "data";

function entryOf(manifest: Manifest, name: string, folder: string): CacheEntry {
  return { ...manifest, name, folder, bytes: manifest.files.reduce((sum, file) => sum + file.size, 0) };
}

/** The entry of that name, when it is whole: manifest there, and every file of the size it says. */
export async function findEntry(cache: string, kind: EntryKind, name: string): Promise<CacheEntry | null> {
  const folder = join(cache, kind, name);
  const text = await readFile(join(folder, manifestName), "utf8").catch(() => null);
  if (text === null) return null;
  let manifest: Manifest;
  try {
    manifest = manifestSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
  for (const file of manifest.files) {
    const size = (await stat(join(folder, file.name)).catch(() => null))?.size;
    if (size !== file.size) return null;
  }
  return entryOf(manifest, name, folder);
}

/** Every whole entry, by name. */
export async function listEntries(cache: string, kind: EntryKind): Promise<CacheEntry[]> {
  const names = await readdir(join(cache, kind)).catch(() => []);
  const entries = await Promise.all(names.sort().map((name) => findEntry(cache, kind, name)));
  return entries.filter((entry) => entry !== null);
}

/** Deletes an entry; false when there is none. */
export async function removeEntry(cache: string, kind: EntryKind, name: string): Promise<boolean> {
  if ((await findEntry(cache, kind, name)) === null) return false;
  await rm(join(cache, kind, name), { recursive: true, force: true });
  return true;
}

/** Reads every file of an entry again. Returns the names of those that changed since they were fetched. */
export async function verifyEntry(entry: CacheEntry): Promise<string[]> {
  const changed: string[] = [];
  for (const file of entry.files) {
    const digest = await hashFile(join(entry.folder, file.name), "sha256").catch(() => null);
    if (digest !== file.sha256) changed.push(file.name);
  }
  return changed;
}

/** Writes the manifest of files that lie in their place already. */
export async function adoptEntry(
  cache: string,
  kind: EntryKind,
  name: string,
  manifest: Manifest,
): Promise<CacheEntry> {
  const folder = join(cache, kind, name);
  await writeManifest(folder, manifest);
  return entryOf(manifest, name, folder);
}

async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const draft = join(folder, `${manifestName}.${process.pid}`);
  await writeFile(draft, `${JSON.stringify(manifest, null, 2)}\n`);
  await rename(draft, join(folder, manifestName));
}

// The holder of a lock touches it this often; one that has not been touched for `staleAfter` belongs to nobody.
const heartbeat = 2_000;
const staleAfter = 20_000;

async function takeLock(lock: string): Promise<boolean> {
  const age = await stat(lock)
    .then(({ mtimeMs }) => Date.now() - mtimeMs)
    .catch(() => null);
  if (age !== null && age > staleAfter) await rm(lock, { recursive: true, force: true });
  return await mkdir(lock).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );
}

/**
 * Makes an entry. `fill` gets a staging folder, which keeps what it has if it throws, so that the next try goes on there; what
 * it returns becomes the manifest.
 *
 * @throws what `fill` throws; MODEL_CACHE_FAILED when the cache cannot be written
 */
export async function makeEntry(
  cache: string,
  kind: EntryKind,
  name: string,
  fill: (staging: string) => Promise<Manifest>,
  signal?: AbortSignal,
): Promise<CacheEntry> {
  const folder = join(cache, kind, name);
  const staging = join(cache, "partial", kind, name);
  const lock = `${staging}.lock`;
  try {
    await mkdir(staging, { recursive: true });
    while (!(await takeLock(lock))) await delay(200, undefined, { signal });
  } catch (cause) {
    signal?.throwIfAborted();
    throw cacheError(cache, cause);
  }
  const beat = setInterval(() => void utimes(lock, new Date(), new Date()).catch(() => {}), heartbeat);
  try {
    // Whoever held the lock before may have made it.
    const made = await findEntry(cache, kind, name);
    if (made !== null) return made;
    await mkdir(staging, { recursive: true });
    const manifest = await fill(staging);
    try {
      await writeManifest(staging, manifest);
      await mkdir(join(cache, kind), { recursive: true });
      await rm(folder, { recursive: true, force: true });
      await rename(staging, folder);
    } catch (cause) {
      throw cacheError(cache, cause);
    }
    return entryOf(manifest, name, folder);
  } finally {
    clearInterval(beat);
    await rm(lock, { recursive: true, force: true });
  }
}

function cacheError(cache: string, cause: unknown): RollscopeError {
  const said = cause instanceof Error ? cause.message : String(cause);
  return new RollscopeError("MODEL_CACHE_FAILED", `The cache ${cache} cannot be written: ${said}.`, {
    next: "Set ROLLSCOPE_CACHE to a folder that can be written and has space.",
    cause,
    at: { cache },
  });
}
