// BlobStore on a folder: one file per blob, named by its sha256 under two letters of it. A blob appears whole by a rename
// after its bytes reached the disk, so that a crash leaves at most a temporary file; nothing is ever written in place.
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, type Stats } from "node:fs";
import { mkdir, open, opendir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BlobHash, blobHashSchema } from "../../../protocol/column.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { BlobStore } from "./interface.ts";

const temporaryFolder = "incoming";
/** A temporary file this old belongs to a writer that died. */
const staleMilliseconds = 3_600_000;
const rememberedChecks = 10_000;

/** Opens the folder, making it if need be. Throws STORE_UNREACHABLE, STORE_DISK_FULL. */
export async function openFileBlobs(folder: string): Promise<BlobStore> {
  /** Files that were found whole, with what would change if they were touched since. */
  const checked = new Map<BlobHash, string>();

  const pathOf = (hash: BlobHash): string => {
    const parsed = blobHashSchema.safeParse(hash);
    if (!parsed.success) throw missing(hash, folder);
    return join(folder, hash.slice(0, 2), hash.slice(2));
  };

  const put = async (bytes: Uint8Array): Promise<BlobHash> => {
    const hash = createHash("sha256").update(bytes).digest("hex");
    const path = pathOf(hash);
    if ((await sizeOf(path)) === bytes.length) return hash;
    const temporary = join(folder, temporaryFolder, randomUUID());
    try {
      const file = await open(temporary, "wx", 0o600);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      const made = await mkdir(dirname(path), { recursive: true });
      await rename(temporary, path);
      await syncFolder(dirname(path));
      if (made !== undefined) await syncFolder(folder);
    } catch (cause) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw fileError(cause, folder);
    }
    return hash;
  };

  const get = async (hash: BlobHash): Promise<Uint8Array> => {
    const bytes = await withFile(hash, async (file) => new Uint8Array(await file.readFile()));
    if (createHash("sha256").update(bytes).digest("hex") !== hash) throw corrupt(hash, pathOf(hash));
    return bytes;
  };

  const getRange = (hash: BlobHash, start: number, length: number): Promise<Uint8Array> =>
    withFile(hash, async (file) => {
      const path = pathOf(hash);
      const stats = await file.stat();
      const stamp = stampOf(stats);
      if (checked.get(hash) !== stamp) {
        if ((await hashOfFile(path)) !== hash) throw corrupt(hash, path);
        if (checked.size >= rememberedChecks) checked.clear();
        checked.set(hash, stamp);
      }
      if (!(start >= 0 && length >= 0 && start + length <= stats.size)) {
        throw new RollscopeError(
          "STORE_COLUMN_INVALID",
          `Bytes [${start}, ${start + length}) lie outside blob ${hash} of ${stats.size} bytes.`,
          {
            next: "The document that asks for them was damaged; leave its record out or restore it from a backup.",
            at: { hash },
          },
        );
      }
      const bytes = new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const { bytesRead } = await file.read(bytes, done, length - done, start + done);
        if (bytesRead === 0) throw corrupt(hash, path);
        done += bytesRead;
      }
      return bytes;
    });

  const withFile = async <T>(
    hash: BlobHash,
    use: (file: Awaited<ReturnType<typeof open>>) => Promise<T>,
  ): Promise<T> => {
    try {
      const file = await open(pathOf(hash), "r");
      try {
        return await use(file);
      } finally {
        await file.close();
      }
    } catch (cause) {
      if (codeOf(cause) === "ENOENT") throw missing(hash, folder);
      throw fileError(cause, folder);
    }
  };

  try {
    await mkdir(join(folder, temporaryFolder), { recursive: true });
    await removeStale(join(folder, temporaryFolder));
  } catch (cause) {
    throw fileError(cause, folder);
  }
  return {
    put,
    get,
    getRange,
    has: async (hash) => (await sizeOf(pathOf(hash))) !== null,
    list: () => hashesIn(folder),
    delete: async (hash) => {
      checked.delete(hash);
      try {
        await rm(pathOf(hash));
        return true;
      } catch (cause) {
        if (codeOf(cause) === "ENOENT") return false;
        throw fileError(cause, folder);
      }
    },
  };
}

async function* hashesIn(folder: string): AsyncIterable<BlobHash> {
  for await (const entry of await opendir(folder)) {
    if (!/^[0-9a-f]{2}$/.test(entry.name)) continue;
    for (const name of (await readdir(join(folder, entry.name))).sort()) {
      const hash = entry.name + name;
      if (blobHashSchema.safeParse(hash).success) yield hash;
    }
  }
}

async function hashOfFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Uint8Array);
  return hash.digest("hex");
}

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch {
    return null;
  }
}

function stampOf(stats: Stats): string {
  return `${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
}

async function syncFolder(folder: string): Promise<void> {
  // A folder cannot be opened for this on Windows, where the rename itself is journalled.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function removeStale(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const age = await stat(path).then(
      (stats) => Date.now() - stats.mtimeMs,
      () => 0,
    );
    if (age > staleMilliseconds) await rm(path, { force: true });
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

function missing(hash: BlobHash, folder: string): RollscopeError {
  return new RollscopeError("STORE_BLOB_MISSING", `Blob ${hash} is not in ${folder}.`, {
    next: "Restore the folder from a backup; what refers to the blob cannot be read without it.",
    at: { hash, folder },
  });
}

function corrupt(hash: BlobHash, path: string): RollscopeError {
  return new RollscopeError("STORE_BLOB_CORRUPT", `Blob ${path} no longer has the bytes it was stored with.`, {
    next: "Check the disk, then restore the file from a backup; what refers to it cannot be read without it.",
    at: { hash, path },
  });
}

function fileError(cause: unknown, folder: string): RollscopeError {
  if (cause instanceof RollscopeError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (["ENOSPC", "EDQUOT", "EFBIG"].includes(codeOf(cause) ?? "")) {
    return new RollscopeError("STORE_DISK_FULL", `No space is left for blobs in ${folder} (${reason}).`, {
      next: "Free space on that disk and resume; nothing that was stored before is lost.",
      cause,
      at: { folder },
    });
  }
  return new RollscopeError("STORE_UNREACHABLE", `The blob folder ${folder} cannot be used (${reason}).`, {
    next: "Make the folder readable and writable for this user, then resume.",
    cause,
    at: { folder },
  });
}
