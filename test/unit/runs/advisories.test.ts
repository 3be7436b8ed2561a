// Advisories on planted trouble and on healthy runs: each rule speaks when it should, names numbers, and is silent otherwise.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { knownKeys } from "../../../agent-daemon/src/recipes/configKeys.ts";
import { detectAdvisories } from "../../../agent-daemon/src/runs/advisories/detect.ts";
import { type RunHistory, readHistory, type StepPoint } from "../../../agent-daemon/src/runs/advisories/history.ts";
import { advisorySchema } from "../../../protocol/advisory.ts";
import { type JournalEvent, type JournalEventBody, specialsAsWords } from "../../../protocol/journal.ts";
import { recipeSchema } from "../../../protocol/recipe.ts";
import { healthyMetrics, lastingTroubles, troubledJournal } from "../../support/troubledRun.ts";

function run(length: number, change: (step: number, metrics: Record<string, number>) => void = () => {}): RunHistory {
  const steps: StepPoint[] = Array.from({ length }, (_, i) => {
    const metrics = healthyMetrics(i + 1);
    change(i + 1, metrics);
    return { step: i + 1, metrics };
  });
  return { steps, phase: null, durations: new Map() };
}

const kinds = (history: RunHistory, now = 0) => detectAdvisories(history, now).map(({ kind }) => kind);

describe("advisories", () => {
  it("say nothing about a run that learns", () => {
    for (const length of [0, 1, 2, 5, 6, 10, 40, 200]) expect(kinds(run(length))).toEqual([]);
  });

  it("name a KL spike with its step, what was usual, and that a few tokens made it", () => {
    const [advisory] = detectAdvisories(
      run(30, (step, metrics) => {
        if (step === 29) metrics["kl_k3"] = 37;
      }),
      0,
    );
    expect(advisory).toMatchObject({ kind: "klSpike", severity: "severe", from: 29, to: 29, inForce: true });
    expect(advisory!.sentence).toContain("37");
    expect(advisory!.causes[0]).toContain("few tokens");
    expect(advisory!.links).toContainEqual({ kind: "step", step: 29 });
  });

  it("point from a KL spike to the gradient of the update before", () => {
    const [kl] = detectAdvisories(
      run(30, (step, metrics) => {
        if (step === 20) metrics["grad_norm"] = 300;
        if (step === 21) Object.assign(metrics, { kl_k3: 9, kl_k1: 8 });
      }),
      0,
    ).filter(({ kind }) => kind === "klSpike");
    expect(kl!.causes[0]).toContain("step 20");
    expect(kl!.inForce).toBe(false);
  });

  it.each(lastingTroubles)("see %s after three steps of it, and that it is over", (kind, change) => {
    const from = (first: number, last: number) =>
      run(last === 14 ? 14 : 30, (step, metrics) => {
        if (step >= first && step <= last) change(metrics);
      });
    expect(kinds(from(13, 14))).not.toContain(kind);
    const now = detectAdvisories(from(12, 14), 0).find((advisory) => advisory.kind === kind);
    expect(now).toMatchObject({ from: 12, to: 14, inForce: true });
    expect(now!.sentence).toMatch(/\d/);
    expect(now!.causes.length).toBeGreaterThan(0);
    const later = run(30, (step, metrics) => {
      if (step >= 12 && step <= 14) change(metrics);
    });
    expect(detectAdvisories(later, 0).find((advisory) => advisory.kind === kind)).toMatchObject({ inForce: false });
  });

  it("lead from a gradient of 0 to the groups that make it so, where they do", () => {
    const causesOf = (equal: number) =>
      detectAdvisories(
        run(30, (step, metrics) => {
          if (step > 27) Object.assign(metrics, { grad_norm: 0, zero_variance_groups: equal });
        }),
        0,
      ).find(({ kind }) => kind === "gradientNorm")!.causes;
    expect(causesOf(8)[0]).toContain("equal scores");
    expect(causesOf(2)).toHaveLength(1);
  });

  it("cost little however long a run is, count what they see, and know its first steps", () => {
    const reader = readHistory();
    const trouble = (metrics: Record<string, number>) => Object.assign(metrics, { entropy: 0.003 });
    for (const event of troubledJournal(30_000, [trouble])) reader.read(event);
    const history = reader.history();
    expect(history.steps.length).toBeLessThan(5000);
    expect(history.steps[0]!.step).toBe(1);
    expect(detectAdvisories(history, 0)).toMatchObject([{ kind: "entropyCollapse", from: 29_998, to: 30_000 }]);
  });

  it("tell of steps on end as one, and of those that are not apart", () => {
    const steps = [1, 2, 3, 900, 901].map((step) => ({ step, metrics: { ...healthyMetrics(step), loss: Number.NaN } }));
    const found = detectAdvisories({ steps, phase: null, durations: new Map() }, 0);
    expect(found.map(({ from, to }) => [from, to])).toEqual([
      [900, 901],
      [1, 3],
    ]);
  });

  it("name a metric that is not finite", () => {
    const history = run(3, (step, metrics) => {
      if (step === 2) metrics["entropy"] = Number.NaN;
    });
    expect(detectAdvisories(history, 0)).toMatchObject([{ kind: "nonFiniteMetric", from: 2 }]);
  });

  it("call a phase stalled when it takes far longer than usual, and only then", () => {
    const history: RunHistory = {
      steps: [],
      phase: { phase: "sampling", step: 4, since: 1000 },
      durations: new Map([["sampling", [10_000, 12_000, 11_000]]]),
    };
    expect(kinds(history, 1000 + 80_000)).toEqual([]);
    expect(detectAdvisories(history, 1000 + 100_000)).toMatchObject([{ kind: "stalledPhase", inForce: true }]);
    expect(kinds({ ...history, durations: new Map() }, 1000 + 500_000)).toEqual([]);
    expect(kinds({ ...history, phase: { ...history.phase!, phase: "paused" } }, 1e12)).toEqual([]);
  });

  it("follow the contract, with keys that the recipe has, whatever the numbers are", () => {
    const wild = fc.oneof(fc.double(), fc.constantFrom(0, 1, 8, Number.NaN, Number.POSITIVE_INFINITY));
    const names = Object.keys(healthyMetrics(1));
    const keys = new Set(knownKeys(recipeSchema).all);
    fc.assert(
      fc.property(
        fc.array(fc.array(wild, { minLength: names.length, maxLength: names.length }), { maxLength: 30 }),
        (rows) => {
          const steps = rows.map((row, i) => ({
            step: i + 1,
            metrics: Object.fromEntries(row.map((x, k) => [names[k]!, x])),
          }));
          for (const advisory of detectAdvisories({ steps, phase: null, durations: new Map() }, 0)) {
            const sent = JSON.stringify(advisory, specialsAsWords);
            const received = advisorySchema.parse(JSON.parse(sent));
            expect(JSON.parse(JSON.stringify(received, specialsAsWords))).toEqual(JSON.parse(sent));
            for (const link of advisory.links) if (link.kind === "recipeKey") expect(keys).toContain(link.key);
          }
        },
      ),
    );
  });
});

describe("the history that advisories read", () => {
  const event = (n: number, body: JournalEventBody): JournalEvent => ({ n, at: n * 1000, attempt: 1, ...body });
  const step = (n: number, at: number) =>
    event(n, { type: "step", step: at, weightVersion: at, skipped: null, metrics: { loss: n }, timings: {} });

  it("keeps the attempt that counts of each step, and how long phases took", () => {
    const reader = readHistory();
    reader.read(event(1, { type: "phase", step: 1, phase: "sampling" }));
    reader.read(event(4, { type: "phase", step: 1, phase: "training" }));
    for (const n of [5, 6, 7]) reader.read(step(n, n - 4));
    const started = { run: "r", recipe: "r", model: "m", steps: 9, seed: 0, evaluations: [] };
    reader.read(event(8, { type: "started", ...started, resumed: { step: 1, checkpoint: null, voidedSteps: 2 } }));
    reader.read(step(9, 2));
    const history = reader.history();
    expect(history.steps.map(({ step: at, metrics }) => [at, metrics["loss"]])).toEqual([
      [1, 5],
      [2, 9],
    ]);
    expect(history.durations.get("sampling")).toEqual([3000]);
    expect(history.phase).toBeNull();
  });
});
