// A run's folder after something happened to it, or while something does.
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { KnownRun } from "../../../agent-daemon/src/daemon/runs/knownRun.ts";
import { stepRows } from "../../../agent-daemon/src/daemon/runs/stepRows.ts";
import { readJournal } from "../../../agent-daemon/src/runs/journal.ts";
import { folderError, runFolderAt } from "../../../agent-daemon/src/runs/runFolder.ts";
import { systemClock } from "../../../agent-daemon/src/sampling/clock.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { verifyLedger } from "../../../agent-daemon/src/store/verifyLedger.ts";
import { attemptToyRun, newToyRun, type ToyRun, toyFolder } from "../../support/toyRun.ts";

async function stoppedRun(): Promise<ToyRun> {
  const run = await newToyRun(await toyFolder());
  await attemptToyRun(run, {
    onEvent: (event, stops) => {
      if (event.type === "step" && event.step === 2) stops.stop();
    },
  });
  return run;
}

async function ledgerOf({ folder }: ToyRun) {
  const store = await openSqliteStore(folder.records, { readOnly: true });
  onTestFinished(() => store.dispose());
  return await verifyLedger(store, await openFileBlobs(folder.blobs), folder.run);
}

test("a second attempt beside a running one is refused, and writes nothing", async () => {
  const run = await newToyRun(await toyFolder());
  let second: Promise<unknown> | null = null;
  const { end, events } = await attemptToyRun(run, {
    onEvent: (event) => {
      if (event.type === "step" && event.step === 1)
        second = attemptToyRun(run, { attempt: 2 }).catch((error: unknown) => error);
    },
  });
  expect(await second).toMatchObject({ code: "RUN_ACTIVE", at: { run: run.folder.run } });
  expect(end.status).toBe("completed");
  expect(readJournal(run.folder.journal).events).toEqual(events);
});

test("a run that was killed after its last checkpoint, before it could say so, is completed by a resume", async () => {
  const run = await newToyRun(await toyFolder());
  await attemptToyRun(run);
  const lines = readFileSync(run.folder.journal, "utf8").split("\n");
  writeFileSync(run.folder.journal, `${lines.filter((line) => !line.includes('"type":"ended"')).join("\n")}`);
  const { end, events } = await attemptToyRun(run, { attempt: 2 });
  expect(end).toMatchObject({ status: "completed", step: 4, error: null });
  expect(events.some((event) => event.type === "step")).toBe(false);
  expect(await ledgerOf(run)).toMatchObject({ ok: true, steps: 5 });
});

test.each([
  ["in a number", Buffer.from('{"n":99,"at":1,"attempt":1,"type":"step","step":41,"metrics":{"loss":0.')],
  ["inside a character", Buffer.from('{"n":99,"at":1,"attempt":1,"type":"warning","message":"Grö').subarray(0, -1)],
])("P31: a journal that a crash tore %s is shown, gone on with, and loses that line only", async (_where, torn) => {
  const run = await stoppedRun();
  const written = readJournal(run.folder.journal).events;
  appendFileSync(run.folder.journal, torn);
  const shown = new KnownRun(run.folder.path, systemClock);
  onTestFinished(() => shown.dispose());
  await shown.refresh();
  expect(shown.snapshot()).toMatchObject({ cursor: written.at(-1)!.n, summary: { step: 2, status: "stopped" } });
  const { end, events } = await attemptToyRun(run, { attempt: 2 });
  expect(end.status).toBe("completed");
  const noted = events.find((event) => event.type === "warning" && event.error.code === "JOURNAL_INVALID");
  expect(noted).toMatchObject({ error: { message: expect.stringContaining(`${torn.length} bytes`) } });
  const all = readJournal(run.folder.journal);
  expect(all).toMatchObject({ tornBytes: 0, unreadable: [], events: [...written, ...events] });
  await shown.refresh();
  const { rows } = stepRows(shown.metrics, shown.fold, 0, 100);
  expect(rows.map(({ step, attempt }) => [step, attempt])).toEqual([
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 2],
  ]);
  expect(shown.snapshot().warnings.map(({ error }) => error.code)).toContain("JOURNAL_INVALID");
});

test("a checkpoint is not resumed beside a record store that knows nothing of it", async () => {
  const run = await stoppedRun();
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${run.folder.records}${suffix}`, { force: true });
  const before = readdirSync(run.folder.checkpoints);
  const { end } = await attemptToyRun(run, { attempt: 2 });
  expect(end).toMatchObject({ status: "failed", error: { code: "RUN_FOLDER_INVALID" } });
  expect(readdirSync(run.folder.checkpoints)).toEqual(before);
});

test("a folder that was renamed is the same run: found by its new name, resumed under its own id", async () => {
  const run = await stoppedRun();
  const path = `${run.folder.path} é`;
  renameSync(run.folder.path, path);
  const folder = runFolderAt(path);
  expect(folder).toMatchObject({ run: run.folder.run, name: `${run.folder.name} é` });
  const renamed = { ...run, folder };
  expect((await attemptToyRun(renamed, { attempt: 2 })).end.status).toBe("completed");
  expect(await ledgerOf(renamed)).toMatchObject({ ok: true, steps: 5 });
});

test("the copy of a recipe holds neither the runs that lie inside it, whatever their folder's name, nor dead links", async () => {
  const recipe = await toyFolder();
  symlinkSync(join(recipe, "gone"), join(recipe, "link"));
  const { folder } = await newToyRun(recipe);
  expect(existsSync(join(folder.recipe, "recipe.ts"))).toBe(true);
  expect(readdirSync(folder.recipe)).not.toContain("runs");
  expect(readdirSync(folder.recipe)).not.toContain("link");
});

test("a damaged lock names the file to delete, and the run goes on without it", async () => {
  const run = await stoppedRun();
  for (const suffix of ["-wal", "-shm"]) rmSync(`${run.folder.lock}${suffix}`, { force: true });
  writeFileSync(run.folder.lock, "not a lock any more ".repeat(300));
  const refused = await attemptToyRun(run, { attempt: 2 }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "RUN_FOLDER_INVALID", at: { path: run.folder.lock } });
  rmSync(run.folder.lock);
  expect((await attemptToyRun(run, { attempt: 2 })).end.status).toBe("completed");
});

test("what the system says about a file of the run is told with a code and the file", async () => {
  const { folder } = await newToyRun(await toyFolder());
  let said: unknown = null;
  try {
    writeFileSync(folder.checkpoints, "a folder is there");
  } catch (error) {
    said = folderError(error, folder);
  }
  expect(said).toMatchObject({ code: "RUN_FOLDER_UNWRITABLE", at: { path: folder.checkpoints } });
  const fault = new TypeError("no system call");
  expect(folderError(fault, folder)).toBe(fault);
});
