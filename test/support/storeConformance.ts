// What every RecordStore must do, whatever keeps its documents. Each store's test file runs this suite against it.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RecordStore } from "../../agent-daemon/src/store/interface.ts";
import { allDocuments } from "../../agent-daemon/src/store/pages.ts";
import { recordTransitions } from "../../agent-daemon/src/store/recordStatus.ts";
import type { RecordStatus } from "../../protocol/record.ts";
import { stepDocumentId } from "../../protocol/step.ts";
import { call, record, row, run, step, task, toolEvent } from "./documents.ts";
import { leaseConformance } from "./leaseConformance.ts";
import { ledgerConformance } from "./ledgerConformance.ts";
import { codeOf, type OpenedStores, type OpenStores } from "./openedStores.ts";

export function storeConformance(name: string, open: OpenStores): void {
  documentConformance(name, open);
  leaseConformance(name, open);
  ledgerConformance(name, open);
}

function documentConformance(name: string, open: OpenStores): void {
  let opened: OpenedStores;
  let store: RecordStore;

  beforeEach(async () => {
    opened = await open();
    ({ store } = opened);
  });
  afterEach(() => opened.dispose());

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
      expect(await codeOf(store.records.insert([record("a"), record("b", { score: Number.NaN })]))).toBe(
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
      expect(await codeOf(store.records.query({ run }, { after: "nonsense" }))).toBe("STORE_QUERY_INVALID");
      expect(await codeOf(store.records.query({ run }, { limit: 0 }))).toBe("STORE_QUERY_INVALID");
      expect(await codeOf(store.records.query({ run }, { order: "doc; DROP TABLE" as "score" }))).toBe(
        "STORE_QUERY_INVALID",
      );
      expect(await codeOf(store.records.query({ run, fields: { "a') OR 1=1 --": 1 } }))).toBe("STORE_QUERY_INVALID");
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
      expect(await codeOf(store.records.insert([record("a", { fields: { other: 1 } })]))).toBe("STORE_FIELD_INVALID");
      expect(await codeOf(store.records.insert([record("a", { fields: { answer: 1.5 } })]))).toBe(
        "STORE_FIELD_INVALID",
      );
      expect(await codeOf(store.tasks.insert([task("t", { payload: { id: 1 } })]))).toBe("STORE_FIELD_INVALID");
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
      expect(await codeOf(store.applyRecipe(run, refused))).toBe("STORE_FIELD_INVALID");
      await store.records.insert([record("b", { fields: { answer: 1.5 } })]);
      expect(await codeOf(store.applyRecipe(run, { ...recipe, indexes: ["nothing"] }))).toBe("STORE_FIELD_INVALID");
    });
  });
}
