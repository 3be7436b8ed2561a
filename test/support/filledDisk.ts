// Fills the disk that a file lies on, to the last byte, by writing into that file; removing it frees the disk again.
import { closeSync, openSync, writeSync } from "node:fs";

export function fillDisk(file: string): void {
  const descriptor = openSync(file, "a");
  try {
    // What is left is less than a piece each time.
    for (const size of [65_536, 4096, 64, 1]) {
      const piece = Buffer.alloc(size, 1);
      for (;;) {
        try {
          if (writeSync(descriptor, piece) < size) break;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
          break;
        }
      }
    }
  } finally {
    closeSync(descriptor);
  }
}
