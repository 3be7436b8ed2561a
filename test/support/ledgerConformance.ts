// Steps and their ledger, as every RecordStore must keep them: exactly once, provably, across a resume.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BlobStore, RecordStore } from "../../agent-daemon/src/store/interface.ts";
import { commitStep, planStep, resumeAfter, type StepResult } from "../../agent-daemon/src/store/ledger.ts";
import { verifyLedger } from "../../agent-daemon/src/store/verifyLedger.ts";
import { type PlanDocument, stepDocumentId } from "../../protocol/step.ts";
import { record, row, run, step } from "./documents.ts";
import { codeOf, type OpenedStores, type OpenStores } from "./openedStores.ts";

export function ledgerConformance(name: string, open: OpenStores): void {
  let opened: OpenedStores;
  let store: RecordStore;
  let blobs: BlobStore;

  beforeEach(async () => {
    opened = await open();
    ({ store, blobs } = opened);
  });
  afterEach(() => opened.dispose());

  describe(`${name}: steps and ledger`, () => {
    const ids = ["a", "b", "c", "d"];
    const key = (number: number, attempt = 1) => ({ run, attempt, step: number, window: number });
    const consumptions = (records: readonly string[], pass = 0) => records.map((id) => ({ record: id, pass }));
    const result = (number: number, records: readonly string[], attempt = 1, pass = 0): StepResult => ({
      ...key(number, attempt),
      outcome: { kind: "applied" },
      metrics: { loss: number },
      weightVersion: number,
      checkpoint: null,
      wallMs: 5,
      consumed: records.map((id) => ({ record: id, pass, calls: 1, tokens: 2 })),
      committed: 2000 + number,
    });
    const train = async (number: number, records: readonly string[], attempt = 1) => {
      await planStep(store, blobs, key(number, attempt), consumptions(records), 1500);
      const stepId = stepDocumentId(run, attempt, number);
      const rows = records.map((id) => row(`${stepId}/${id}`, id, stepId, { window: number }));
      await commitStep(store, blobs, result(number, records, attempt), rows);
    };
    const trained = async () =>
      Object.fromEntries(
        [...(await store.records.get(ids))].map(([id, { trainedCount, lastTrainedStep }]) => [
          id,
          [trainedCount, lastTrainedStep],
        ]),
      );

    beforeEach(() => store.records.insert(ids.map((id) => record(id, { status: "ready" }))));

    it("proves a run in which each planned consumption happened once", async () => {
      await store.steps.insert([step(0)]);
      await train(1, ["a", "b"]);
      await train(2, ["c", "a"]);
      await planStep(store, blobs, key(3), consumptions(["d"]), 1600);
      const report = await verifyLedger(store, blobs, run, [
        { attempt: 1, step: 0 },
        { attempt: 1, step: 2 },
      ]);
      expect(report).toEqual({
        ok: true,
        steps: 3,
        voidSteps: 0,
        consumptions: 4,
        pending: 1,
        rows: 4,
        voidRows: 0,
        faults: [],
      });
      expect(await trained()).toEqual({ a: [2, 2], b: [1, 1], c: [1, 2], d: [0, null] });
      const steps = await store.steps.query({ run, step: { min: 1 } }, { order: "step", descending: true });
      expect(steps.items.map((item) => item.metrics)).toEqual([{ loss: 2 }, { loss: 1 }]);
    });

    it("has one live step and one live plan for each number", async () => {
      await train(1, ["a"]);
      expect(await codeOf(planStep(store, blobs, key(1, 2), consumptions(["b"]), 1))).toBe("STORE_DUPLICATE");
      expect(await codeOf(store.steps.insert([step(1, { attempt: 2, id: stepDocumentId(run, 2, 1) })]))).toBe(
        "STORE_DUPLICATE",
      );
    });

    it("refuses to commit what was not planned, all of it or in part", async () => {
      await planStep(store, blobs, key(1), consumptions(["a", "b"]), 1);
      for (const consumed of [["a"], ["a", "b", "c"], ["a", "c"], ["a", "a"]]) {
        expect(await codeOf(commitStep(store, blobs, result(1, consumed)))).toBe("LEDGER_INVALID");
      }
      expect(await codeOf(commitStep(store, blobs, result(1, ["a", "b"], 1, 1)))).toBe("LEDGER_INVALID");
      expect(await codeOf(commitStep(store, blobs, result(2, ["c"])))).toBe("LEDGER_INVALID");
      expect((await store.steps.count({ run })).count).toBe(0);
    });

    it("makes later steps void on resume, gives their records back, and the next attempt is proven again", async () => {
      await train(1, ["a", "b"]);
      await train(2, ["a", "c"]);
      await train(3, ["d"]);
      await planStep(store, blobs, key(4), consumptions(["b"]), 1);
      const returned = await resumeAfter(store, blobs, run, 1, 2);
      expect(returned).toEqual([
        { record: "a", pass: 0, window: 2, step: 2 },
        { record: "c", pass: 0, window: 2, step: 2 },
        { record: "d", pass: 0, window: 3, step: 3 },
        { record: "b", pass: 0, window: 4, step: 4 },
      ]);
      expect(await trained()).toEqual({ a: [1, 1], b: [1, 1], c: [0, null], d: [0, null] });
      expect(await resumeAfter(store, blobs, run, 1, 2)).toEqual(returned);
      await train(2, ["c", "d"], 2);
      const report = await verifyLedger(store, blobs, run, [{ attempt: 1, step: 3 }]);
      expect(report).toMatchObject({
        ok: true,
        steps: 2,
        voidSteps: 2,
        consumptions: 4,
        pending: 0,
        rows: 4,
        voidRows: 3,
      });
      expect((await store.steps.query({ run, void: true })).items).toHaveLength(4);
      expect((await store.recordData.query({ record: "d" })).items.map((item) => item.step)).toEqual([
        stepDocumentId(run, 2, 2),
      ]);
    });

    it("makes counts anew that a crash right after a commit left behind", async () => {
      await planStep(store, blobs, key(1), consumptions(["a"]), 1);
      await store.steps.insert([step(1, { ledger: { kind: "inline", entries: result(1, ["a"]).consumed.slice() } })]);
      expect((await verifyLedger(store, blobs, run)).faults.map((fault) => fault.kind)).toEqual(["count-differs"]);
      expect(await resumeAfter(store, blobs, run, 1, 2)).toEqual([]);
      expect((await verifyLedger(store, blobs, run)).ok).toBe(true);
      expect((await trained())["a"]).toEqual([1, 1]);
    });

    it("finds every kind of fault", async () => {
      const plan = (number: number, records: readonly string[]): PlanDocument => ({
        id: stepDocumentId(run, 1, number),
        run,
        attempt: 1,
        step: number,
        window: 7,
        plan: { kind: "inline", entries: consumptions(records) },
        planned: 1,
        voidedBy: null,
      });
      const ledger = (records: readonly string[]) =>
        ({ kind: "inline", entries: records.map((id) => ({ record: id, pass: 0, calls: 1, tokens: 1 })) }) as const;
      await store.plans.insert([plan(1, ["a", "b"]), plan(3, ["a"]), plan(5, ["c"]), plan(6, ["d"])]);
      await store.steps.insert([
        step(1, { window: 7, ledger: ledger(["a", "c"]) }),
        step(3, { window: 7, ledger: ledger(["a"]) }),
        step(4, { ledger: ledger(["nobody"]) }),
        step(6, { ledger: { kind: "blob", hash: "0".repeat(64), bytes: 1, count: 1 } }),
      ]);
      await store.recordData.insert([row("d1", "d", stepDocumentId(run, 1, 1))]);
      const report = await verifyLedger(store, blobs, run, [{ attempt: 1, step: 9 }]);
      expect(report.ok).toBe(false);
      expect(report.faults.map((fault) => [fault.kind, fault.step, fault.record])).toEqual([
        ["step-missing", 2, null],
        ["step-missing", 5, null],
        ["not-planned", 1, "c"],
        ["not-consumed", 1, "b"],
        ["consumed-twice", 3, "a"],
        ["plan-missing", 4, null],
        ["ledger-unreadable", 6, null],
        ["plan-without-step", 5, null],
        ["metrics-without-step", 9, null],
        ["row-not-in-ledger", null, "d"],
      ]);
    });

    it("keeps a long ledger in a blob and proves it all the same", async () => {
      const many = Array.from({ length: 1500 }, (_, i) => `m${i}`);
      await store.records.insert(many.map((id) => record(id, { status: "ready" })));
      await planStep(store, blobs, key(1), consumptions(many), 1);
      const committed = await commitStep(store, blobs, result(1, many));
      expect(committed.ledger).toMatchObject({ kind: "blob", count: 1500 });
      expect(await verifyLedger(store, blobs, run)).toMatchObject({ ok: true, consumptions: 1500 });
    });

    it("adds metrics measured later, once", async () => {
      await train(1, ["a"]);
      const id = stepDocumentId(run, 1, 1);
      await store.steps.addMetrics(id, { accuracy: 0.5 });
      expect((await store.steps.get([id])).get(id)?.metrics).toEqual({ loss: 1, accuracy: 0.5 });
      expect(await codeOf(store.steps.addMetrics(id, { accuracy: 0.6 }))).toBe("STORE_DUPLICATE");
      expect(await codeOf(store.steps.addMetrics("nothing", { accuracy: 0.6 }))).toBe("STORE_NOT_FOUND");
    });
  });
}
