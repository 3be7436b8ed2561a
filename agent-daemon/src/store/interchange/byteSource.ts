// Bytes by position: a file, or what was unpacked into memory. Reading past the end is an error, never silence.
import { type FileHandle, open } from "node:fs/promises";
import { importError, unreadable } from "./importError.ts";

export interface ByteSource {
  /** As named in errors. */
  readonly file: string;
  /** Member of a zip that these bytes are. */
  readonly member: string | null;
  readonly size: number;
  /** Bytes [start, start + length). @throws IMPORT_FILE_UNREADABLE, IMPORT_FILE_INVALID when the file became shorter */
  read(start: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
}

/** @throws IMPORT_FILE_UNREADABLE */
export async function openFileBytes(file: string, named = file, member: string | null = null): Promise<ByteSource> {
  let handle: FileHandle;
  let size: number;
  try {
    handle = await open(file, "r");
  } catch (error) {
    throw unreadable({ file: named }, (error as NodeJS.ErrnoException).code ?? String(error), error);
  }
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw unreadable({ file: named }, stats.isDirectory() ? "it is a folder" : "it is no file");
    size = stats.size;
  } catch (error) {
    await handle.close();
    throw error;
  }
  let closed = false;
  return {
    file: named,
    member,
    size,
    async read(start, length) {
      if (closed) throw unreadable({ file: named }, "it was closed");
      const bytes = Buffer.allocUnsafe(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await handle.read(bytes, filled, length - filled, start + filled);
        if (bytesRead === 0) {
          const next = "Another program changed it; open it again.";
          throw importError(
            "IMPORT_FILE_INVALID",
            { file: named, byte: start + filled },
            "the file became shorter.",
            next,
          );
        }
        filled += bytesRead;
      }
      return bytes;
    },
    async close() {
      if (closed) return;
      closed = true;
      await handle.close();
    },
  };
}

export function memoryBytes(bytes: Buffer, file: string, member: string | null): ByteSource {
  return {
    file,
    member,
    size: bytes.length,
    read: async (start, length) => {
      if (start + length <= bytes.length) return bytes.subarray(start, start + length);
      throw importError(
        "IMPORT_FILE_INVALID",
        { file, member, byte: bytes.length },
        "it ends early.",
        "Fetch the file again.",
      );
    },
    close: async () => {},
  };
}
