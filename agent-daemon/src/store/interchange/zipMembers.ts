// Members of a zip by name, unpacked one by one: small ones into memory, large ones into a temporary file that goes with it.
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Entry, open, type ZipFile } from "yauzl";
import { type ByteSource, memoryBytes, openFileBytes } from "./byteSource.ts";
import { importError } from "./importError.ts";

export interface ZipMembers {
  /** In the order of the zip's directory. */
  readonly names: readonly string[];
  /** @throws IMPORT_FILE_INVALID */
  open(name: string): Promise<ByteSource>;
  close(): Promise<void>;
}

/** Larger members go to a temporary file. */
const inMemory = 64 << 20;
/** A member that says it is larger is refused. */
const largestMember = 8 * 2 ** 30;
const mostMembers = 1_000_000;

/** @throws IMPORT_FILE_INVALID */
export async function openZip(file: string): Promise<ZipMembers> {
  const damaged = (cause: unknown, member: string | null = null) =>
    importError(
      "IMPORT_FILE_INVALID",
      { file, member },
      `the zip is damaged or incomplete (${cause instanceof Error ? cause.message : String(cause)}).`,
      "Fetch or copy the file again; a log that is still being written can be opened when it is complete.",
      cause,
    );
  const zip = await new Promise<ZipFile>((resolve, reject) =>
    open(file, { lazyEntries: true, autoClose: false, validateEntrySizes: true }, (error, opened) =>
      error ? reject(damaged(error)) : resolve(opened),
    ),
  );
  const entries = new Map<string, Entry>();
  try {
    await new Promise<void>((resolve, reject) => {
      zip.on("entry", (entry: Entry) => {
        entries.set(entry.fileName, entry);
        if (entries.size > mostMembers) reject(new Error("it has too many members"));
        else zip.readEntry();
      });
      zip.on("end", resolve);
      zip.on("error", reject);
      zip.readEntry();
    });
  } catch (error) {
    zip.close();
    throw damaged(error);
  }
  const large = new Set<ByteSource>();
  let folder: string | null = null;
  let temporaries = 0;
  const stream = (entry: Entry) =>
    new Promise<Readable>((resolve, reject) =>
      zip.openReadStream(entry, (error, opened) => (error ? reject(error) : resolve(opened))),
    );
  return {
    names: [...entries.keys()],
    async open(name) {
      const entry = entries.get(name);
      if (entry === undefined) throw damaged("there is no such member", name);
      if (entry.uncompressedSize > largestMember)
        throw damaged(`the member claims ${entry.uncompressedSize} bytes`, name);
      try {
        if (entry.uncompressedSize <= inMemory) {
          const chunks: Buffer[] = [];
          for await (const chunk of await stream(entry)) chunks.push(chunk as Buffer);
          return memoryBytes(Buffer.concat(chunks), file, name);
        }
        folder ??= await mkdtemp(join(tmpdir(), "rollscope-zip-"));
        const path = join(folder, `${temporaries++}`);
        await pipeline(await stream(entry), createWriteStream(path, { mode: 0o600 }));
        const bytes = await openFileBytes(path, file, name);
        large.add(bytes);
        return bytes;
      } catch (error) {
        throw damaged(error, name);
      }
    },
    async close() {
      zip.close();
      for (const bytes of large) await bytes.close();
      if (folder !== null) await rm(folder, { recursive: true, force: true });
    },
  };
}
