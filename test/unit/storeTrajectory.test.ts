// A whole trajectory out of the store, and what a long one costs.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeColumns } from "../../agent-daemon/src/store/columns.ts";
import { openFileBlobs } from "../../agent-daemon/src/store/fileBlobs.ts";
import type { BlobStore, RecordStore } from "../../agent-daemon/src/store/interface.ts";
import { commitStep, planStep, resumeAfter } from "../../agent-daemon/src/store/ledger.ts";
import { loadTrajectory } from "../../agent-daemon/src/store/loadTrajectory.ts";
import { openSqliteStore } from "../../agent-daemon/src/store/sqliteStore.ts";
import type { CallDocument } from "../../protocol/call.ts";
import type { Column } from "../../protocol/column.ts";
import { stepDocumentId } from "../../protocol/step.ts";
import { call, column, record, row, run, task, toolEvent } from "../support/documents.ts";

let folder: string;
let next = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "store-trajectory-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Opened {
  readonly store: RecordStore;
  readonly blobs: BlobStore;
  readonly file: string;
}

async function open(): Promise<Opened> {
  const place = join(folder, `${next++}`);
  const file = join(place, "records.db");
  return { store: await openSqliteStore(file), blobs: await openFileBlobs(join(place, "blobs")), file };
}

/** Turn `i`: 40 new prompt tokens and 30 sampled ones after everything before. */
function turn(recordId: string, i: number): CallDocument {
  const start = i * 70;
  return call(`${recordId}/c${i}`, recordId, {
    parent: i === 0 ? null : `${recordId}/c${i - 1}`,
    index: i,
    keptMessages: i * 2,
    keptTokens: start,
    request: {
      messages: [{ role: "user", content: `message ${i} ${"lorem ipsum ".repeat(10)}` }],
      tools: null,
      asked: {},
    },
    message: { role: "assistant", content: `answer ${i}` },
    promptDelta: column(Int32Array.from({ length: 40 }, (_, k) => start + k)),
    output: column(Int32Array.from({ length: 30 }, (_, k) => start + 40 + k)),
    logprobs: column(Float32Array.from({ length: 30 }, (_, k) => -Math.abs(Math.sin(start + k)))),
    versions: [
      { version: 3, length: 10 },
      { version: 4, length: 20 },
    ],
    usage: { promptTokens: start + 40, completionTokens: 30, cachedTokens: start },
    started: 1000 + i * 10,
    ended: 1008 + i * 10,
  });
}

async function storeConversation({ store, blobs }: Opened, recordId: string, turns: number, phase = 0): Promise<void> {
  await store.records.insert([record(recordId, { status: "ready" })]);
  await store.calls.insert(Array.from({ length: turns }, (_, i) => turn(recordId, i)));
  const tokens = turns * 30;
  const names = ["old", "new", "reference", "entropy", "advantage", "weight"] as const;
  const columns = await encodeColumns(
    blobs,
    names.map((_, c) => Float32Array.from({ length: tokens }, (_, k) => Math.sin(k * 1.3 + c + phase))),
  );
  await store.recordData.insert([
    row(`${recordId}/row`, recordId, "step", {
      occurrences: tokens,
      leaf: `${recordId}/c${turns - 1}`,
      spans: Array.from({ length: turns }, (_, i) => ({
        call: `${recordId}/c${i}`,
        from: 0,
        start: i * 30,
        length: 30,
      })),
      columns: Object.fromEntries(names.map((name, c) => [name, columns[c] as Column])),
    }),
  ]);
}

describe("a loaded trajectory", () => {
  it("has conversations rebuilt from what each call added, across a branch and a cut", async () => {
    const { store, blobs } = await open();
    await store.tasks.insert([task("task-1", { payload: { id: 7205759403792793601n } })]);
    await store.records.insert([record("r")]);
    const branch = call("r/b", "r", {
      parent: "r/c1",
      index: 3,
      keptMessages: 1,
      keptTokens: 50,
      request: { messages: [{ role: "user", content: "again" }], tools: null, asked: {} },
      promptDelta: column(Int32Array.of(-7)),
      started: 1030,
      ended: 1035,
    });
    await store.calls.insert([branch, turn("r", 1), turn("r", 0), turn("r", 2)]);
    await store.toolEvents.insert([toolEvent("e2", "r", { index: 1 }), toolEvent("e1", "r", { started: 2000 })]);
    const loaded = await loadTrajectory(store, blobs, "r");
    expect(loaded.task?.payload).toEqual({ id: 7205759403792793601n });
    expect(loaded.toolEvents.map((event) => event.id)).toEqual(["e1", "e2"]);
    expect(loaded.calls.map((item) => item.document.id)).toEqual(["r/c0", "r/c1", "r/c2", "r/b"]);
    const [first, , third, branched] = loaded.calls;
    expect(first?.messages()).toHaveLength(1);
    expect(third?.messages().map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
      "user",
    ]);
    expect(third?.messages()[3]).toEqual({ role: "assistant", content: "answer 1" });
    expect([...(third?.promptTokens() ?? [])]).toEqual(Array.from({ length: 180 }, (_, k) => k));
    expect(branched?.messages().map((message) => message.content)).toEqual([first?.messages()[0]?.content, "again"]);
    expect([...(branched?.promptTokens() ?? [])]).toEqual([...Array.from({ length: 50 }, (_, k) => k), -7]);
    expect([...(third?.versions ?? [])].join("")).toBe("3".repeat(10) + "4".repeat(20));
    expect(third?.logprobs).toHaveLength(30);
    await store.dispose();
  });

  it("says of each token what each step made of it, and nothing of void steps", async () => {
    const { store, blobs } = await open();
    await store.records.insert([record("r", { status: "ready" })]);
    await store.calls.insert([turn("r", 0), turn("r", 1)]);
    const train = async (step: number, attempt: number, value: number) => {
      const key = { run, attempt, step, window: step };
      const id = stepDocumentId(run, attempt, step);
      const spans = [
        { call: "r/c0", from: 0, start: 0, length: 30 },
        { call: "r/c1", from: 5, start: 30, length: 25 },
      ];
      const data = row(`${id}/r`, "r", id, {
        window: step,
        occurrences: 55,
        spans,
        columns: {
          advantage: column(new Float32Array(55).fill(value)),
          entropy: column(Float32Array.from({ length: 55 }, (_, k) => (k === 31 ? Number.NaN : k))),
        },
      });
      await planStep(store, blobs, key, [{ record: "r", pass: 0 }], 1);
      const consumed = [{ record: "r", pass: 0, calls: 2, tokens: 55 }];
      const outcome = { kind: "applied" } as const;
      await commitStep(
        store,
        blobs,
        { ...key, outcome, metrics: {}, weightVersion: step, checkpoint: null, wallMs: 1, consumed, committed: 1 },
        [data],
      );
    };
    await train(1, 1, 0.5);
    await train(2, 1, 0.25);
    await resumeAfter(store, blobs, run, 1, 2);
    await train(2, 2, -0.75);
    const second = (await loadTrajectory(store, blobs, "r")).calls[1];
    expect(second?.training.map((span) => [span.step.id, span.from, span.length, span.columns.advantage?.[0]])).toEqual(
      [
        ["run-1/1/1", 5, 25, 0.5],
        ["run-1/2/2", 5, 25, -0.75],
      ],
    );
    const entropy = second?.training[0]?.columns.entropy;
    expect([entropy?.length, entropy?.[0], entropy?.[1], entropy?.[24]]).toEqual([25, 30, Number.NaN, 54]);
    await store.dispose();
  });

  it("of an unknown record is an error with a code, as is one whose parent call is gone", async () => {
    const { store, blobs } = await open();
    await expect(loadTrajectory(store, blobs, "nobody")).rejects.toMatchObject({ code: "STORE_NOT_FOUND" });
    await store.records.insert([record("r")]);
    await store.calls.insert([turn("r", 1)]);
    const loaded = await loadTrajectory(store, blobs, "r");
    expect(loaded.calls[0]?.output).toHaveLength(30);
    expect(() => loaded.calls[0]?.messages()).toThrow(expect.objectContaining({ code: "STORE_CORRUPT" }));
    await store.dispose();
  });
});

describe("storage of a long conversation", () => {
  it("is linear in its turns, up to 300", async () => {
    const bytes = async (turns: number) => {
      const opened = await open();
      // Several records, so that whole pages are counted and not the rounding of one.
      for (let i = 0; i < 4; i++) await storeConversation(opened, `r${i}`, turns, i * 100);
      let blobBytes = 0;
      for await (const hash of opened.blobs.list()) blobBytes += (await opened.blobs.get(hash)).length;
      await opened.store.dispose();
      return statSync(opened.file).size + blobBytes;
    };
    const [small, middle, long] = [await bytes(100), await bytes(200), await bytes(300)];
    const [early, late] = [middle - small, long - middle];
    expect(late / early).toBeGreaterThan(0.95);
    expect(late / early).toBeLessThan(1.05);
    // 70 tokens and some 140 characters a turn, with what the sampler and six columns of a trainer say of 30 of them.
    expect(late / 4 / 100).toBeLessThan(6000);
  });

  it("has no document that grows with the square of the turns, and loads back whole", async () => {
    const opened = await open();
    await storeConversation(opened, "r", 300);
    const last = (await loadTrajectory(opened.store, opened.blobs, "r")).calls[299];
    expect(last?.messages()).toHaveLength(599);
    expect([...(last?.promptTokens() ?? [])]).toEqual(Array.from({ length: 299 * 70 + 40 }, (_, k) => k));
    expect(last?.training).toEqual([]);
    await opened.store.dispose();
  });
});
