import fc from "fast-check";
import { expect, it } from "vitest";
import { createRunFollowers, type Page } from "../../../extension/webviews/runFollowers.ts";
import type { JournalEvent } from "../../../protocol/journal.ts";
import type { RunDelta, RunSnapshot, RunSummary } from "../../../protocol/runView.ts";

const folder = "/runs/a";
const summary = { folder, step: 0 } as RunSummary;
const event = (n: number) => ({ n, at: n, attempt: 1, type: "phase", step: 0, phase: "sampling" }) as JournalEvent;

/** A daemon that keeps the last events only, and serves one follow of the run at a time, as the real one does. */
function daemonOf(deliver: (delta: RunDelta) => void, kept: number) {
  let written = 0;
  let cursor: number | null = null;
  const flush = () => {
    if (cursor === null || cursor >= written) return;
    const events = Array.from({ length: written - cursor }, (_, index) => event(cursor! + 1 + index));
    cursor = written;
    deliver({ kind: "events", folder, cursor, events, summary });
  };
  return {
    write: (count: number) => {
      written += count;
      flush();
    },
    written: () => written,
    following: () => cursor !== null,
    follow: async (_: string, from: number | null) => {
      if (from === null || from < written - kept) {
        cursor = written;
        deliver({ kind: "snapshot", folder, snapshot: { summary, cursor } as RunSnapshot });
      } else {
        cursor = from;
        flush();
      }
    },
    unfollow: async () => {
      cursor = null;
    },
  };
}

/** What a page knows: a snapshot stands for all events up to its cursor. */
function pageOf() {
  const page = {
    cursor: null as number | null,
    faults: [] as string[],
    deliver(delta: RunDelta) {
      if (delta.kind === "snapshot") page.cursor = delta.snapshot.cursor;
      else if (delta.kind === "events") {
        for (const { n } of delta.events) {
          if (page.cursor === null || n !== page.cursor + 1) page.faults.push(`${n} after ${page.cursor}`);
          page.cursor = n;
        }
      }
    },
  };
  return page;
}

it("gives every page each event exactly once, however pages come, go and come back", async () => {
  const action = fc.oneof(
    fc.record({ kind: fc.constant("write" as const), count: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ kind: fc.constant("follow" as const), page: fc.integer({ min: 0, max: 2 }) }),
    fc.record({ kind: fc.constant("leave" as const), page: fc.integer({ min: 0, max: 2 }) }),
    fc.record({ kind: fc.constant("lose" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
      let deliver = (_: RunDelta) => {};
      const daemon = daemonOf((delta) => deliver(delta), 12);
      const followers = createRunFollowers(daemon);
      deliver = followers.onDelta;
      const pages = [pageOf(), pageOf(), pageOf()];
      const following = new Set<number>();
      for (const step of actions) {
        if (step.kind === "write") daemon.write(step.count);
        else if (step.kind === "follow") {
          await followers.follow(pages[step.page] as Page, folder, pages[step.page]!.cursor);
          following.add(step.page);
        } else if (step.kind === "leave") {
          followers.leave(pages[step.page] as Page);
          following.delete(step.page);
        } else {
          followers.onDisconnected();
          await daemon.unfollow();
          following.clear();
        }
        for (const page of pages) expect(page.faults).toEqual([]);
        for (const index of following) expect(pages[index]!.cursor).toBe(daemon.written());
        expect(daemon.following()).toBe(following.size > 0);
      }
    }),
  );
});

it("tells a page of a new status also when there is no new event", async () => {
  const told: RunDelta[] = [];
  const followers = createRunFollowers({ follow: async () => {}, unfollow: async () => {} });
  await followers.follow({ deliver: (delta) => void told.push(delta) }, folder, 4);
  const stopping: RunDelta = { kind: "events", folder, cursor: 4, events: [], summary: { ...summary, step: 7 } };
  followers.onDelta(stopping);
  followers.onDelta({ ...stopping, cursor: 3 });
  expect(told).toEqual([stopping]);
});

it("tells every page that a run is gone, and forgets it", async () => {
  const told: string[] = [];
  const followers = createRunFollowers({ follow: async () => {}, unfollow: async () => {} });
  const page = { deliver: (delta: RunDelta) => void told.push(delta.kind) };
  await followers.follow(page, folder, null);
  const error = { code: "RUN_NOT_FOUND", message: "It is gone.", next: "Refresh." };
  followers.onDelta({ kind: "gone", folder, error });
  followers.onDelta({ kind: "gone", folder, error });
  expect(told).toEqual(["gone"]);
});

it("forgets a page whose follow the daemon refused", async () => {
  const told: string[] = [];
  const followers = createRunFollowers({
    follow: async () => {
      throw new Error("no such run");
    },
    unfollow: async () => {},
  });
  await expect(followers.follow({ deliver: ({ kind }) => void told.push(kind) }, folder, 3)).rejects.toThrow("no such");
  followers.onDelta({ kind: "events", folder, cursor: 4, events: [event(4)], summary });
  expect(told).toEqual([]);
});
