// Ends the process once everything is written. What a recipe left running (a timer, a socket of a rollout that ignored its
// signal) must not hold it.
import { type ExitName, exitCodes } from "./exitCodes.ts";

export async function endProcess(exit: ExitName): Promise<void> {
  await Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise<void>((resolve) => stream.write("", () => resolve()))),
  );
  process.exit(exitCodes[exit].code);
}
