// A recipe's own objective goes through the same aggregation, corrections, KL and checks as the built-in ones.
import { expect, it } from "vitest";
import { evaluateObjective } from "../../agent-daemon/src/algorithms/evaluateObjective.ts";
import { builtInObjectives } from "../../agent-daemon/src/algorithms/objectives.ts";
import { parseObjective } from "../../protocol/objective.ts";
import type { ObjectiveDefinition } from "../../protocol/objectiveDefinition.ts";

const block = {
  aggregation: "sequence-mean",
  kl: { estimator: "k3", coef: 0.1 },
  correction: { tokenMask: [0.5, 2], sequenceMask: [0.7, 1.4] },
};
const columns = {
  mask: [1, 0, 1, 1],
  logp: [-1, -2, -0.5, -3],
  old: [-1.2, -2, -0.4, -2.9],
  rollout: [-1.1, -2, -0.6, -4],
  ref: [-1.5, -2, -0.5, -2],
  advantage: [1, 1, -1, 0.5],
  entropy: [1, Number.NaN, 0.5, 2],
};

it("gives what the built-in kind gives when it is the same function", () => {
  const custom = evaluateObjective(parseObjective({ kind: "custom", ...block }), [columns], {
    definition: builtInObjectives.grpo,
  });
  expect(custom).toEqual(evaluateObjective(parseObjective({ kind: "grpo", ...block }), [columns]));
});

it("is handed its options, and its derivative by entropy reaches the batch", () => {
  const definition: ObjectiveDefinition = {
    name: "entropy-weighted",
    scope: "token",
    reads: ["advantage", "entropy"],
    token: ({ logp, entropy, advantage }, { options }) => {
      const weight = Number(options?.["weight"]);
      return { loss: -advantage * logp - weight * entropy, dLogp: -advantage, dEntropy: -weight };
    },
  };
  const config = parseObjective({ kind: "custom", aggregation: "token-mean", options: { weight: 0.3 } });
  const result = evaluateObjective(config, [columns], { definition });
  expect(result.loss).toBeCloseTo((1 - 0.3 + (-0.5 - 0.15) + (1.5 - 0.6)) / 3, 12);
  expect([...result.dLossDEntropy[0]!].map((x) => x.toFixed(3))).toEqual(["-0.100", "0.000", "-0.100", "-0.100"]);
});

it("gets an error instead of NaN for a column that it reads without saying so", () => {
  const definition: ObjectiveDefinition = {
    name: "forgetful",
    scope: "token",
    reads: [],
    token: ({ logp, advantage }) => ({ loss: -advantage * logp, dLogp: -advantage }),
  };
  const { advantage: _advantage, ...without } = columns;
  const config = parseObjective({ kind: "custom", aggregation: "token-mean" });
  expect(() => evaluateObjective(config, [without], { definition })).toThrow(
    expect.objectContaining({ code: "ALGORITHM_NON_FINITE", message: expect.stringContaining("forgetful") }),
  );
});

it("must come from the recipe when the kind is custom", () => {
  const config = parseObjective({ kind: "custom", aggregation: "token-mean" });
  expect(() => evaluateObjective(config, [columns])).toThrow(
    expect.objectContaining({ code: "OBJECTIVE_DEFINITION_MISSING" }),
  );
});
