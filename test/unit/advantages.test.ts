// Advantages beyond the reference values: exclusion, clipping, leaving the batch, KL as a reward.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { computeAdvantages } from "../../agent-daemon/src/algorithms/advantages.ts";
import { groupAdvantages } from "../../agent-daemon/src/algorithms/groupAdvantages.ts";
import { type AdvantagesInput, parseAdvantages } from "../../protocol/advantages.ts";

const trajectory = (group: string, score: number | null) => ({ group, score, mask: [1, 0, 1] });
const compute = (config: AdvantagesInput, batch: Parameters<typeof computeAdvantages>[1]) =>
  computeAdvantages(parseAdvantages(config), batch);

it("gives exactly 0 for equal scores, whatever their value", () => {
  fc.assert(
    fc.property(fc.double({ min: -1e6, max: 1e6, noNaN: true }), fc.integer({ min: 1, max: 16 }), (score, count) => {
      for (const estimator of ["group_normalized", "group_mean", "leave_one_out", "batch_mean"] as const) {
        const advantages = groupAdvantages(
          estimator,
          Array.from({ length: count }, () => score),
        );
        expect(advantages.every((advantage) => advantage === 0)).toBe(true);
      }
    }),
  );
});

it("excludes ungraded trajectories from statistics and batch, and counts them", () => {
  const result = compute({ estimator: "group_mean" }, [
    trajectory("a", 1),
    trajectory("a", null),
    trajectory("a", 0),
    trajectory("b", null),
  ]);
  expect(result.advantages).toEqual([Float64Array.of(0.5, 0, 0.5), null, Float64Array.of(-0.5, 0, -0.5), null]);
  expect(result.kept).toEqual([0, 2]);
  expect(result.counts).toMatchObject({ trajectories: 4, kept: 2, ungraded: 2, groups: 1, zeroAdvantageGroups: 0 });
});

it("takes batch_mean over all groups and none as the score itself", () => {
  const batch = [trajectory("a", 4), trajectory("b", 0), trajectory("b", 2)];
  const first = (config: AdvantagesInput) => compute(config, batch).advantages.map((column) => column?.[0]);
  expect(first({ estimator: "batch_mean" })).toEqual([2, -2, 0]);
  expect(first({ estimator: "none" })).toEqual([4, 0, 2]);
});

describe("leaving the batch", () => {
  const batch = [1, 1, 3, 0, 0.2, 0.1].map((score, i) => trajectory(i < 2 ? "same" : i < 4 ? "far" : "near", score));

  it("drops trajectories whose every advantage is 0 and counts their group", () => {
    const result = compute({ estimator: "group_mean", dropZero: true }, batch);
    expect(result.kept).toEqual([2, 3, 4, 5]);
    expect(result.counts).toMatchObject({ dropped: 2, groups: 3, zeroAdvantageGroups: 1 });
    expect(result.zeroAdvantageGroupFraction).toBeCloseTo(1 / 3, 12);
  });

  it("drops trajectories whose every advantage is below minimal, and keeps them without either knob", () => {
    expect(compute({ estimator: "group_mean", minimal: 0.5 }, batch).kept).toEqual([2, 3]);
    expect(compute({ estimator: "group_mean" }, batch).kept).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("clips before it looks", () => {
    const result = compute({ estimator: "group_mean", clip: 0.4, minimal: 0.4 }, batch);
    expect(result.advantages[2]).toEqual(Float64Array.of(0.4, 0, 0.4));
    expect(result.advantages[3]).toEqual(Float64Array.of(-0.4, 0, -0.4));
    expect(result.kept).toEqual([2, 3]);
  });
});

describe("KL as a reward", () => {
  const kl = { coef: 0.5, base: "ref", placement: "reward" } as const;
  const withKl = { mask: [1, 0, 1], old: [-1, Number.NaN, -90], ref: [-2, Number.NaN, -1] };

  it("joins a trajectory's score before the group's statistics, clamped like every log-ratio", () => {
    const quiet = { mask: [1], old: [-1], ref: [-1] };
    const { advantages } = computeAdvantages(
      parseAdvantages({ estimator: "group_mean" }),
      [
        { group: "a", score: 1, ...withKl },
        { group: "a", score: 0, ...quiet },
      ],
      kl,
    );
    // −0.5·(1) and −0.5·(−20) join the score 1: 10.5 against 0.
    expect(advantages).toEqual([Float64Array.of(5.25, 0, 5.25), Float64Array.of(-5.25)]);
  });

  it("enters δ of gae where it stands", () => {
    const { advantages, returns } = computeAdvantages(
      parseAdvantages({ estimator: "gae", gamma: 1, lambda: 1 }),
      [{ group: "a", score: 1, values: [0, Number.NaN, 0], tokenRewards: [0.25, Number.NaN, 0], ...withKl }],
      kl,
    );
    expect(advantages).toEqual([Float64Array.of(-0.5 + 0.25 + 10 + 1, 0, 11)]);
    expect(returns).toEqual(advantages);
  });

  it("enters nowhere when the KL is a loss, and asks for its columns when it is not", () => {
    const config = parseAdvantages({ estimator: "group_mean" });
    const batch = [trajectory("a", 1), trajectory("a", 0)];
    const asLoss = { estimator: "k3", coef: 0.5, base: "ref", placement: "loss" } as const;
    expect(computeAdvantages(config, batch, asLoss)).toEqual(computeAdvantages(config, batch));
    expect(() => computeAdvantages(config, batch, kl)).toThrow(
      expect.objectContaining({ code: "ADVANTAGES_COLUMN_MISSING", at: { trajectory: 0, column: "old" } }),
    );
  });
});
