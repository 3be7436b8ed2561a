// Degenerate input: nothing becomes NaN silently, and a number that is not finite names its record, call and token.
import { describe, expect, it } from "vitest";
import { computeAdvantages } from "../../agent-daemon/src/algorithms/advantages.ts";
import { evaluateObjective } from "../../agent-daemon/src/algorithms/evaluateObjective.ts";
import { mismatchReport } from "../../agent-daemon/src/algorithms/mismatch.ts";
import { parseAdvantages } from "../../protocol/advantages.ts";
import { parseObjective } from "../../protocol/objective.ts";

const locate = (position: number) => ({ record: "rec-7", call: `call-${position >> 1}`, token: position & 1 });
const grpo = parseObjective({ kind: "grpo", aggregation: "token-mean" });
const batch = { mask: [1, 1, 1, 1], logp: [-1, -1, -1, -1], old: [-1, -1, -1, -1], advantage: [1, 1, 1, 1], locate };
const named = (call: string, token: number) =>
  expect.objectContaining({ code: "ALGORITHM_NON_FINITE", at: { record: "rec-7", call, token } });

describe.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
  "%d from an engine or a reward",
  (bad) => {
    const at3 = [-1, -1, -1, bad];

    it("as a log-probability names record, call and token", () => {
      expect(() => evaluateObjective(grpo, [{ ...batch, logp: at3 }])).toThrow(named("call-1", 1));
      expect(() => evaluateObjective(grpo, [{ ...batch, old: at3 }])).toThrow(named("call-1", 1));
      expect(() => evaluateObjective(grpo, [{ ...batch, advantage: at3 }])).toThrow(named("call-1", 1));
    });

    it("as an entropy that is read names record, call and token", () => {
      const config = parseObjective({ kind: "grpo", aggregation: "token-mean", entropy: { coef: 0.1, target: 1 } });
      expect(() => evaluateObjective(config, [{ ...batch, entropy: at3 }])).toThrow(named("call-1", 1));
    });

    it("as a score names the record and its last trainable token", () => {
      const config = parseAdvantages({ estimator: "group_mean" });
      const trajectory = { group: "g", score: bad, mask: [1, 1, 1, 0], locate };
      expect(() => computeAdvantages(config, [trajectory])).toThrow(named("call-1", 0));
    });

    it("as a value or token reward names record, call and token", () => {
      const config = parseAdvantages({ estimator: "gae", gamma: 1, lambda: 1 });
      const trajectory = { group: "g", score: 0, mask: [1, 1, 1, 1], values: [0, 0, 0, 0], locate };
      expect(() => computeAdvantages(config, [{ ...trajectory, values: at3 }])).toThrow(named("call-1", 1));
      expect(() => computeAdvantages(config, [{ ...trajectory, tokenRewards: at3 }])).toThrow(named("call-1", 1));
    });

    it("in the mismatch report names record, call and token", () => {
      expect(() => mismatchReport([{ mask: [1, 1, 1, 1], trainer: at3, rollout: [-1, -1, -1, -1], locate }])).toThrow(
        named("call-1", 1),
      );
    });

    it("on a masked token, or in a column that nothing reads, matters to nothing", () => {
      const clean = evaluateObjective(grpo, [batch]);
      const unread = evaluateObjective(grpo, [{ ...batch, ref: at3, entropy: at3 }]);
      expect(unread.loss).toBe(clean.loss);
      expect(unread.metrics.klToRef).toBeNull();
      expect(unread.metrics.entropy).toBeNull();
      const masked = evaluateObjective(grpo, [
        { ...batch, mask: [1, 1, 1, 0], logp: at3, old: at3, advantage: [1, 1, 1, bad] },
      ]);
      expect(masked.loss).toBe(clean.loss);
    });
  },
);

it("names trajectory, turn and position where the caller does not say where a token is from", () => {
  const { locate: _locate, ...plain } = batch;
  expect(() => evaluateObjective(grpo, [{ ...plain, turn: [0, 0, 1, 1], logp: [-1, -1, Number.NaN, -1] }])).toThrow(
    expect.objectContaining({ at: { record: "trajectory 0", call: "turn 1", token: 2 } }),
  );
});

describe("a batch without a trainable token", () => {
  const everything = parseObjective({
    kind: "gspo",
    aggregation: "sequence-mean",
    kl: { estimator: "k3", coef: 0.1 },
    entropy: { coef: 0.1, target: 0.5 },
    value: { coef: 1, clip: 0.2 },
    correction: { sequenceMask: [0.5, 2], freshness: { decay: 1, capRatio: 1 } },
  });

  it.each([
    ["no trajectory", []],
    ["an empty response", [{ mask: [], logp: [] }]],
    ["masked responses", [{ mask: [0, 0], logp: [Number.NaN, Number.NaN] }]],
  ])("of %s has loss 0, gradient 0 and says why it is skipped", (_, sequences) => {
    const result = evaluateObjective(everything, sequences);
    expect(result).toMatchObject({ loss: 0, policyLoss: 0, klLoss: 0, entropyTerm: 0, valueLoss: 0 });
    expect(result.skipReason).toContain("skipped");
    expect(result.dLossDLogp.every((column) => column.every((x) => x === 0))).toBe(true);
    expect(result.metrics).toMatchObject({ trainableTokens: 0, ratio: null, clipFraction: null, correction: null });
  });

  it("has an empty mismatch report and no advantages that are NaN", () => {
    expect(mismatchReport([{ mask: [0], trainer: [Number.NaN], rollout: [Number.NaN] }])).toMatchObject({
      tokens: 0,
      k3: null,
      worst: [],
    });
    const config = parseAdvantages({ estimator: "gae", gamma: 1, lambda: 1, whiten: true });
    const { advantages } = computeAdvantages(config, [{ group: "g", score: 1, mask: [0], values: [Number.NaN] }]);
    expect(advantages).toEqual([Float64Array.of(0)]);
  });
});

it("says which column is missing, too short, or no mask", () => {
  const { advantage: _advantage, ...missing } = batch;
  expect(() => evaluateObjective(grpo, [missing])).toThrow(
    expect.objectContaining({ code: "OBJECTIVE_COLUMN_MISSING", at: { trajectory: 0, column: "advantage" } }),
  );
  const invalid = expect.objectContaining({ code: "OBJECTIVE_COLUMN_INVALID" });
  expect(() => evaluateObjective(grpo, [{ ...batch, old: [-1] }])).toThrow(invalid);
  expect(() => evaluateObjective(grpo, [{ ...batch, logp: [-1] }])).toThrow(invalid);
  expect(() => evaluateObjective(grpo, [{ ...batch, mask: [1, 1, 2, 1] }])).toThrow(invalid);
});
