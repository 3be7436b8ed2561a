import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { packTrajectories } from "../../agent-daemon/src/training/packing.ts";
import { parseObjective } from "../../protocol/objective.ts";
import type { Trajectory } from "../../protocol/trajectory.ts";
import { accumulateAs, batchOf, logprobsOf, packings } from "../support/gradientOf.ts";
import { ReferenceEngine } from "../support/referenceEngine.ts";
import type { Tensors } from "../support/referenceModel.ts";
import { forests, sketchTrajectory } from "../support/trajectories.ts";

const tokenMean = { aggregation: "token-mean" };
const objectives = {
  "grpo with KL and entropy": {
    kind: "grpo",
    ...tokenMean,
    kl: { estimator: "k3", coef: 0.1 },
    entropy: { coef: 0.01 },
  },
  "gspo by trajectory": { kind: "gspo", aggregation: "sequence-mean", clipLow: 0.5, clipHigh: 2 },
  "gspo by turn": { kind: "gspo", aggregation: "sequence-mean", unit: "turn", clipLow: 0.5, clipHigh: 2 },
  "entropy target": { kind: "reinforce", ...tokenMean, entropy: { coef: 0.3, target: 1.1 } },
  "topr by trajectory": { kind: "topr", ratioUnit: "trajectory", aggregation: "sequence-sum", lengthNormalizer: 5 },
  corrections: {
    kind: "grpo",
    aggregation: "sequence-mean",
    unit: "turn",
    clipLow: 0.9,
    clipHigh: 9,
    correction: { tokenTruncate: 2, sequenceMask: [0.3, 3], tokenVeto: 0.01 },
  },
  "cross entropy": { kind: "cross_entropy", ...tokenMean },
} as const;

const names = Object.keys(objectives) as (keyof typeof objectives)[];

function distance(a: Tensors, b: Tensors): { largest: number; norm: number } {
  let largest = 0;
  let norm = 0;
  for (const name of Object.keys(a) as (keyof Tensors)[]) {
    largest = Math.max(largest, Math.hypot(...a[name].map((x, i) => x - b[name][i]!)));
    norm += a[name].reduce((sum, x) => sum + x * x, 0);
  }
  return { largest, norm: Math.sqrt(norm) };
}

async function expectEqualGradients(trajectories: Trajectory[], name: keyof typeof objectives, oldIsCurrent: boolean) {
  const config = parseObjective(objectives[name]);
  const old = await logprobsOf(new ReferenceEngine({ seed: 1 }), trajectories);
  const ref = await logprobsOf(new ReferenceEngine({ seed: 2 }), trajectories);
  const near = old.map((column) => column.map((x, i) => x + 0.3 * Math.sin(5 * i)));
  const usesReference = name === "grpo with KL and entropy";
  const batch = batchOf(trajectories, oldIsCurrent && !usesReference ? null : { old: near, ref });
  const results: { way: string; loss: number; gradients: Tensors }[] = [];
  for (const [way, forest] of Object.entries(packings(trajectories, 7))) {
    for (const lastBatchFirst of [false, true]) {
      const engine = new ReferenceEngine({ seed: 1, lastBatchFirst });
      const loss = await accumulateAs(engine, { config }, batch, forest);
      results.push({ way, loss, gradients: engine.gradients });
    }
  }
  const [first] = results;
  for (const { way, loss, gradients } of results) {
    expect(Math.abs(loss - first!.loss), `loss, ${way}`).toBeLessThanOrEqual(1e-6);
    const { largest, norm } = distance(first!.gradients, gradients);
    expect(largest, `gradient, ${way}`).toBeLessThanOrEqual(1e-5 * norm + 1e-12);
  }
}

describe("loss and gradient", () => {
  it("are the same flat, packed, tree-merged and in many micro-batches, for random forests and every scope", async () => {
    await fc.assert(
      fc.asyncProperty(
        forests({ trajectories: 10, tail: 6 }).filter((all) => all.some(({ trainable }) => trainable.includes(1))),
        fc.constantFrom(...names),
        fc.boolean(),
        expectEqualGradients,
      ),
      { numRuns: 60 },
    );
  });

  it("do not change when one trajectory's tokens are spread over three micro-batches", async () => {
    const stem = [3, 4, 5, 6];
    const side = (start: number, token: number) =>
      sketchTrajectory({
        tokens: [...stem.slice(0, start), ...new Array(24 - 2 * start).fill(token)],
        score: token % 2 === 0 ? 1 : -0.5,
      });
    const long = sketchTrajectory({
      tokens: [...stem, ...new Array(8).fill(7)],
      turn: [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2],
      score: 0.7,
    });
    const trajectories = [side(2, 8), side(2, 9), side(4, 8), side(4, 9), long].map((trajectory) => ({
      ...trajectory,
      rollout: new Float64Array(trajectory.tokens.length).fill(-2),
    }));
    const forest = packTrajectories(trajectories, {
      mode: "tree",
      budget: 24,
      replicas: 1,
      cost: { perToken: 1, perPair: 0 },
    });
    const { offsets, batch } = forest.occurrences;
    expect(new Set(batch.slice(offsets[4], offsets[5])).size).toBe(3);
    for (const name of names) {
      await expectEqualGradients(trajectories, name, false);
      await expectEqualGradients(trajectories, name, true);
    }
  });

  it("agree with finite differences through the objective", async () => {
    const trajectories = [
      sketchTrajectory({ tokens: [3, 4, 5, 6, 7], score: 0.8 }),
      sketchTrajectory({ tokens: [3, 4, 9, 6], score: -1.2 }),
    ];
    const config = parseObjective({ kind: "importance_sampling", ...tokenMean, entropy: { coef: 0.3, target: 1.1 } });
    const old = await logprobsOf(new ReferenceEngine({ seed: 4 }), trajectories);
    const batch = batchOf(trajectories, { old, ref: old });
    const forest = packTrajectories(trajectories, {
      mode: "tree",
      budget: 100,
      replicas: 1,
      cost: { perToken: 1, perPair: 0 },
    });
    const engine = new ReferenceEngine({ seed: 1 });
    const loss = () => accumulateAs(engine, { config }, batch, forest);
    await loss();
    const { gradients } = engine;
    await engine.discard();
    for (const name of Object.keys(gradients) as (keyof Tensors)[]) {
      const index = gradients[name].findIndex((g) => Math.abs(g) > 0.01);
      if (index < 0) continue;
      const w = engine.weights[name][index]!;
      const step = 1e-3;
      engine.weights[name][index] = w + step;
      const above = await loss();
      engine.weights[name][index] = w - step;
      const below = await loss();
      engine.weights[name][index] = w;
      expect((above - below) / (2 * step), name).toBeCloseTo(gradients[name][index]!, 3);
    }
  });

  it("of two identical samples with advantages +1 and −1 are exactly 0; with +1 and +1 twice those of one", async () => {
    const twin = (score: number) => sketchTrajectory({ tokens: [3, 4, 5, 6, 7, 8], score });
    const config = parseObjective({
      kind: "reinforce",
      aggregation: "sequence-sum",
      lengthNormalizer: 1,
    });
    const gradient = async (scores: number[], mode: "tree" | "packed", divisor: number) => {
      const trajectories = scores.map(twin);
      const engine = new ReferenceEngine();
      const forest = packTrajectories(trajectories, {
        mode,
        budget: 100,
        replicas: 1,
        cost: { perToken: 1, perPair: 0 },
      });
      await accumulateAs(
        engine,
        { config: { ...config, lengthNormalizer: divisor } },
        batchOf(trajectories, null),
        forest,
      );
      return engine.gradients;
    };
    const opposed = await gradient([1, -1], "tree", 1);
    for (const tensor of Object.values(opposed)) expect(tensor.every((g) => g === 0)).toBe(true);
    const rows = await gradient([1, -1], "packed", 1);
    const one = await gradient([1], "tree", 1);
    expect(distance(opposed, rows).largest).toBeLessThan(1e-12);
    // sequence-sum divides by the number of units: half the normaliser for two of them leaves plain sums.
    const both = await gradient([1, 1], "tree", 0.5);
    const twice = Object.fromEntries(Object.entries(one).map(([name, g]) => [name, g.map((x) => 2 * x)])) as Tensors;
    const { largest, norm } = distance(twice, both);
    expect(largest).toBeLessThanOrEqual(1e-6 * norm);
    expect(norm).toBeGreaterThan(0.01);
  });
});
