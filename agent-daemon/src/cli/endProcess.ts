// Ends the process once everything is written. What a recipe left running (a timer, a socket of a rollout that ignored its
// signal) must not hold it.
import { type ExitName, exitCodes } from "./exitCodes.ts";

/** A reader that is gone (`rollscope list | head`) is no fault, and no end of a run whose output it read. */
export function ignoreGoneReaders(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && error.code !== "ERR_STREAM_DESTROYED") throw error;
    });
}

export async function endProcess(exit: ExitName): Promise<void> {
  await Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise<void>((resolve) => stream.write("", () => resolve()))),
  );
  process.exit(exitCodes[exit].code);
}
