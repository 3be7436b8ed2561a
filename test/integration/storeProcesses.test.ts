// The store between processes: claims that race, a writer that is killed, a disk that fills up.
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openFileBlobs } from "../../agent-daemon/src/store/fileBlobs.ts";
import { resumeAfter } from "../../agent-daemon/src/store/ledger.ts";
import { allDocuments } from "../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../agent-daemon/src/store/sqliteStore.ts";
import { verifyLedger } from "../../agent-daemon/src/store/verifyLedger.ts";
import { record, run } from "../support/documents.ts";
import { mountNamespace } from "../support/mountNamespace.ts";
import { bundleProgram, type Program, startProgram } from "../support/program.ts";

let folder: string;
let claimRecords: string;
let trainForever: string;
let next = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "store-processes-"));
  claimRecords = await bundleProgram("integration/programs/claimRecords.ts");
  trainForever = await bundleProgram("integration/programs/trainForever.ts");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fresh = () => {
  const place = join(folder, `${next++}`);
  mkdirSync(place);
  return place;
};

/** The next text on standard output. */
async function heard(program: Program): Promise<string> {
  const [text] = (await once(program.process.stdout as NodeJS.ReadableStream, "data")) as [string];
  return text;
}

const lines = (text: string) => text.split("\n").filter((line) => line !== "");

describe("two processes on one store", () => {
  it("never claim the same record, and together claim all of them", async () => {
    const file = join(fresh(), "records.db");
    const store = await openSqliteStore(file);
    const ids = Array.from({ length: 400 }, (_, i) => `r${i}`);
    await store.records.insert(ids.map((id, i) => record(id, { created: i })));
    const claimers = ["one", "two"].map((owner) => startProgram(claimRecords, [file, owner]));
    expect(await Promise.all(claimers.map(heard))).toEqual(["ready\n", "ready\n"]);
    for (const claimer of claimers) claimer.process.stdin?.end("go");
    const got = await Promise.all(
      claimers.map(async (claimer) => {
        expect(await claimer.ended).toMatchObject({ code: 0, errors: "" });
        return JSON.parse(lines(await claimer.output).at(-1) as string) as string[];
      }),
    );
    expect(got.flat().sort()).toEqual(ids.map((id) => `${id}#1`).sort());
    const running = await allDocuments(store.records, { run, status: "running" });
    expect(running).toHaveLength(400);
    await store.dispose();
  });
});

describe("a writer killed at any moment", () => {
  it("leaves every step it told of, no half step, and a run that resumes and is proven", async () => {
    const place = fresh();
    let attempt = 1;
    let first = 1;
    for (const until of [3, 7, 12]) {
      const program = startProgram(trainForever, [place, `${attempt}`, `${first}`, "0"]);
      let told = first - 1;
      while (told < until) {
        const steps = lines(await heard(program));
        told = Number(steps.at(-1));
      }
      program.process.kill("SIGKILL");
      expect((await program.ended).signal).toBe("SIGKILL");
      told = Number(lines(await program.output).at(-1));

      const store = await openSqliteStore(join(place, "records.db"));
      const blobs = await openFileBlobs(join(place, "blobs"));
      const steps = await allDocuments(store.steps, { run }, { order: "step" });
      expect(steps.map((step) => step.step)).toEqual(Array.from({ length: steps.length }, (_, i) => i + 1));
      expect(steps.length).toBeGreaterThanOrEqual(told);
      const back = told - 1;
      attempt++;
      await resumeAfter(store, blobs, run, back, attempt);
      const report = await verifyLedger(store, blobs, run);
      expect(report).toMatchObject({ ok: true, steps: back, consumptions: back * 3, pending: 0, rows: back * 3 });
      for await (const hash of blobs.list()) await blobs.get(hash);
      await store.dispose();
      first = back + 1;
    }
    const last = startProgram(trainForever, [place, `${attempt}`, `${first}`, `${first + 4}`]);
    expect(await last.ended).toMatchObject({ code: 0, errors: "" });
    const store = await openSqliteStore(join(place, "records.db"), { readOnly: true });
    expect(await verifyLedger(store, await openFileBlobs(join(place, "blobs")), run)).toMatchObject({
      ok: true,
      steps: first + 4,
    });
    await store.dispose();
  });
});

describe("a disk that fills up", () => {
  it("stops the writer with a code, loses nothing that was committed, and goes on after space was freed", async () => {
    const place = fresh();
    const disk = join(place, "disk");
    mkdirSync(disk);
    const disks = mountNamespace();
    // The small disk lives in a mount namespace of one shell, which also frees space on it. Where no namespace is to be had,
    // files may not grow beyond a limit instead, which SQLite does not tell from a failing disk.
    const script = [
      "set -eu",
      disks === null ? "" : `mount -t tmpfs -o size=3m none ${disk} && head -c 500000 /dev/zero > ${disk}/ballast`,
      `code=0; (${disks === null ? "ulimit -f 2000;" : ""} "$1" "$2" ${disk} 1 1 0) || code=$?`,
      'echo "ended $code"',
      `rm -f ${disk}/ballast`,
      `cp -r ${disk}/. ${place}/copy`,
    ].join("\n");
    writeFileSync(join(place, "script.sh"), script);
    mkdirSync(join(place, "copy"));
    const program = startProgram(trainForever, [], [...(disks ?? []), "sh", join(place, "script.sh")]);
    const { code, errors } = await program.ended;
    expect({ code, errors }).toEqual({ code: 0, errors: "" });
    const told = lines(await program.output);
    expect(told.slice(-2)).toEqual([disks === null ? expect.stringMatching(/^STORE_/) : "STORE_DISK_FULL", "ended 3"]);
    const committed = told.length - 2;
    expect(committed).toBeGreaterThan(2);

    const store = await openSqliteStore(join(place, "copy", "records.db"));
    const blobs = await openFileBlobs(join(place, "copy", "blobs"));
    for await (const hash of blobs.list()) await blobs.get(hash);
    expect((await store.steps.count({ run })).count).toBeGreaterThanOrEqual(committed);
    await resumeAfter(store, blobs, run, committed, 2);
    expect(await verifyLedger(store, blobs, run)).toMatchObject({ ok: true, steps: committed });
    await store.dispose();
    const resumed = startProgram(trainForever, [join(place, "copy"), "2", `${committed + 1}`, `${committed + 3}`]);
    expect(await resumed.ended).toMatchObject({ code: 0, errors: "" });
  });
});
