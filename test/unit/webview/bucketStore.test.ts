// Buckets as the dashboard holds them are those that the daemon would give, however they came: asked for, grown or merged.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MetricTable } from "../../../agent-daemon/src/daemon/runs/metricTable.ts";
import { RunFold } from "../../../agent-daemon/src/daemon/runs/runFold.ts";
import { seriesContent } from "../../../agent-daemon/src/daemon/runs/seriesBuckets.ts";
import type { JournalEvent, JournalEventOf } from "../../../protocol/journal.ts";
import {
  BucketStore,
  chunkBuckets,
  type SeriesRequest,
  type Window,
  windowOf,
} from "../../../webview/dashboard/bucketStore.ts";

/** A daemon and a page that follows it. */
function followed() {
  const fold = new RunFold();
  const table = new MetricTable();
  const asked: SeriesRequest[] = [];
  const events: JournalEvent[] = [];
  const store = new BucketStore(
    (request) => {
      asked.push(request);
      return Promise.resolve({ id: 0, ...seriesContent(table, fold, request) });
    },
    () => {},
  );
  const step = (number: number, value: number, attempt = 1): JournalEventOf<"step"> => {
    const event = {
      n: events.length + 1,
      at: 0,
      attempt,
      type: "step",
      step: number,
      weightVersion: number,
      skipped: null,
      metrics: { loss: value },
      timings: {},
    } as const;
    events.push(event);
    fold.read(event);
    table.add(event);
    return event;
  };
  const truth = (window: Window) => {
    const request = {
      names: ["loss"],
      from: window.firstChunk * window.width * chunkBuckets,
      to: (window.lastChunk + 1) * window.width * chunkBuckets - 1,
      buckets: (window.lastChunk - window.firstChunk + 1) * chunkBuckets,
      after: null,
    };
    const { arrays, extra } = seriesContent(table, fold, request);
    const list = extra["series"] as { attempt: number }[];
    return new Map(
      list.map(({ attempt }, k) => [
        attempt,
        Object.fromEntries(
          ["step", "min", "max", "last", "bad"].map((part) => [part, [...arrays.get(`${k}.${part}`)!]]),
        ),
      ]),
    );
  };
  return { store, step, truth, asked, fold };
}

const whole = (to: number): Window => windowOf({ from: 1, to }, { from: 1, to }, 4 * chunkBuckets);

describe("the bucket store", () => {
  it("asks once and grows by events to what the daemon would answer", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.double(), fc.constant(Number.NaN)), { minLength: 2, maxLength: 1500 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (values, share) => {
          const { store, step, truth, asked, fold } = followed();
          const known = Math.max(1, Math.floor(values.length * share));
          const window = whole(values.length);
          for (const [index, value] of values.slice(0, known).entries()) step(index + 1, value);
          store.begin(fold.cursor);
          await store.want(["loss"], window, known);
          const once = asked.length;
          const later = values.slice(known).map((value, index) => step(known + index + 1, value));
          for (const event of later) store.addSteps([event], event.n);
          await store.want(["loss"], window, values.length);
          expect(asked.length).toBe(once);
          expect(store.read("loss", window)).toEqual(truth(window));
        },
      ),
      { numRuns: 40 },
    );
  });

  it("makes wider buckets of those it has when a run outgrows them", async () => {
    const { store, step, truth, asked, fold } = followed();
    for (let at = 1; at <= 500; at++) step(at, Math.sin(at));
    store.begin(fold.cursor);
    await store.want(["loss"], whole(500), 500);
    const once = asked.length;
    const later = Array.from({ length: 20 }, (_, index) => step(501 + index, index));
    store.addSteps(later.slice(0, 11), later[10]!.n);
    store.addSteps(later.slice(11), later.at(-1)!.n);
    const wide = whole(520);
    expect(wide.width).toBe(2);
    await store.want(["loss"], wide, 520);
    // Steps 512 and on are a chunk of their own, which was not there; the 511 before are not read again.
    expect(asked.slice(once).map(({ from }) => from)).toEqual([512]);
    expect(store.read("loss", wide)).toEqual(truth(wide));
  });

  it("asks only for what is newer after a break, and holds both attempts of a resumed run", async () => {
    const { store, step, truth, asked, fold } = followed();
    for (let at = 1; at <= 15; at++) step(at, at);
    store.begin(fold.cursor);
    const window = whole(20);
    await store.want(["loss"], window, 15);
    for (let at = 11; at <= 20; at++) step(at, -at, 2);
    store.begin(fold.cursor);
    await store.want(["loss"], window, 20);
    expect(asked.at(-1)!.after).toBe(15);
    expect(store.read("loss", window)).toEqual(truth(window));
    expect([...store.read("loss", window).keys()]).toEqual([1, 2]);
  });

  it("brings an answer up to date that was made before events that came first", async () => {
    const { store, step, truth, fold } = followed();
    for (let at = 1; at <= 5; at++) step(at, at);
    store.begin(fold.cursor);
    const window = whole(10);
    const asking = store.want(["loss"], window, 5);
    const late = step(6, 6);
    store.addSteps([late], late.n);
    await asking;
    expect(store.read("loss", window)).toEqual(truth(window));
  });
});
