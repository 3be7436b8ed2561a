// Writes lines as they come into a file, every byte of them or an error: a disk that takes a part of a write says so only with the
// next one. What becomes of the file after an error is the caller's matter.
import { open } from "node:fs/promises";

const pieceCharacters = 65_536;

/** @returns how many lines there were; @throws what the system says */
export async function writeLines(path: string, lines: AsyncIterable<string>): Promise<number> {
  const file = await open(path, "w");
  try {
    let count = 0;
    let held = "";
    for await (const line of lines) {
      held += line;
      count += 1;
      if (held.length < pieceCharacters) continue;
      await file.appendFile(held);
      held = "";
    }
    await file.appendFile(held);
    return count;
  } finally {
    await file.close();
  }
}
