// The objective and advantages blocks: defaults, required keys, refusals, and what check says about them.
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { checkObjective } from "../../agent-daemon/src/algorithms/checkObjective.ts";
import {
  advantageColumnsRead,
  columnsRead,
  objectiveScope,
  readKnobs,
} from "../../agent-daemon/src/algorithms/objectiveReads.ts";
import { advantagesSchema, parseAdvantages } from "../../protocol/advantages.ts";
import { objectiveSchema, parseObjective } from "../../protocol/objective.ts";

const coded = (code: string, key: string) => expect.objectContaining({ code, at: { key } });

describe("the objective block", () => {
  it("has the defaults of the definitions and no others", () => {
    expect(parseObjective({ kind: "grpo", aggregation: "token-mean", kl: { estimator: "k3", coef: 0.04 } })).toEqual({
      kind: "grpo",
      clipLow: 0.2,
      clipHigh: 0.28,
      ratioBase: "old",
      ratioUnit: "token",
      aggregation: "token-mean",
      unit: "trajectory",
      kl: { estimator: "k3", coef: 0.04, base: "ref", placement: "loss" },
    });
  });

  it.each([
    [{ kind: "grpo" }, "objective.aggregation"],
    [{ aggregation: "token-mean" }, "objective.kind"],
    [{ kind: "tis", aggregation: "token-mean" }, "objective.cap"],
    [{ kind: "grpo2", aggregation: "token-mean" }, "objective.softClip"],
    [{ kind: "grpo", aggregation: "sequence-sum" }, "objective.lengthNormalizer"],
    [{ kind: "grpo", aggregation: "token-mean", kl: { estimator: "k1" } }, "objective.kl.coef"],
    [{ kind: "grpo", aggregation: "token-mean", kl: { coef: 1 } }, "objective.kl.estimator"],
    [{ kind: "grpo", aggregation: "token-mean", entropy: {} }, "objective.entropy.coef"],
  ])("names the key that %j lacks", (block, key) => {
    expect(() => parseObjective(block)).toThrow(coded("OBJECTIVE_KEY_MISSING", key));
  });

  it.each([
    [{ kind: "grpo", aggregation: "token-mean", clipLo: 0.1 }, "objective.clipLo"],
    [{ kind: "grpo", aggregation: "token-mean", clipLow: -0.1 }, "objective.clipLow"],
    [{ kind: "grpo", aggregation: "token-mean", dualClip: 1 }, "objective.dualClip"],
    [{ kind: "grpo", aggregation: "token-mean", correction: { tokenMask: [2, 1] } }, "objective.correction.tokenMask"],
    [{ kind: "grop", aggregation: "token-mean" }, "objective.kind"],
  ])("names the key that %j has wrong", (block, key) => {
    expect(() => parseObjective(block)).toThrow(coded("OBJECTIVE_INVALID", key));
  });

  it("refuses tokenTruncate with ratioBase rollout", () => {
    const block = { kind: "grpo", aggregation: "token-mean", ratioBase: "rollout", correction: { tokenTruncate: 2 } };
    expect(() => parseObjective(block)).toThrow(coded("OBJECTIVE_REFUSED", "objective.correction.tokenTruncate"));
  });

  it("needs no estimator for a KL that is a reward", () => {
    const block = { kind: "grpo", aggregation: "token-mean", kl: { coef: 0.1, placement: "reward" } };
    expect(parseObjective(block).kl?.placement).toBe("reward");
  });
});

it("describes every key for the editor", () => {
  for (const schema of [objectiveSchema, advantagesSchema]) {
    const json = z.toJSONSchema(schema, { io: "input" });
    expect(json.additionalProperties).toBe(false);
    for (const property of Object.values(json.properties ?? {})) {
      expect(property).toMatchObject({ description: expect.any(String) });
    }
  }
});

it("wants gamma and lambda for gae, and an estimator", () => {
  expect(() => parseAdvantages({})).toThrow(coded("ADVANTAGES_KEY_MISSING", "advantages.estimator"));
  expect(() => parseAdvantages({ estimator: "gae", lambda: 1 })).toThrow(
    coded("ADVANTAGES_KEY_MISSING", "advantages.gamma"),
  );
  expect(() => parseAdvantages({ estimator: "group_mean", clips: 1 })).toThrow(
    coded("ADVANTAGES_INVALID", "advantages.clips"),
  );
});

describe("what a configuration reads", () => {
  const parse = (block: object) => parseObjective({ aggregation: "token-mean", ...block });

  it.each([
    [{ kind: "grpo" }, "token", "token"],
    [{ kind: "gspo" }, "unit", "token"],
    [{ kind: "gspo", ratioBase: "rollout" }, "unit", "unit"],
    [{ kind: "topr", ratioUnit: "trajectory", ratioBase: "rollout" }, "unit", "unit"],
    [{ kind: "topr" }, "token", "token"],
    [{ kind: "grpo", correction: { tokenVeto: 0.1 } }, "token", "unit"],
    [{ kind: "gspo", entropy: { coef: 0.1, target: 1 } }, "batch", "batch"],
    [{ kind: "grpo", entropy: { coef: 0.1 } }, "token", "token"],
  ])("has the scope of %j: %s, and %s when old is current", (block, given, current) => {
    expect(objectiveScope(parse(block))).toBe(given);
    expect(objectiveScope(parse(block), { oldIsCurrent: true })).toBe(current);
  });

  it("lists the columns that must be there", () => {
    expect([...columnsRead(parse({ kind: "cross_entropy" }))]).toEqual([]);
    expect([...columnsRead(parse({ kind: "grpo" }))]).toEqual(["advantage", "old"]);
    expect([...columnsRead(parse({ kind: "grpo" }), { oldIsCurrent: true })]).toEqual(["advantage"]);
    expect(columnsRead(parse({ kind: "grpo", kl: { estimator: "k3", coef: 0 } })).has("ref")).toBe(true);
    const reward = parse({ kind: "grpo", kl: { coef: 1, placement: "reward" } });
    expect(columnsRead(reward).has("ref")).toBe(false);
    expect([...advantageColumnsRead(reward, parseAdvantages({ estimator: "group_mean" }))]).toEqual(["old", "ref"]);
  });

  it("reads clip bounds for a freshness filter whatever the kind", () => {
    expect(readKnobs(parse({ kind: "reinforce" })).has("clipHigh")).toBe(false);
    const fresh = parse({ kind: "reinforce", correction: { freshness: { decay: 1, capRatio: 1 } } });
    expect(readKnobs(fresh).has("clipHigh")).toBe(true);
  });
});

describe("check", () => {
  const findings = (objective: object, advantages: object = { estimator: "group_mean" }) =>
    checkObjective({ kind: "grpo", aggregation: "token-mean", ...objective }, advantages).map(
      ({ level, path }) => `${level} ${path.join(".")}`,
    );

  it("has nothing to say about plain GRPO", () => {
    expect(findings({ clipLow: 0.2, dualClip: 3 })).toEqual([]);
  });

  it.each([
    [{ cap: 2 }, "warning objective.cap"],
    [{ lengthNormalizer: 9 }, "warning objective.lengthNormalizer"],
    [{ unit: "turn" }, "warning objective.unit"],
    [{ kind: "tis", cap: 2, clipHigh: 0.3 }, "warning objective.clipHigh"],
    [{ kind: "cispo", ratioUnit: "trajectory" }, "warning objective.ratioUnit"],
    [{ options: { beta: 1 } }, "warning objective.options.beta"],
    [{ kl: { coef: 0.1, placement: "reward", estimator: "k3" } }, "warning objective.kl.estimator"],
    [{ kl: { coef: 0.1, estimator: "k1" } }, "warning objective.kl.estimator"],
    [{ kl: { coef: 0.1, estimator: "k2" } }, "note objective.kl.estimator"],
    [{ kl: { coef: 0.1, estimator: "k3" } }, "note objective.kl.estimator"],
    [{ kind: "minirl", correction: { tokenTruncate: 2 } }, "warning objective.correction.tokenTruncate"],
    [{ ratioBase: "rollout", correction: { tokenTruncate: 2 } }, "refusal objective.correction.tokenTruncate"],
    [{ kind: "tis" }, "refusal objective.cap"],
    [{ clipLo: 0.1 }, "refusal objective.clipLo"],
    [{ value: { coef: 1 } }, "refusal objective.value"],
    [{ kind: "custom" }, "refusal objective.kind"],
    [{ kind: "cross_entropy" }, "warning advantages.estimator"],
  ])("says of %j: %s", (objective, finding) => {
    expect(findings(objective)).toEqual([finding]);
  });

  it("states what each estimator's gradient is", () => {
    const message = (estimator: string) =>
      checkObjective({ kind: "grpo", aggregation: "token-mean", kl: { estimator, coef: 1 } })[0]?.message;
    expect(message("k1")).toContain("gradient is 0");
    expect(message("k2")).toContain("KL(π‖ref)");
    expect(message("k3")).toContain("KL(ref‖π)");
  });

  it("names advantage keys that nothing reads, and a critic that nothing trains", () => {
    expect(findings({}, { estimator: "group_mean", gamma: 1 })).toEqual(["warning advantages.gamma"]);
    expect(findings({}, { estimator: "gae", gamma: 1, lambda: 1 })).toEqual(["warning advantages.estimator"]);
    expect(findings({ value: { coef: 1 } }, { estimator: "gae", gamma: 1, lambda: 1 })).toEqual([]);
    const reward = { kind: "cross_entropy", kl: { coef: 1, placement: "reward" } };
    expect(findings(reward, { estimator: "none" })).toEqual(["warning objective.kl.placement"]);
  });
});
