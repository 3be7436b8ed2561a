// A main thread that never answers again, in a process of its own: it is said, and then the process is ended.
import { expect, onTestFinished, test } from "vitest";
import { bundleModule } from "../../support/moduleProgram.ts";
import { startProgram } from "../../support/program.ts";

test("an endless loop is told and then ended; a thread that answers is left alone for as long as it likes", async () => {
  const { script, remove } = await bundleModule("integration/programs/blocked.ts");
  onTestFinished(() => remove());
  const program = startProgram(script, []);
  onTestFinished(() => void program.process.kill("SIGKILL"));
  const { code, errors } = await program.ended;
  // It answered for three seconds, longer than either limit, before it stopped to.
  expect(await program.output).toBe("answered\n");
  expect(code).toBeNull();
  expect(program.process.signalCode).toBe("SIGKILL");
  expect(errors).toMatch(/has not given control back for 1 s.*\n.*RUN_BLOCKED/);
}, 60_000);
