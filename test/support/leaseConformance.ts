// Claims, as every RecordStore must keep them: one owner of a record at a time, whatever the order of events.
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RecordStore } from "../../agent-daemon/src/store/interface.ts";
import type { LeaseDocument } from "../../protocol/record.ts";
import { record, run } from "./documents.ts";
import { codeOf, type OpenedStores, type OpenStores } from "./openedStores.ts";

export function leaseConformance(name: string, open: OpenStores): void {
  let opened: OpenedStores;
  let store: RecordStore;

  beforeEach(async () => {
    opened = await open();
    ({ store } = opened);
  });
  afterEach(() => opened.dispose());

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
      expect(await codeOf(store.leases.claim([{ ...request, record: "r", milliseconds: 10 }]))).toBe(
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
}
