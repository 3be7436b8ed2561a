// Files of other tools come in as a run that is known at once, and a run goes out as a file, by the daemon's methods.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createMethodTable } from "../../../agent-daemon/src/daemon/methods/allMethods.ts";
import { interchangeMethods } from "../../../agent-daemon/src/daemon/methods/interchangeMethods.ts";
import type { DaemonServices, MethodSession } from "../../../agent-daemon/src/daemon/methods/methodTypes.ts";
import { openKnownRuns } from "../../../agent-daemon/src/daemon/runs/knownRuns.ts";
import { systemClock } from "../../../agent-daemon/src/sampling/clock.ts";
import { daemonMethods } from "../../../protocol/daemonMethods.ts";
import { dataPath } from "../../support/paths.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

it("imports a file as a run that is listed, and exports it as chat", async () => {
  const home = await temporaryFolder({});
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const runs = openKnownRuns({ registry: join(home, "runs.json"), clock: systemClock, log });
  onTestFinished(() => runs.dispose());
  const services = { runs, clock: systemClock } as unknown as DaemonServices;
  const table = createMethodTable(services, [interchangeMethods]);
  const session = {} as MethodSession;
  const call = { session, signal: new AbortController().signal };
  const paths = [dataPath("verifiers-v1", "traces.jsonl")];
  const answer = await table.call("file/import", { paths, outputDir: join(home, "runs") }, call);
  const { summary, imported } = daemonMethods["file/import"].result.parse(answer);
  expect(imported).toBeGreaterThan(0);
  expect((await runs.list()).map(({ folder }) => folder)).toContain(summary.folder);
  const path = join(home, "chat.jsonl");
  const out = await table.call("run/export", { folder: summary.folder, format: "chat", path }, call);
  const { records } = daemonMethods["run/export"].result.parse(out);
  expect(readFileSync(path, "utf8").trim().split("\n").length).toBe(records);
  await expect(table.call("file/import", { paths: [`${home}/none`], outputDir: home }, call)).rejects.toMatchObject({
    code: "IMPORT_FILE_UNREADABLE",
  });
});
