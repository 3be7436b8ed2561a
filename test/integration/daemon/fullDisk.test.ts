// Full disks (P34): a 16 MB disk of its own is filled while a run writes, then freed. What was whole stays whole, what was being
// written is not there, the message names the file, and the next attempt goes on.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { readJournal } from "../../../agent-daemon/src/runs/journal.ts";
import { runFolderAt } from "../../../agent-daemon/src/runs/runFolder.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { verifyLedger } from "../../../agent-daemon/src/store/verifyLedger.ts";
import { latestWhole } from "../../../agent-daemon/src/training/checkpoints.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { mountNamespace } from "../../support/mountNamespace.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { toyFolder } from "../../support/toyRun.ts";

const programs: Record<string, { readonly script: string; readonly remove: () => void }> = {};
beforeAll(async () => {
  programs["rollscope"] = await bundleModule("integration/programs/fillingRollscope.ts");
  programs["files"] = await bundleModule("integration/programs/fullDiskFiles.ts");
});
afterAll(() => {
  for (const { remove } of Object.values(programs)) remove();
});

/** Runs a shell script with a 16 MB disk at $DISK, which nobody else sees and which is gone afterwards. */
function onSmallDisk(folder: string, script: string, environment: Record<string, string>): void {
  const namespace = mountNamespace();
  if (namespace === null) throw new Error("a disk of 16 MB needs root, or user namespaces that anybody may make");
  const disk = join(folder, "disk");
  mkdirSync(disk);
  const whole = `mount -t tmpfs -o size=16m,mode=700 none "$DISK" || exit 1\n${script}`;
  const done = spawnSync(namespace[0]!, [...namespace.slice(1), "/bin/sh", "-c", whole], {
    env: { ...process.env, DISK: disk, OUT: folder, NODE: process.execPath, ...environment },
    encoding: "utf8",
  });
  expect(done.stderr).toBe("");
  expect(done.status).toBe(0);
}

const documentIn = (folder: string, name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"));

async function ledgerOf(path: string) {
  const folder = runFolderAt(path);
  const store = await openSqliteStore(folder.records, { readOnly: true });
  onTestFinished(() => store.dispose());
  return await verifyLedger(store, await openFileBlobs(folder.blobs), folder.run);
}

describe.each([
  ["in the middle of a checkpoint", "save 2", /CHECKPOINT_DISK_FULL/, /checkpoints\/step_4/],
  [
    "between a step and its commit",
    "step 3",
    /STORE_DISK_FULL|RUN_FOLDER_UNWRITABLE/,
    /records\.sqlite|journal\.jsonl/,
  ],
  [
    "while the next step is sampled",
    "updateWeights 3",
    /STORE_DISK_FULL|RUN_FOLDER_UNWRITABLE/,
    /records\.sqlite|journal\.jsonl/,
  ],
])("P34: a disk that is full %s", (_name, moment, code, path) => {
  test("ends the run with the path, leaves all that was whole, and lets it go on once there is room", async () => {
    const folder = await temporaryFolder();
    const recipe = await toyFolder();
    onSmallDisk(
      folder,
      `
      ROLLSCOPE_TEST_FILL="$DISK/filler" ROLLSCOPE_TEST_FILL_AT="$MOMENT" "$NODE" "$SCRIPT" run "$RECIPE" --output-dir "$DISK/runs" --json >"$OUT/run.json" 2>"$OUT/run.txt"
      echo $? >"$OUT/run.code"
      cp -a "$DISK/runs" "$OUT/full"
      rm "$DISK/filler" || cat "$OUT/run.json" "$OUT/run.txt" >&2
      "$NODE" "$SCRIPT" resume latest --output-dir "$DISK/runs" --json >"$OUT/resume.json" 2>"$OUT/resume.txt"
      cp -a "$DISK/runs" "$OUT/after"`,
      { SCRIPT: programs["rollscope"]!.script, RECIPE: recipe, MOMENT: moment },
    );
    const failed = documentIn(folder, "run.json");
    expect(failed.error).toMatchObject({ code: expect.stringMatching(code), next: expect.stringMatching(/space/i) });
    expect(`${failed.error.message} ${JSON.stringify(failed.error.at)}`).toMatch(path);
    expect(Number(readFileSync(join(folder, "run.code"), "utf8"))).not.toBe(0);

    const [name] = readdirSync(join(folder, "full"));
    const full = runFolderAt(join(folder, "full", name!));
    expect(readdirSync(full.checkpoints)).toEqual(["step_2"]);
    expect((await latestWhole(full.checkpoints)).checkpoint?.step).toBe(2);
    expect(readdirSync(full.path).filter((file) => file.includes(".part"))).toEqual([]);
    const journal = readJournal(full.journal);
    expect(journal).toMatchObject({ tornBytes: 0, unreadable: [] });
    expect(journal.events.map(({ n }) => n)).toEqual(journal.events.map((_event, index) => index + 1));
    expect(await ledgerOf(full.path)).toMatchObject({ ok: true });

    expect(documentIn(folder, "resume.json")).toMatchObject({ status: "completed", step: 4, error: null });
    const after = runFolderAt(join(folder, "after", name!));
    expect((await latestWhole(after.checkpoints)).checkpoint?.step).toBe(4);
    expect(await ledgerOf(after.path)).toMatchObject({ ok: true, steps: 5 });
    const steps = readJournal(after.journal).events.filter((event) => event.type === "step" && event.attempt === 2);
    expect(steps.map((event) => (event as { step: number }).step)).toEqual([3, 4]);
  });
});

test("P34: journal, its snapshot, exports and the daemon's own files are whole or not there on a full disk, and go on when it is freed", async () => {
  const folder = await temporaryFolder();
  const recipe = await toyFolder();
  onSmallDisk(
    folder,
    `"$NODE" "$SCRIPT" "$DISK" "$RECIPE" >"$OUT/told.json" 2>"$OUT/told.txt" || cat "$OUT/told.txt" >&2`,
    {
      SCRIPT: programs["files"]!.script,
      RECIPE: recipe,
    },
  );
  expect(existsSync(join(folder, "told.json"))).toBe(true);
  const told = documentIn(folder, "told.json");
  expect(told.journal).toMatchObject({
    error: { code: "RUN_FOLDER_UNWRITABLE", at: { path: expect.stringContaining("journal.jsonl") } },
    tornBytes: 0,
    unreadable: [],
    missing: [],
    parts: [],
  });
  expect(told.journal.message).toContain("journal.jsonl");
  expect(told.journal.writtenAfter).toBe(10);
  expect(told.rotation).toMatchObject({
    whileFull: { missing: [], parts: [] },
    afterwards: { missing: [], parts: [] },
  });
  expect(told.rotation.turnedOver).toBe(true);
  expect(told.daemon).toMatchObject({
    refused: { code: "DAEMON_HOME_UNUSABLE" },
    left: [],
    started: true,
    lookWhileFull: { found: 1 },
    registryIntact: true,
    lookAfterwards: { found: 2, remembered: 2 },
    parts: [],
  });
  for (const { code, message, left } of told.exports) {
    expect(code).toMatch(/UNWRITABLE|DISK_FULL|EXPORT/);
    expect(message).toContain("/disk/");
    expect(left).toEqual([]);
  }
  expect(told.exports).toHaveLength(3);
});
