// A process may end while the engine computes.
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleModule } from "../support/moduleProgram.ts";
import { oraclesPath } from "../support/paths.ts";
import { startProgram } from "../support/program.ts";

let program: Awaited<ReturnType<typeof bundleModule>>;
beforeAll(async () => {
  program = await bundleModule("integration/programs/exitWhileGenerating.ts");
});
afterAll(() => program.remove());

test("a process that exits in the middle of generation ends with its own code", async () => {
  // Exits fall into different parts of an iteration.
  for (const delay of [20, 25, 31, 40, 52, 67, 83, 100]) {
    const { ended } = startProgram(program.script, [oraclesPath("models", "llama-tiny"), String(delay)]);
    expect(await ended).toEqual({ code: 7, signal: null, errors: "" });
  }
});
