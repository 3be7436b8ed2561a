// Group advantages, GAE, whitening and value losses against values computed independently.
import { describe, expect, it } from "vitest";
import { computeAdvantages } from "../../agent-daemon/src/algorithms/advantages.ts";
import { evaluateObjective } from "../../agent-daemon/src/algorithms/evaluateObjective.ts";
import { groupAdvantages } from "../../agent-daemon/src/algorithms/groupAdvantages.ts";
import { parseAdvantages } from "../../protocol/advantages.ts";
import { parseObjective } from "../../protocol/objective.ts";
import { agrees, disagreements } from "../support/agreement.ts";
import { poisoned, readOracle } from "../support/oracles.ts";

type Estimator = "group_normalized" | "group_mean" | "leave_one_out" | "batch_mean";

interface AdvantageOracle {
  groups: ({ scores: (number | null)[] } & Partial<Record<Estimator, (number | null)[]>>)[];
  gae: {
    gamma: number;
    lambda: number;
    valueClip: number;
    valueLoss: number;
    sequences: {
      score: number;
      tokenRewards: number[];
      values: number[];
      mask: number[];
      advantages: number[];
      returns: number[];
      whitened: number[];
      newValues: number[];
      dLossDValue: number[];
    }[];
  }[];
}

const oracle = readOracle<AdvantageOracle>("objectives", "advantages.json");
const estimators = ["group_normalized", "group_mean", "leave_one_out", "batch_mean"] as const;

describe.each(oracle.groups)("a group with scores $scores", (group) => {
  it.each(estimators.filter((estimator) => group[estimator] !== undefined))("has the reference's %s", (estimator) => {
    expect(disagreements(groupAdvantages(estimator, group.scores), group[estimator])).toEqual([]);
    const batch = group.scores.map((score) => ({ group: "g", score, mask: [0, 1] }));
    const { advantages } = computeAdvantages(parseAdvantages({ estimator }), batch);
    expect(
      disagreements(
        advantages.map((column) => column?.[1] ?? null),
        group[estimator],
      ),
    ).toEqual([]);
  });
});

describe.each(oracle.gae)("gae with gamma $gamma and lambda $lambda", (batch) => {
  const sequences = batch.sequences.map(poisoned);
  const compute = (whiten: boolean) =>
    computeAdvantages(
      parseAdvantages({ estimator: "gae", gamma: batch.gamma, lambda: batch.lambda, whiten }),
      sequences.map((sequence) => ({ ...sequence, group: "g" })),
    );

  it("skips masked gaps and gives advantages and returns of the trainable tokens", () => {
    const result = compute(false);
    for (const key of ["advantages", "returns"] as const) {
      const expected = batch.sequences.map((sequence) => sequence[key]);
      expect(disagreements(result[key], expected)).toEqual([]);
    }
  });

  it("whitens over all trainable tokens of the batch and leaves returns as they were", () => {
    const result = compute(true);
    const expected = batch.sequences.map((sequence) => sequence.whitened);
    expect(disagreements(result.advantages, expected)).toEqual([]);
    expect(
      disagreements(
        result.returns,
        batch.sequences.map(({ returns }) => returns),
      ),
    ).toEqual([]);
  });

  it("has the clipped value loss and its derivative", () => {
    const config = parseObjective({
      kind: "ppo",
      aggregation: "token-mean",
      value: { coef: 1, clip: batch.valueClip },
    });
    const result = evaluateObjective(
      config,
      sequences.map(({ mask, values, returns, newValues }) => {
        const zeros = mask.map(() => 0);
        return { mask, logp: zeros, old: zeros, advantage: zeros, oldValue: values, returns, newValue: newValues };
      }),
    );
    expect(agrees(result.valueLoss, batch.valueLoss)).toBe(true);
    expect(agrees(result.loss, batch.valueLoss)).toBe(true);
    const expected = batch.sequences.map((sequence) => sequence.dLossDValue);
    expect(disagreements(result.dLossDValue, expected)).toEqual([]);
  });
});
