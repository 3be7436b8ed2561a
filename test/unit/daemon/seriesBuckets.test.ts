import fc from "fast-check";
import { expect, test } from "vitest";
import { MetricTable } from "../../../agent-daemon/src/daemon/runs/metricTable.ts";
import { RunFold } from "../../../agent-daemon/src/daemon/runs/runFold.ts";
import { bucketWidth, seriesContent } from "../../../agent-daemon/src/daemon/runs/seriesBuckets.ts";
import { stepRows } from "../../../agent-daemon/src/daemon/runs/stepRows.ts";
import type { JournalEventOf } from "../../../protocol/journal.ts";

const event = (n: number, step: number, metrics: Record<string, number>, attempt = 1): JournalEventOf<"step"> => ({
  n,
  at: n,
  attempt,
  type: "step",
  step,
  weightVersion: step,
  skipped: null,
  metrics,
  timings: {},
});

const all = { from: null, to: null, after: null };
const value = fc.oneof(
  fc.double({ min: -100, max: 100, noNaN: true }),
  fc.constantFrom(Number.NaN, Infinity, -Infinity),
);

test("P35: buckets hold least, greatest and last finite value and count the others, as a slow look over all values does", () => {
  fc.assert(
    fc.property(
      fc.array(fc.option(value), { minLength: 1, maxLength: 300 }),
      fc.integer({ min: 1, max: 64 }),
      (values, buckets) => {
        const table = new MetricTable();
        for (const [index, each] of values.entries())
          table.add(event(index + 1, index + 1, each === null ? {} : { loss: each }));
        const { arrays, extra } = seriesContent(table, new RunFold(), { ...all, names: ["loss", "absent"], buckets });
        const width = extra["width"] as number;
        expect(Math.log2(width) % 1).toBe(0);
        const expected = new Map<number, number[]>();
        for (const [index, each] of values.entries()) {
          if (each === null) continue;
          const first = Math.floor((index + 1) / width) * width;
          expected.set(first, [...(expected.get(first) ?? []), each]);
        }
        expect(expected.size).toBeLessThanOrEqual(buckets);
        if (expected.size === 0) {
          expect(arrays.size).toBe(0);
          return;
        }
        const column = (name: string) => [...(arrays.get(`0.${name}`) as Float64Array)];
        const finite = [...expected.values()].map((own) => own.filter(Number.isFinite));
        expect(column("step")).toEqual([...expected.keys()]);
        expect(column("min")).toEqual(finite.map((own) => (own.length === 0 ? Number.NaN : Math.min(...own))));
        expect(column("max")).toEqual(finite.map((own) => (own.length === 0 ? Number.NaN : Math.max(...own))));
        expect(column("last")).toEqual(finite.map((own) => own.at(-1) ?? Number.NaN));
        expect(column("bad")).toEqual(
          [...expected.values()].map((own) => own.length - own.filter(Number.isFinite).length),
        );
      },
    ),
  );
});

test("what came after an event, put over what was there before, is what one look at everything gives", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 200 }), fc.integer({ min: 1, max: 199 }), (count, cut) => {
      const at = Math.min(cut, count - 1);
      const table = new MetricTable();
      const look = (after: number | null) =>
        seriesContent(table, new RunFold(), { from: 0, to: 256, after, names: ["loss"], buckets: 16 });
      for (let n = 1; n <= at; n++) table.add(event(n, n, { loss: Math.sin(n) }));
      const held = new Map<number, number>();
      const put = (content: ReturnType<typeof look>) => {
        const steps = content.arrays.get("0.step") ?? [];
        for (const [index, step] of [...steps].entries()) held.set(step, content.arrays.get("0.max")![index]!);
      };
      put(look(null));
      for (let n = at + 1; n <= count; n++) table.add(event(n, n, { loss: Math.sin(n) }));
      put(look(at));
      const whole = look(null);
      expect([...held.values()]).toEqual([...(whole.arrays.get("0.max") as Float64Array)]);
      expect(look(count).arrays.size).toBe(0);
    }),
  );
});

test("P36: attempts are series of their own, and what a resume made void is marked", () => {
  const table = new MetricTable();
  const fold = new RunFold();
  const begin = (n: number, attempt: number, from: number | null) =>
    fold.read({
      n,
      at: n,
      attempt,
      type: "started",
      run: "r",
      recipe: "",
      model: "",
      steps: 20,
      seed: 1,
      evaluations: [],
      resumed: from === null ? null : { step: from, checkpoint: null, voidedSteps: 5 },
    });
  begin(1, 1, null);
  let n = 1;
  const add = (step: number, attempt: number) => {
    n += 1;
    const written = event(n, step, { loss: step + 100 * attempt }, attempt);
    table.add(written);
    fold.read(written);
  };
  for (let step = 1; step <= 15; step++) add(step, 1);
  begin(++n, 2, 10);
  for (let step = 11; step <= 20; step++) add(step, 2);
  const { extra, arrays } = seriesContent(table, fold, { ...all, names: ["loss"], buckets: 100 });
  expect(extra["series"]).toEqual([
    { name: "loss", attempt: 1, voidedAfter: 10 },
    { name: "loss", attempt: 2, voidedAfter: null },
  ]);
  expect([...arrays.get("1.step")!]).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
  const { rows, more } = stepRows(table, fold, 10, 3);
  expect(rows.map(({ step, attempt, void: isVoid }) => [step, attempt, isVoid])).toEqual([
    [10, 1, false],
    [11, 1, true],
    [11, 2, false],
  ]);
  expect(more).toBe(true);
  expect(stepRows(table, fold, 1, 1000).rows).toHaveLength(25);
});

test("P35: rows have words for what JSON lacks, and nothing for a missing key", () => {
  const table = new MetricTable();
  const values = [1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, null, 2];
  for (const [index, each] of values.entries())
    table.add(event(index + 1, index + 1, each === null ? { entropy: 1 } : { entropy: 1, loss: each }));
  const { rows } = stepRows(table, new RunFold(), 0, 100);
  expect(JSON.parse(JSON.stringify(rows)).map((row: { metrics: object }) => row.metrics)).toEqual(
    [1, "NaN", "Infinity", "-Infinity", undefined, 2].map((loss) => ({
      entropy: 1,
      ...(loss === undefined ? {} : { loss }),
    })),
  );
});

test("a million points in a thousand series take little time and memory", () => {
  const table = new MetricTable();
  const metrics: Record<string, number> = {};
  for (let series = 0; series < 1000; series++) metrics[`m${series}`] = series;
  for (let step = 1; step <= 1000; step++) table.add(event(step, step, metrics));
  expect(table.points).toBe(1_000_000);
  expect(table.names()).toHaveLength(1000);
  const began = performance.now();
  const names = Array.from({ length: 20 }, (_, index) => `m${index}`);
  const { arrays } = seriesContent(table, new RunFold(), { ...all, names, buckets: 500 });
  expect(performance.now() - began).toBeLessThan(500);
  expect(arrays.size).toBe(20 * 5);
  expect(bucketWidth(1, 1_000_000, 2000)).toBe(512);
});
