// A run that was trained goes out as conversations, as training rows and as an archive, and the archive opens as the same run.
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readSafetensors } from "../../../agent-daemon/src/engines/safetensors.ts";
import { exportRun } from "../../../agent-daemon/src/runs/exportRun.ts";
import { importRun } from "../../../agent-daemon/src/runs/importRun.ts";
import { readJournal } from "../../../agent-daemon/src/runs/journal.ts";
import type { RunFolder } from "../../../agent-daemon/src/runs/runFolder.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { loadTrajectory } from "../../../agent-daemon/src/store/loadTrajectory.ts";
import { allDocuments } from "../../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { verifyLedger } from "../../../agent-daemon/src/store/verifyLedger.ts";
import { readTrajectories } from "../../support/openedFiles.ts";
import { attemptToyRun, newToyRun, toyFolder } from "../../support/toyRun.ts";

const place = (name: string) => join(mkdtempSync(join(tmpdir(), "exported-")), name);
async function trainedRun(): Promise<RunFolder> {
  const toy = await newToyRun(await toyFolder());
  const { end } = await attemptToyRun(toy);
  expect(end.status).toBe("completed");
  return toy.folder;
}

/** Everything that the store holds, and what the trained trajectories come to. */
async function contents(folder: RunFolder) {
  const store = await openSqliteStore(folder.records, { readOnly: true });
  try {
    const blobs = await openFileBlobs(folder.blobs);
    const { run } = folder;
    const records = await allDocuments(store.records, { run });
    const trajectories = [];
    for (const record of records) {
      const { calls } = await loadTrajectory(store, blobs, record.id);
      trajectories.push(
        calls.map(({ document, output, logprobs, training }) => ({ document, output, logprobs, training })),
      );
    }
    return {
      records,
      trajectories,
      tasks: await allDocuments(store.tasks, { run }),
      toolEvents: await allDocuments(store.toolEvents, { run }),
      recordData: await allDocuments(store.recordData, { run, void: true }),
      plans: await allDocuments(store.plans, { run, void: true }),
      steps: await allDocuments(store.steps, { run, void: true }),
      ledger: await verifyLedger(store, blobs, run),
    };
  } finally {
    await store.dispose();
  }
}

describe("a trained run", () => {
  it("as conversations: messages, reward and exact task ids of every record", async () => {
    const run = await trainedRun();
    const { path, records } = await exportRun(run, "chat", place("chat.jsonl"));
    const stored = await contents(run);
    expect(records).toBe(stored.records.length);
    const { all, problems } = await readTrajectories(path);
    expect(problems).toEqual([]);
    expect(all.map(({ about }) => about.id)).toEqual(stored.records.map((record) => record.id));
    for (const [index, { about, turns }] of all.entries()) {
      const record = stored.records[index]!;
      expect(about.score).toBe(typeof record.score === "number" ? record.score : null);
      expect(about.reward).toEqual(record.reward);
      expect(about.group).toBe(record.task);
      expect(turns.map((turn) => turn.role)).toEqual(["user", "assistant"]);
      const payload = (about.metadata["payload"] ?? {}) as { id: bigint };
      expect(stored.tasks.find((task) => task.id === record.task)?.payload["id"]).toBe(payload.id);
      expect(typeof payload.id).toBe("bigint");
    }
  });

  it("as training rows: every trained token with the numbers that its step stored", async () => {
    const run = await trainedRun();
    const { path, records } = await exportRun(run, "training", place("rows.safetensors"));
    const tensors = readSafetensors(path);
    const bytes = readFileSync(path);
    const floats = (name: string) => {
      const { offset, bytes: length } = tensors.get(name)!;
      return new Float32Array(bytes.buffer.slice(bytes.byteOffset + offset, bytes.byteOffset + offset + length));
    };
    const whole = (name: string) => {
      const { offset, bytes: length } = tensors.get(name)!;
      return [
        ...new BigInt64Array(bytes.buffer.slice(bytes.byteOffset + offset, bytes.byteOffset + offset + length)),
      ].map(Number);
    };
    const stored = await contents(run);
    expect(records).toBe(stored.recordData.length);
    const header = JSON.parse(bytes.toString("utf8", 8, 8 + Number(bytes.readBigUInt64LE(0))));
    const names = JSON.parse(header.__metadata__.rows) as [string, string][];
    expect(header.__metadata__.unplaced).toBe("0");
    const [starts, lengths, steps] = [whole("row_start"), whole("row_length"), whole("step")];
    const { offset, shape } = tensors.get("trained")!;
    expect(shape).toEqual([lengths.reduce((sum, length) => sum + length, 0)]);
    const trained = bytes.subarray(offset, offset + shape[0]!);
    const [advantages, logprobs] = [floats("advantage"), floats("logprob")];
    for (const [index, [row, record]] of names.entries()) {
      const document = stored.recordData.find((each) => each.id === row)!;
      expect(document.record).toBe(record);
      const calls = stored.trajectories.flat().filter((call) => call.document.record === record);
      const spans = calls.flatMap((call) =>
        call.training.filter((span) => span.row === row).map((span) => ({ span, call })),
      );
      const [from, to] = [starts[index]!, starts[index]! + lengths[index]!];
      const places = [...trained.subarray(from, to).keys()]
        .filter((at) => trained[from + at] === 1)
        .map((at) => from + at);
      expect(places.map((at) => logprobs[at])).toEqual(
        spans.flatMap(({ span, call }) => [...call.logprobs.subarray(span.from, span.from + span.length)]),
      );
      expect(places.map((at) => advantages[at])).toEqual(
        spans.flatMap(({ span }) => [...(span.columns.advantage ?? [])].map(Math.fround)),
      );
      expect(steps[index]).toBe(spans[0]?.span.step.step);
    }
  });

  it("as an archive: opened elsewhere it is the same run, its ledger proven", async () => {
    const run = await trainedRun();
    const { path } = await exportRun(run, "archive", place("run.tar"));
    const opened = await importRun({ files: [path], outputDir: place("runs"), into: null, now: Date.now });
    expect(opened.folder.name).toBe(run.name);
    expect(await contents(opened.folder)).toEqual(await contents(run));
    expect(readJournal(opened.folder.journal)).toEqual(readJournal(run.journal));
    expect(readFileSync(opened.folder.config, "utf8")).toBe(readFileSync(run.config, "utf8"));
    expect(readFileSync(opened.folder.environment, "utf8")).toBe(readFileSync(run.environment, "utf8"));
    const metrics = readFileSync(join(opened.folder.path, "metrics.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(metrics.length).toBeGreaterThan(4);
    expect(metrics.at(-1).metrics).toBeTypeOf("object");
  });

  it("P35: as an archive whose metrics are valid JSON, whatever the numbers are", async () => {
    const run = await trainedRun();
    const store = await openSqliteStore(run.records);
    const [step] = await allDocuments(store.steps, { run: run.run, step: 2 });
    const odd = { odd_nan: Number.NaN, odd_high: Number.POSITIVE_INFINITY, odd_low: Number.NEGATIVE_INFINITY };
    await store.steps.addMetrics(step!.id, odd);
    await store.dispose();
    const { path } = await exportRun(run, "archive", place("odd.tar"));
    const opened = await importRun({ files: [path], outputDir: place("odd"), into: null, now: Date.now });
    const lines = readFileSync(join(opened.folder.path, "metrics.jsonl"), "utf8").trim().split("\n");
    const row = lines.map((line) => JSON.parse(line)).find((parsed) => parsed.step === 2);
    expect(row.metrics).toMatchObject({ odd_nan: "NaN", odd_high: "Infinity", odd_low: "-Infinity" });
    expect(await contents(opened.folder)).toEqual(await contents(run));
  });
});
