// What becomes of a journal, of exports and of the daemon's own files on a disk that is filled and freed again. Arguments: the folder
// where the disk is mounted, and a recipe's. The answer is one JSON document.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { processContext } from "../../../agent-daemon/src/cli/processContext.ts";
import { runProgram } from "../../../agent-daemon/src/cli/program.ts";
import { connectDaemon } from "../../../agent-daemon/src/daemon/client.ts";
import { startDaemon } from "../../../agent-daemon/src/daemon/serve.ts";
import { daemonHome } from "../../../agent-daemon/src/daemon/server/daemonHome.ts";
import { exportFormats, exportRun } from "../../../agent-daemon/src/runs/exportRun.ts";
import { type Journal, openJournal, readJournal } from "../../../agent-daemon/src/runs/journal.ts";
import { runFolderAt } from "../../../agent-daemon/src/runs/runFolder.ts";
import { systemClock } from "../../../agent-daemon/src/sampling/clock.ts";
import type { RollscopeError } from "../../../protocol/errors.ts";
import { fillDisk } from "../../support/filledDisk.ts";
import { referenceEngines } from "../../support/referenceEngines.ts";

const [disk = "", recipe = ""] = process.argv.slice(2);
const filler = join(disk, "filler");
const fill = (leaving = 0) => {
  fillDisk(filler);
  truncateSync(filler, statSync(filler).size - leaving);
};
const free = () => rmSync(filler);
const parts = (folder: string) =>
  readdirSync(folder).filter((name) => name.includes(".part") || name.includes(".stale"));
const described = (error: unknown) => {
  const { code, message, at } = error as RollscopeError;
  return { code, message, at };
};

const step = (journal: Journal, number: number) =>
  journal.append({
    type: "step",
    step: number,
    weightVersion: number,
    skipped: null,
    metrics: { loss: 1 / number },
    timings: {},
  });

/** Numbers of steps up to the last one that the journal has not. */
function missing(file: string, last: number): number[] {
  const seen = new Set(readJournal(file).events.map((event) => (event.type === "step" ? event.step : 0)));
  return Array.from({ length: last }, (_, index) => index + 1).filter((number) => !seen.has(number));
}

function tryJournal() {
  const folder = join(disk, "journal");
  mkdirSync(folder);
  const file = join(folder, "journal.jsonl");
  const journal = openJournal(file, 1, Date.now);
  step(journal, 1);
  fill();
  let last = 1;
  let error: unknown = null;
  while (error === null && last < 1000) {
    try {
      step(journal, last + 1);
      last += 1;
    } catch (thrown) {
      error = thrown;
    }
  }
  const { tornBytes, unreadable } = readJournal(file);
  const lost = missing(file, last);
  free();
  for (let more = 1; more <= 10; more++) step(journal, last + more);
  journal.dispose();
  const { events } = readJournal(file);
  const inOrder = events.every(({ n }, index) => n === index + 1);
  const told = described(error);
  return {
    error: told,
    message: told.message,
    tornBytes,
    unreadable,
    missing: [...lost, ...missing(file, last + 10)],
    parts: parts(folder),
    writtenAfter: inOrder ? events.length - last : -1,
  };
}

function tryRotation() {
  const folder = join(disk, "rotation");
  mkdirSync(folder);
  const file = join(folder, "journal.jsonl");
  const journal = openJournal(file, 1, Date.now, { fileBytes: 40_000, snapshotBytes: 1_000_000 });
  let last = 0;
  while (!existsSync(join(folder, "journal.1.jsonl"))) step(journal, ++last);
  // Room for lines, not for the next snapshot: that holds all steps.
  fill(60_000);
  for (const end = last + 350; last < end; ) step(journal, ++last);
  const whileFull = { missing: missing(file, last), parts: parts(folder) };
  const before = readFileSync(join(folder, "journal.snapshot.jsonl"), "utf8").split("\n")[0];
  free();
  for (const end = last + 1000; last < end; ) step(journal, ++last);
  journal.dispose();
  const after = readFileSync(join(folder, "journal.snapshot.jsonl"), "utf8").split("\n")[0];
  return {
    whileFull,
    afterwards: { missing: missing(file, last), parts: parts(folder) },
    turnedOver: before !== after,
  };
}

async function madeRun(name: string): Promise<string> {
  const context = processContext(referenceEngines, "0.0.0");
  const silent = { write: () => true };
  const runs = join(disk, name);
  await runProgram(["run", recipe, "--output-dir", runs, "--training.steps=12"], {
    ...context,
    streams: { ...context.streams, stdout: silent, stderr: silent },
  });
  return join(runs, readdirSync(runs)[0]!);
}

async function tryExports(run: string) {
  const out = join(disk, "exports");
  mkdirSync(out);
  const told = [];
  for (const format of exportFormats) {
    const path = join(out, format);
    const { bytes } = await exportRun(runFolderAt(run), format, path);
    rmSync(path);
    fill(Math.floor(bytes / 2));
    const error = await exportRun(runFolderAt(run), format, path).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    told.push({ format, ...(error === null ? {} : described(error)), left: readdirSync(out) });
    free();
  }
  return told;
}

async function tryDaemon(first: string, second: string) {
  const home = daemonHome({ ROLLSCOPE_HOME: join(disk, "home") });
  const start = () =>
    startDaemon({ home, version: "0.0.0", clock: systemClock, program: { file: process.execPath, args: [] } });
  mkdirSync(home.folder, { recursive: true, mode: 0o700 });
  fill();
  const refused = await start().then(
    () => null,
    (error: unknown) => described(error),
  );
  const left = readdirSync(home.folder);
  free();
  const daemon = await start();
  const client = await connectDaemon(daemon.socket, { name: "full", version: "0" });
  const kept = () => JSON.parse(readFileSync(home.registry, "utf8")) as { runs: string[] };
  await client.call("runs/look", { folders: [first] });
  const before = kept();
  fill();
  const found = (await client.call("runs/look", { folders: [second] })).runs.length;
  const registryIntact = JSON.stringify(kept()) === JSON.stringify(before);
  free();
  const all = (await client.call("runs/look", { folders: [first, second] })).runs.length;
  const remembered = kept().runs.length;
  client.dispose();
  await daemon.stop("the test is over");
  return {
    refused,
    left,
    started: true,
    lookWhileFull: { found },
    registryIntact,
    lookAfterwards: { found: all, remembered },
    parts: parts(home.folder),
  };
}

const [first, second] = [await madeRun("a"), await madeRun("b")];
const told = {
  journal: tryJournal(),
  rotation: tryRotation(),
  exports: await tryExports(first),
  daemon: await tryDaemon(first, second),
};
process.stdout.write(`${JSON.stringify(told)}\n`);
