// What every RecordStore must do, whatever keeps its documents. Each store's test file runs this suite against it.
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BlobStore, RecordStore } from "../../agent-daemon/src/store/interface.ts";
import { commitStep, planStep, resumeAfter, type StepResult } from "../../agent-daemon/src/store/ledger.ts";
import { allDocuments } from "../../agent-daemon/src/store/pages.ts";
import { recordTransitions } from "../../agent-daemon/src/store/recordStatus.ts";
import { verifyLedger } from "../../agent-daemon/src/store/verifyLedger.ts";
import type { LeaseDocument, RecordStatus } from "../../protocol/record.ts";
import { type PlanDocument, type StepDocument, stepDocumentId } from "../../protocol/step.ts";
import { call, record, row, run, task, toolEvent } from "./documents.ts";

export interface OpenedStores {
  readonly store: RecordStore;
  readonly blobs: BlobStore;
  /** Moves the store's clock on. */
  advance(milliseconds: number): void;
  dispose(): Promise<void>;
}

/** `open` gives empty stores whose leases may be as short as 1000 ms. */
export function storeConformance(name: string, open: () => Promise<OpenedStores>): void {
  let opened: OpenedStores;
  let store: RecordStore;
  let blobs: BlobStore;

  beforeEach(async () => {
    opened = await open();
    ({ store, blobs } = opened);
  });
  afterEach(() => opened.dispose());

  const code = (promise: Promise<unknown>) =>
    promise.then(
      () => "none",
      (error: { code: string }) => error.code,
    );

  describe(`${name}: documents`, () => {
    it("gives back every document as it was inserted", async () => {
      const documents = {
        tasks: task("t", { payload: { id: 7205759403792793601n, text: 'Größe "温度" 🧪', nested: [{ a: null }] } }),
        records: record("r", {
          score: -0.5,
          reward: { format: 1 },
          labels: ["odd"],
          fields: { id: 7205759403792793602n },
        }),
        calls: call("c", "r"),
        toolEvents: toolEvent("e", "r", { result: [7205759403792793601n, "x"] }),
        recordData: row("d", "r", "s"),
      };
      await store.tasks.insert([documents.tasks]);
      await store.records.insert([documents.records]);
      await store.calls.insert([documents.calls]);
      await store.toolEvents.insert([documents.toolEvents]);
      await store.recordData.insert([documents.recordData]);
      expect((await store.tasks.get(["t"])).get("t")).toEqual(documents.tasks);
      expect((await store.records.get(["r"])).get("r")).toEqual(documents.records);
      expect((await store.calls.get(["c"])).get("c")).toEqual(documents.calls);
      expect((await store.toolEvents.get(["e"])).get("e")).toEqual(documents.toolEvents);
      expect((await store.recordData.get(["d"])).get("d")).toEqual(documents.recordData);
    });

    it("keeps two tasks whose ids differ in the last of nineteen digits two tasks", async () => {
      await store.tasks.insert([
        task("a", { name: "7205759403792793601", payload: { id: 7205759403792793601n } }),
        task("b", { name: "7205759403792793602", payload: { id: 7205759403792793602n } }),
      ]);
      const found = await store.tasks.query({ run, name: "7205759403792793601" });
      expect(found.items.map((item) => item.payload["id"])).toEqual([7205759403792793601n]);
      expect((await store.tasks.count({ run })).count).toBe(2);
    });

    it("refuses an id that is taken, keeps the first document and adds the others", async () => {
      await store.tasks.insert([task("a", { index: 1 })]);
      const insert = store.tasks.insert([task("b"), task("a", { index: 2 }), task("c")]);
      await expect(insert).rejects.toMatchObject({ code: "STORE_DUPLICATE", at: { id: "a", count: 1 } });
      const stored = await store.tasks.get(["a", "b", "c", "d"]);
      expect([...stored.keys()].sort()).toEqual(["a", "b", "c"]);
      expect(stored.get("a")?.index).toBe(1);
    });

    it("refuses a score that is not a number and stores nothing of that insert", async () => {
      expect(await code(store.records.insert([record("a"), record("b", { score: Number.NaN })]))).toBe(
        "STORE_DOCUMENT_INVALID",
      );
      expect((await store.records.count({ run })).count).toBe(0);
    });

    it("keeps metrics that are not finite", async () => {
      const metrics = { loss: Number.NaN, kl: Number.POSITIVE_INFINITY, ratio: Number.NEGATIVE_INFINITY, zero: -0 };
      await store.steps.insert([step(1, { metrics })]);
      expect([...(await store.steps.get([stepDocumentId(run, 1, 1)])).values()][0]?.metrics).toEqual(metrics);
    });
  });

  describe(`${name}: status`, () => {
    it("allows the changes of status that are listed and no other", async () => {
      const statuses = Object.keys(recordTransitions) as RecordStatus[];
      for (const from of statuses) {
        const ids = statuses.map((to) => `${from}-${to}`);
        await store.records.insert(ids.map((id) => record(id, { status: from })));
        const results = await store.records.update(
          statuses.map((to) => ({ id: `${from}-${to}`, set: { status: to } })),
        );
        statuses.forEach((to, i) => {
          const allowed = recordTransitions[from].includes(to);
          expect(results[i]?.code ?? "made", `${from} to ${to}`).toBe(allowed ? "made" : "STORE_TRANSITION_INVALID");
        });
        const stored = await store.records.get(ids);
        statuses.forEach((to) => {
          expect(stored.get(`${from}-${to}`)?.status).toBe(recordTransitions[from].includes(to) ? to : from);
        });
      }
    });

    it("makes the good updates of a batch and says of each other one why not", async () => {
      await store.records.insert([record("a", { status: "running" }), record("b", { status: "failed" })]);
      const results = await store.records.update([
        { id: "a", set: { status: "completed" } },
        { id: "missing", set: { score: 1 } },
        { id: "b", set: { score: 1 }, whenStatus: ["running", "completed"] },
        { id: "a", set: { score: 0.5 }, add: { trainedCount: 2 } },
      ]);
      expect(results.map((error) => error?.code ?? null)).toEqual([null, "STORE_NOT_FOUND", "STORE_CONFLICT", null]);
      expect((await store.records.get(["a"])).get("a")).toMatchObject({
        status: "completed",
        score: 0.5,
        trainedCount: 2,
      });
    });
  });

  describe(`${name}: queries`, () => {
    beforeEach(async () => {
      await store.records.insert(
        Array.from({ length: 25 }, (_, i) =>
          record(`r${String(i).padStart(2, "0")}`, {
            task: `t${i % 5}`,
            split: i % 2 === 0 ? "train" : "heldOut",
            status: i % 5 === 0 ? "failed" : "ready",
            created: 1000 + Math.floor(i / 3),
            score: i % 10 === 9 ? "ungraded" : i % 5 === 0 ? null : i / 10,
            error: i % 5 === 0 ? { code: "SAMPLING_TIMEOUT", message: "late", call: null } : null,
            stats: { ...record("x").stats, outputTokens: i * 10, turns: i % 4, staleness: i < 10 ? i : null },
          }),
        ),
      );
    });

    it("finds records by each of its numbers and says which index answered", async () => {
      const byScore = await store.records.query({ run, numbers: { score: { min: 1, max: 1.2 } } });
      expect(byScore.items.map((item) => item.id)).toEqual(["r11", "r12"]);
      expect(byScore.index).not.toBe("none");
      const byLength = await store.records.query({ run, numbers: { outputTokens: { min: 230 } } });
      expect(byLength.items.map((item) => item.id)).toEqual(["r23", "r24"]);
      expect((await store.records.count({ run, numbers: { staleness: { max: 3 } } })).count).toBe(4);
      expect((await store.records.count({ run, ungraded: true })).count).toBe(2);
      expect((await store.records.count({ run, errorCode: "SAMPLING_TIMEOUT" })).count).toBe(5);
      expect((await store.records.count({ run, status: ["ready", "scored"], split: "train" })).count).toBe(10);
      expect((await store.records.query({ task: "t1" })).items).toHaveLength(5);
      expect((await store.records.query({ run: "another" })).items).toEqual([]);
    });

    it("pages through any order without a gap or a repetition", async () => {
      for (const order of ["created", "score", "outputTokens", "turns", "staleness"] as const) {
        for (const descending of [false, true]) {
          const whole = (await store.records.query({ run }, { order, descending, limit: 1000 })).items.map(
            (item) => item.id,
          );
          for (const limit of [1, 4, 25]) {
            const paged = await allDocuments(store.records, { run }, { order, descending, limit });
            expect(paged.map((item) => item.id)).toEqual(whole);
          }
          expect(whole).toHaveLength({ created: 25, score: 18, outputTokens: 25, turns: 25, staleness: 10 }[order]);
        }
      }
      const best = await store.records.query({ run }, { order: "score", descending: true, limit: 2 });
      expect(best.items.map((item) => item.score)).toEqual([2.4, 2.3]);
    });

    it("finds records by text of their calls, quotes and line ends included", async () => {
      await store.calls.insert([
        call("c1", "r01", { message: { role: "assistant", content: 'He said "Größe"\nand left 100% of_it' } }),
        call("c2", "r02"),
      ]);
      for (const text of ["Größe", 'said "Größe"\nand', "100% of_it"]) {
        expect((await store.records.query({ run, text })).items.map((item) => item.id)).toEqual(["r01"]);
      }
      expect((await store.records.query({ run, text: "100_ of" })).items).toEqual([]);
    });

    it("finds the records of a step by its training rows, and not those of rows without a step", async () => {
      const id = stepDocumentId(run, 1, 1);
      await store.recordData.insert([row("d1", "r03", id), row("d2", "r04", id), row("d3", "r05", "never committed")]);
      await store.steps.insert([step(1)]);
      expect((await store.records.query({ step: id })).items.map((item) => item.id)).toEqual(["r03", "r04"]);
      expect((await store.recordData.query({ run })).items.map((item) => item.id)).toEqual(["d1", "d2"]);
      expect((await store.recordData.query({ run, void: true })).items).toHaveLength(3);
    });

    it("refuses an order, a limit and a cursor that it does not know", async () => {
      expect(await code(store.records.query({ run }, { after: "nonsense" }))).toBe("STORE_QUERY_INVALID");
      expect(await code(store.records.query({ run }, { limit: 0 }))).toBe("STORE_QUERY_INVALID");
      expect(await code(store.records.query({ run }, { order: "doc; DROP TABLE" as "score" }))).toBe(
        "STORE_QUERY_INVALID",
      );
      expect(await code(store.records.query({ run, fields: { "a') OR 1=1 --": 1 } }))).toBe("STORE_QUERY_INVALID");
    });
  });

  describe(`${name}: the recipe's own fields`, () => {
    const recipe = {
      taskSchema: { id: "integer", question: "string" },
      recordFields: { answer: "integer", kind: "string", exact: "boolean" },
      indexes: ["answer"],
    } as const;

    it("finds records by them, big integers by all their digits", async () => {
      await store.applyRecipe(run, recipe);
      const big = 7205759403792793601n;
      const huge = 10n ** 30n;
      await store.records.insert([
        record("a", { fields: { answer: big, kind: "x", exact: true } }),
        record("b", { fields: { answer: big + 1n, kind: "y", exact: false } }),
        record("c", { fields: { answer: huge } }),
        record("d", { fields: { answer: 5 } }),
      ]);
      const ids = async (fields: {
        [name: string]: string | bigint | number | boolean | { min?: number; max?: number };
      }) => (await store.records.query({ run, fields })).items.map((item) => item.id);
      expect(await ids({ answer: big })).toEqual(["a"]);
      expect(await ids({ answer: big + 1n })).toEqual(["b"]);
      expect(await ids({ answer: huge })).toEqual(["c"]);
      expect(await ids({ answer: huge + 1n })).toEqual([]);
      expect(await ids({ answer: 5n })).toEqual(["d"]);
      expect(await ids({ answer: { max: 10 } })).toEqual(["d"]);
      expect(await ids({ kind: "y", exact: false })).toEqual(["b"]);
    });

    it("refuses values that the recipe did not announce", async () => {
      await store.applyRecipe(run, recipe);
      expect(await code(store.records.insert([record("a", { fields: { other: 1 } })]))).toBe("STORE_FIELD_INVALID");
      expect(await code(store.records.insert([record("a", { fields: { answer: 1.5 } })]))).toBe("STORE_FIELD_INVALID");
      expect(await code(store.tasks.insert([task("t", { payload: { id: 1 } })]))).toBe("STORE_FIELD_INVALID");
      await store.tasks.insert([task("t", { payload: { id: 1, question: "?", more: true } })]);
      await store.records.insert([record("a")]);
      const [error] = await store.records.update([{ id: "a", set: { fields: { kind: 3 } } }]);
      expect(error?.code).toBe("STORE_FIELD_INVALID");
    });

    it("follows a changed recipe: new indexes come, old ones go, a type that stored values refuse is refused", async () => {
      expect(await store.applyRecipe(run, recipe)).toEqual({ created: ["answer"], dropped: [] });
      expect(await store.applyRecipe(run, recipe)).toEqual({ created: [], dropped: [] });
      await store.records.insert([record("a", { fields: { answer: 1, kind: "x" } })]);
      const changed = { ...recipe, recordFields: { answer: "number", extra: "json" }, indexes: ["extra"] } as const;
      expect(await store.applyRecipe(run, changed)).toEqual({ created: ["extra"], dropped: ["answer"] });
      expect((await store.records.get(["a"])).get("a")?.fields).toEqual({ answer: 1, kind: "x" });
      const refused = { ...changed, recordFields: { ...changed.recordFields, answer: "string" } } as const;
      expect(await code(store.applyRecipe(run, refused))).toBe("STORE_FIELD_INVALID");
      await store.records.insert([record("b", { fields: { answer: 1.5 } })]);
      expect(await code(store.applyRecipe(run, { ...recipe, indexes: ["nothing"] }))).toBe("STORE_FIELD_INVALID");
    });
  });

  describe(`${name}: leases`, () => {
    const request = { run, owner: "o1", purpose: "rollout", milliseconds: 1000 } as const;

    it("gives a record to one owner at a time, and to the next when the lease ends", async () => {
      const [first] = await store.leases.claim([{ ...request, record: "r" }]);
      expect(first).toMatchObject({ id: "r#1", record: "r", n: 1, owner: "o1" });
      expect(await store.leases.claim([{ ...request, record: "r", owner: "o2" }])).toEqual([null]);
      opened.advance(999);
      expect(await store.leases.claim([{ ...request, record: "r", owner: "o2" }])).toEqual([null]);
      opened.advance(1);
      expect((await store.leases.claim([{ ...request, record: "r", owner: "o2" }]))[0]).toMatchObject({
        id: "r#2",
        owner: "o2",
      });
      expect(await store.leases.renew([first as LeaseDocument], 5000)).toEqual([false]);
      expect(await store.leases.release([first as LeaseDocument])).toEqual([false]);
      expect(await store.leases.release([{ record: "r", n: 2, owner: "o1" }])).toEqual([false]);
      expect(await store.leases.release([{ record: "r", n: 2, owner: "o2" }])).toEqual([true]);
      expect(await store.leases.inForce(["r"])).toEqual(new Map());
    });

    it("refuses the late result of an owner whose lease expired, whether or not another one came", async () => {
      await store.records.insert([record("r", { status: "running" })]);
      const [lease] = await store.leases.claim([{ ...request, record: "r" }]);
      const late = { id: "r", set: { status: "completed" }, lease: lease as LeaseDocument } as const;
      opened.advance(1000);
      expect((await store.records.update([late]))[0]?.code).toBe("STORE_LEASE_LOST");
      const [second] = await store.leases.claim([{ ...request, record: "r", owner: "o2" }]);
      expect((await store.records.update([late]))[0]?.code).toBe("STORE_LEASE_LOST");
      expect(await store.records.update([{ ...late, lease: second as LeaseDocument }])).toEqual([null]);
    });

    it("hands out unclaimed records oldest first", async () => {
      await store.records.insert(["a", "b", "c", "d"].map((id, i) => record(id, { created: 2000 - i })));
      await store.records.update([{ id: "c", set: { status: "running" } }]);
      await store.leases.claim([{ ...request, record: "b" }]);
      const got = await store.leases.claimNext({ run, status: "created" }, { ...request, owner: "o2" }, 10);
      expect(got.map((lease) => lease.record)).toEqual(["d", "a"]);
      expect(await store.leases.claimNext({ run, status: "created" }, request, 10)).toEqual([]);
      expect((await store.records.query({ run, unclaimed: true })).items.map((item) => item.id)).toEqual(["c"]);
    });

    it("keeps all leases of an owner that are in force by one heartbeat", async () => {
      await store.leases.claim(["a", "b"].map((id) => ({ ...request, record: id })));
      opened.advance(600);
      await store.leases.claim([
        { ...request, record: "c" },
        { ...request, record: "d", owner: "o2" },
      ]);
      await store.leases.release([{ record: "b", n: 1, owner: "o1" }]);
      expect(await store.leases.renewOwner("o1", 1000)).toBe(2);
      opened.advance(999);
      expect([...(await store.leases.inForce(["a", "b", "c", "d"])).keys()].sort()).toEqual(["a", "c", "d"]);
      opened.advance(1);
      expect(await store.leases.renewOwner("o1", 1000)).toBe(0);
    });

    it("refuses a lease that is not long enough for the clocks", async () => {
      expect(await code(store.leases.claim([{ ...request, record: "r", milliseconds: 10 }]))).toBe(
        "STORE_LEASE_TOO_SHORT",
      );
    });

    it("never has two owners of a record, under any interleaving of claims, renewals, releases and time", async () => {
      const owner = fc.constantFrom("o1", "o2", "o3");
      const recordId = fc.constantFrom("x", "y");
      const action = fc.oneof(
        fc.record({ kind: fc.constant("claim" as const), owner, record: recordId }),
        fc.record({ kind: fc.constant("renew" as const), owner, record: recordId }),
        fc.record({ kind: fc.constant("release" as const), owner, record: recordId }),
        fc.record({ kind: fc.constant("report" as const), owner, record: recordId }),
        fc.record({ kind: fc.constant("wait" as const), milliseconds: fc.integer({ min: 1, max: 1500 }) }),
      );
      let round = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(action, { maxLength: 30 }), async (actions) => {
          const prefix = `${round++}-`;
          await store.records.insert(["x", "y"].map((id) => record(prefix + id)));
          let now = 0;
          /** What each owner believes, and the truth. */
          const believed = new Map<string, LeaseDocument>();
          const truth = new Map<string, { owner: string; n: number; expires: number }>();
          const holder = (id: string) => {
            const lease = truth.get(id);
            return lease !== undefined && lease.expires > now ? lease : null;
          };
          for (const step of actions) {
            if (step.kind === "wait") {
              now += step.milliseconds;
              opened.advance(step.milliseconds);
              continue;
            }
            const id = prefix + step.record;
            const key = `${step.owner} ${id}`;
            const mine = believed.get(key);
            const held = holder(id);
            const valid = mine !== undefined && held?.owner === step.owner && held.n === mine.n;
            if (step.kind === "claim") {
              const [lease] = await store.leases.claim([{ ...request, owner: step.owner, record: id }]);
              expect(lease === null).toBe(held !== null);
              if (lease) {
                expect(lease.n).toBe((truth.get(id)?.n ?? 0) + 1);
                believed.set(key, lease);
                truth.set(id, { owner: step.owner, n: lease.n, expires: now + 1000 });
              }
            } else if (mine !== undefined) {
              if (step.kind === "renew") {
                expect(await store.leases.renew([mine], 1000)).toEqual([valid]);
                if (valid) truth.set(id, { ...held, expires: now + 1000 });
              } else if (step.kind === "release") {
                expect(await store.leases.release([mine])).toEqual([valid]);
                if (valid) truth.set(id, { ...held, expires: Number.NEGATIVE_INFINITY });
              } else {
                const [error] = await store.records.update([{ id, set: { labels: [step.owner] }, lease: mine }]);
                expect(error?.code ?? "made").toBe(valid ? "made" : "STORE_LEASE_LOST");
              }
            }
          }
        }),
        { numRuns: 60 },
      );
    });
  });

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
      expect(await code(planStep(store, blobs, key(1, 2), consumptions(["b"]), 1))).toBe("STORE_DUPLICATE");
      expect(await code(store.steps.insert([step(1, { attempt: 2, id: stepDocumentId(run, 2, 1) })]))).toBe(
        "STORE_DUPLICATE",
      );
    });

    it("refuses to commit what was not planned, all of it or in part", async () => {
      await planStep(store, blobs, key(1), consumptions(["a", "b"]), 1);
      for (const consumed of [["a"], ["a", "b", "c"], ["a", "c"], ["a", "a"]]) {
        expect(await code(commitStep(store, blobs, result(1, consumed)))).toBe("LEDGER_INVALID");
      }
      expect(await code(commitStep(store, blobs, result(1, ["a", "b"], 1, 1)))).toBe("LEDGER_INVALID");
      expect(await code(commitStep(store, blobs, result(2, ["c"])))).toBe("LEDGER_INVALID");
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
      expect(await code(store.steps.addMetrics(id, { accuracy: 0.6 }))).toBe("STORE_DUPLICATE");
      expect(await code(store.steps.addMetrics("nothing", { accuracy: 0.6 }))).toBe("STORE_NOT_FOUND");
    });
  });
}

export function step(number: number, change: Partial<StepDocument> = {}): StepDocument {
  return {
    id: stepDocumentId(run, 1, number),
    run,
    attempt: 1,
    step: number,
    window: number,
    outcome: { kind: "applied" },
    metrics: {},
    ledger: { kind: "inline", entries: [] },
    weightVersion: number,
    checkpoint: null,
    wallMs: 1,
    committed: 2000 + number,
    voidedBy: null,
    ...change,
  };
}
