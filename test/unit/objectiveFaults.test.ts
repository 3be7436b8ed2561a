// Public faults of the mathematics (known-faults.md, M rows) as behaviour of the algorithms.
import { describe, expect, it } from "vitest";
import { computeAdvantages } from "../../agent-daemon/src/algorithms/advantages.ts";
import { evaluateObjective } from "../../agent-daemon/src/algorithms/evaluateObjective.ts";
import { mismatchReport } from "../../agent-daemon/src/algorithms/mismatch.ts";
import { prepareObjective } from "../../agent-daemon/src/algorithms/preparedObjective.ts";
import { parseAdvantages } from "../../protocol/advantages.ts";
import { parseObjective } from "../../protocol/objective.ts";

const sft = parseObjective({ kind: "cross_entropy", aggregation: "token-mean" });
const filled = (length: number, value: number) => Array.from({ length }, () => value);
const row = (length: number, loss: number, trainable = 1) => ({
  logp: filled(length, -loss),
  mask: filled(length, trainable),
});

describe("P09: advantages are taken over each prompt's group", () => {
  const scored = (group: string, ...scores: number[]) => scores.map((score) => ({ group, score, mask: [1] }));
  const advantagesOf = (batch: ReturnType<typeof scored>) =>
    computeAdvantages(parseAdvantages({ estimator: "group_normalized" }), batch).advantages.map(
      (column) => column?.[0] ?? null,
    );

  it("gives 0 everywhere when each group's scores are equal, however far apart the groups are", () => {
    expect(advantagesOf([...scored("A", 0.9, 0.9, 0.9, 0.9), ...scored("B", 0.1, 0.1, 0.1, 0.1)])).toEqual(
      filled(8, 0),
    );
  });

  it("gives 1.5 and −0.5 in both groups, whatever the order of the samples", () => {
    const a = scored("A", 1, 0, 0, 0);
    const b = scored("B", 5, 4, 4, 4);
    const expected = [1.5, -0.5, -0.5, -0.5];
    const interleaved = a.flatMap((sample, i) => [sample, b[i]!]);
    const found = advantagesOf(interleaved);
    expect(found).toHaveLength(8);
    found.forEach((advantage, i) => {
      expect(advantage).toBeCloseTo(expected[i >> 1]!, 4);
    });
    advantagesOf([...b].reverse()).forEach((advantage, i) => {
      expect(advantage).toBeCloseTo(expected[3 - i]!, 4);
    });
  });
});

describe("P10: the token mean is over the whole optimizer batch", () => {
  const batch = [row(2, 3), row(8, 0.5)];

  it("is 1.0 with the same gradient in one and in two micro-batches", () => {
    const objective = prepareObjective(sft, batch);
    const rows = batch.map((sequence, trajectory) => ({
      occurrences: Int32Array.from(sequence.logp, (_, position) => objective.occurrence(trajectory, position)),
      logp: sequence.logp,
    }));
    const two = rows.map(({ occurrences, logp }) => objective.cotangents(occurrences, { logp }));
    const one = objective.cotangents(Int32Array.from(rows.flatMap((r) => [...r.occurrences])), {
      logp: rows.flatMap((r) => r.logp),
    });
    expect(objective.finish(two).loss).toBeCloseTo(1, 12);
    expect(objective.finish([one]).loss).toBeCloseTo(1, 12);
    expect(two.flatMap((part) => [...part.dLogp])).toEqual([...one.dLogp]);
    expect([...one.dLogp]).toEqual(filled(10, -0.1));
  });
});

describe("P11: masked tokens leave the divisor", () => {
  it("is 1.0 when the third response was cut and masked", () => {
    expect(evaluateObjective(sft, [row(4, 1), row(4, 1), row(8, 1, 0)]).loss).toBe(1);
  });

  it("is loss 0 and gradient 0 with a reason to skip when all were cut", () => {
    const result = evaluateObjective(sft, [row(4, 1, 0), row(4, 1, 0), row(8, 1, 0)]);
    expect(result).toMatchObject({ loss: 0, policyLoss: 0, skipReason: expect.stringContaining("trainable token") });
    expect(result.dLossDLogp.flatMap((column) => [...column])).toEqual(filled(16, 0));
  });

  it("does not count a row whose prompt fills the limit, nor an empty response", () => {
    expect(evaluateObjective(sft, [row(4, 1), row(6, 9, 0), row(0, 0)]).loss).toBe(1);
    const means = parseObjective({ kind: "cross_entropy", aggregation: "sequence-mean" });
    expect(evaluateObjective(means, [row(4, 1), row(6, 9, 0), row(0, 0)]).loss).toBe(1);
  });
});

describe("P12: the GSPO ratio is one number a sequence, without padding", () => {
  const config = parseObjective({ kind: "gspo", aggregation: "sequence-mean" });
  const sequence = (logRatios: number[], mask: number[], advantage: number) => ({
    logp: logRatios.map((x) => x - 1),
    old: filled(logRatios.length, -1),
    advantage: filled(logRatios.length, advantage),
    mask,
  });
  const withPad = (pad: number) => sequence([0.2, 0, pad, pad], [1, 1, 0, 0], 1);
  const b = sequence([0.1, 0.1, 0.1, 0.1], [1, 1, 1, 1], -1);

  it("is e^0.1 in both sequences", () => {
    const { metrics } = evaluateObjective(config, [withPad(9), b]);
    expect(metrics.ratio?.min).toBeCloseTo(Math.exp(0.1), 12);
    expect(metrics.ratio?.max).toBeCloseTo(Math.exp(0.1), 12);
  });

  it("changes neither loss nor gradient with the padding", () => {
    const nine = evaluateObjective(config, [withPad(9), b]);
    const nan = evaluateObjective(config, [withPad(Number.NaN), b]);
    expect(nan.loss).toBe(nine.loss);
    expect(nan.dLossDLogp).toEqual(nine.dLossDLogp);
  });

  it("gives every unmasked token gradient, and swapped rows swapped results", () => {
    const { dLossDLogp } = evaluateObjective(config, [withPad(9), b]);
    const swapped = evaluateObjective(config, [b, withPad(9)]).dLossDLogp;
    expect(swapped).toEqual([dLossDLogp[1], dLossDLogp[0]]);
    expect(dLossDLogp[0]?.map((x) => (x === 0 ? 0 : 1))).toEqual(Float64Array.of(1, 1, 0, 0));
    expect(dLossDLogp[1]?.every((x) => x !== 0)).toBe(true);
  });
});

describe("P13: sampler and trainer speak of one temperature", () => {
  const logSoftmax = (logits: number[], temperature: number) =>
    logits[0]! / temperature - Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit / temperature), 0));
  const scaled = logSoftmax([2, 1, 0], 0.5);

  it("has ratio 1 before any update when both are scaled", () => {
    expect(scaled).toBeCloseTo(-0.1429, 4);
    const report = mismatchReport([{ mask: [1], trainer: [scaled], rollout: [scaled] }]);
    expect(report).toMatchObject({ ratioMin: 1, ratioMax: 1, absLogpDiffMax: 0 });
  });

  it("shows in the mismatch report when the trainer forgot the temperature", () => {
    const unscaled = logSoftmax([2, 1, 0], 1);
    expect(unscaled).toBeCloseTo(-0.4076, 4);
    const report = mismatchReport([{ mask: [1], trainer: [unscaled], rollout: [scaled] }]);
    expect(report.absLogpDiffMax).toBeCloseTo(0.2647, 3);
    expect(report.worst[0]).toMatchObject({ sequence: 0, position: 0 });
  });
});

describe("P14: the value clip fraction looks at the new value itself", () => {
  const config = parseObjective({ kind: "ppo", aggregation: "token-mean", value: { coef: 1, clip: 0.2 } });
  const zeros = [0, 0];
  const batch = { logp: zeros, old: zeros, advantage: zeros, oldValue: [0, 0], returns: [0.3, 0], newValue: [1, 0.05] };

  it("is 1.0 with a loss of max(.49, .01) over the one trainable token", () => {
    const result = evaluateObjective(config, [{ ...batch, mask: [1, 0] }]);
    expect(result.valueLoss).toBeCloseTo(0.49, 12);
    expect(result.metrics.valueClipFraction).toBe(1);
  });

  it("pools by token count over uneven micro-batches", () => {
    const sequences = [
      { ...batch, mask: [1, 0] },
      { ...batch, oldValue: [1, 0.05], mask: [1, 1] },
      { ...batch, oldValue: [1, 0.05], mask: [1, 0] },
    ];
    const objective = prepareObjective(config, sequences);
    const scalars = { logp: [0, 0, 0, 0, 0, 0], value: [1, 0.05, 1, 0.05, 1, 0.05] };
    const part = (occurrences: number[]) =>
      objective.cotangents(Int32Array.from(occurrences), {
        logp: occurrences.map((o) => scalars.logp[o]!),
        value: occurrences.map((o) => scalars.value[o]!),
      });
    expect(objective.finish([part([0, 1]), part([2, 3, 4, 5])]).metrics.valueClipFraction).toBe(1 / 4);
  });
});
