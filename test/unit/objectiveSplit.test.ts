// Cotangents do not change with the split into micro-batches: bit for bit, for any scope, even with one trajectory over three.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SequenceColumns } from "../../agent-daemon/src/algorithms/columns.ts";
import { evaluateObjective } from "../../agent-daemon/src/algorithms/evaluateObjective.ts";
import type { ObjectiveOptions } from "../../agent-daemon/src/algorithms/objectiveReads.ts";
import { prepareObjective } from "../../agent-daemon/src/algorithms/preparedObjective.ts";
import { type ObjectiveConfig, parseObjective } from "../../protocol/objective.ts";
import type { ObjectiveDefinition } from "../../protocol/objectiveDefinition.ts";
import { agrees } from "../support/agreement.ts";

const corrections = { tokenMask: [0.5, 2], sequenceMask: [0.8, 1.25], tokenVeto: 0.4 };
const configs: Record<string, unknown> = {
  grpo: { kind: "grpo", aggregation: "token-mean", kl: { estimator: "k3", coef: 0.1 } },
  gspo: { kind: "gspo", aggregation: "sequence-mean", clipLow: 0.05, clipHigh: 0.05 },
  "gspo per turn": { kind: "gspo", unit: "turn", aggregation: "sequence-mean", kl: { estimator: "k2", coef: 0.1 } },
  "entropy target": { kind: "grpo", aggregation: "token-mean", entropy: { coef: 0.1, target: 0.7 } },
  "sequence masks": { kind: "cispo", aggregation: "sequence-sum", lengthNormalizer: 7, correction: corrections },
  "masks per turn": { kind: "grpo", unit: "turn", aggregation: "sequence-mean", correction: corrections },
  "topr by trajectory": { kind: "topr", ratioUnit: "trajectory", ratioBase: "rollout", aggregation: "token-mean" },
  "ppo with a critic": { kind: "ppo", aggregation: "token-mean", value: { coef: 0.5, clip: 0.2 } },
  "custom over units": { kind: "custom", unit: "turn", aggregation: "sequence-mean", correction: corrections },
};

/** Each token against the mean advantage-weighted log-ratio of its turn: only a pass over the unit can know it. */
const centred: ObjectiveDefinition = {
  name: "centred",
  scope: "unit",
  reads: ["advantage", "old"],
  unit(tokens) {
    const mean = tokens.reduce((sum, t) => sum + t.logp - t.old, 0) / tokens.length;
    const dMean = tokens.reduce((sum, t) => sum - t.advantage, 0) / tokens.length;
    return tokens.map((t) => ({ loss: -t.advantage * mean, dLogp: dMean }));
  },
};

const number = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const token = fc.record({
  mask: fc.integer({ min: 0, max: 3 }).map((x) => (x === 0 ? 0 : 1)),
  logp: number(-3, 0),
  dOld: number(-0.5, 0.5),
  dRollout: number(-0.5, 0.5),
  dRef: number(-0.5, 0.5),
  advantage: number(-2, 2),
  entropy: number(0, 2),
  staleness: fc.integer({ min: 0, max: 3 }),
  newTurn: fc.boolean(),
  oldValue: number(-1, 1),
  newValue: number(-1, 1),
  returns: number(-1, 1),
});
const trajectory = fc.array(token, { maxLength: 9 }).map((tokens): SequenceColumns => {
  let turn = 0;
  return {
    mask: tokens.map((t) => t.mask),
    logp: Float32Array.from(tokens, (t) => t.logp),
    old: tokens.map((t) => t.logp + t.dOld),
    rollout: tokens.map((t) => t.logp + t.dRollout),
    ref: tokens.map((t) => t.logp + t.dRef),
    advantage: tokens.map((t) => t.advantage),
    entropy: Float32Array.from(tokens, (t) => t.entropy),
    staleness: tokens.map((t) => t.staleness),
    turn: tokens.map((t) => (t.newTurn ? ++turn : turn)),
    oldValue: tokens.map((t) => t.oldValue),
    newValue: tokens.map((t) => t.newValue),
    returns: tokens.map((t) => t.returns),
  };
});

/** Runs the batch in `microBatches` micro-batches, `assign` deciding where each occurrence goes. */
function runSplit(
  config: ObjectiveConfig,
  batch: readonly SequenceColumns[],
  microBatches: number,
  assign: (occurrence: number) => number,
  options: ObjectiveOptions,
) {
  const objective = prepareObjective(config, batch, options);
  const all = batch.flatMap((sequence, t) =>
    Array.from(sequence.mask, (_, position) => ({
      occurrence: objective.occurrence(t, position),
      logp: sequence.logp[position]!,
      entropy: sequence.entropy![position]!,
      value: sequence.newValue![position]!,
    })),
  );
  const parts = Array.from({ length: microBatches }, (_, index) => {
    const members = all.filter(({ occurrence }) => assign(occurrence) === index).reverse();
    return {
      occurrences: Int32Array.from(members, (m) => m.occurrence),
      scalars: {
        logp: members.map((m) => m.logp),
        entropy: members.map((m) => m.entropy),
        value: members.map((m) => m.value),
      },
    };
  });
  const collector = objective.collectStatistics();
  for (const { occurrences, scalars } of parts) collector.add(occurrences, scalars);
  const statistics = objective.scope === "token" ? null : collector.finish();
  const dLogp = new Float64Array(all.length);
  const dEntropy = new Float64Array(all.length);
  const dValue = new Float64Array(all.length);
  const done = parts.map(({ occurrences, scalars }) => {
    const part = objective.cotangents(occurrences, scalars, statistics);
    occurrences.forEach((o, i) => {
      dLogp[o] = part.dLogp[i]!;
      dEntropy[o] = part.dEntropy?.[i] ?? 0;
      dValue[o] = part.dValue?.[i] ?? 0;
    });
    return part;
  });
  return { dLogp, dEntropy, dValue, result: objective.finish(done) };
}

const flat = (columns: readonly Float64Array[]) => Float64Array.from(columns.flatMap((column) => [...column]));

function expectSame(
  config: ObjectiveConfig,
  batch: readonly SequenceColumns[],
  microBatches: number,
  assign: (occurrence: number) => number,
  oldIsCurrent: boolean,
) {
  const options = { oldIsCurrent, definition: config.kind === "custom" ? centred : undefined };
  const whole = evaluateObjective(config, batch, options);
  const split = runSplit(config, batch, microBatches, assign, options);
  expect(split.dLogp).toEqual(flat(whole.dLossDLogp));
  expect(split.dEntropy).toEqual(flat(whole.dLossDEntropy));
  expect(split.dValue).toEqual(flat(whole.dLossDValue));
  expect(agrees(split.result.loss, whole.loss)).toBe(true);
  expect(split.result.metrics.trainableTokens).toBe(whole.metrics.trainableTokens);
}

describe.each(Object.entries(configs))("%s", (_, block) => {
  const config = parseObjective(block);

  it("has the same cotangents for every random split", () => {
    fc.assert(
      fc.property(
        fc.array(trajectory, { maxLength: 5 }),
        fc.array(fc.nat({ max: 6 }), { minLength: 1, maxLength: 60 }),
        fc.boolean(),
        (batch, places, oldIsCurrent) => {
          expectSame(config, batch, 7, (o) => places[o % places.length]!, oldIsCurrent);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("has the same cotangents with one trajectory over three micro-batches", () => {
    fc.assert(
      fc.property(trajectory, trajectory, (first, second) => {
        expectSame(config, [first, second], 3, (o) => o % 3, false);
      }),
      { numRuns: 40 },
    );
  });

  it("takes the current log-probability for old just as if it had been given", () => {
    fc.assert(
      fc.property(fc.array(trajectory, { maxLength: 4 }), (batch) => {
        const definition = config.kind === "custom" ? centred : undefined;
        const given = batch.map((sequence) => ({ ...sequence, old: Float64Array.from(sequence.logp) }));
        const current = batch.map(({ old: _old, ...sequence }) => sequence);
        const a = evaluateObjective(config, given, { definition });
        const b = evaluateObjective(config, current, { oldIsCurrent: true, definition });
        expect(b).toEqual(a);
      }),
      { numRuns: 40 },
    );
  });
});

it("trains two identical samples with opposite advantages to gradient 0", () => {
  const config = parseObjective({ kind: "grpo", aggregation: "token-mean" });
  const sample = (advantage: number) => ({ mask: [1, 1], logp: [-1, -2], advantage: [advantage, advantage] });
  const { dLossDLogp } = evaluateObjective(config, [sample(1), sample(-1)], { oldIsCurrent: true });
  expect([0, 1].map((i) => dLossDLogp[0]![i]! + dLossDLogp[1]![i]!)).toEqual([0, 0]);
});

it("refuses parts that are not the whole batch, and a token given twice to the first pass", () => {
  const config = parseObjective({ kind: "gspo", aggregation: "token-mean" });
  const objective = prepareObjective(config, [{ mask: [1, 1], old: [-1, -1], advantage: [1, 1] }]);
  const collector = objective.collectStatistics();
  collector.add(Int32Array.of(0), { logp: [-1] });
  const wrong = expect.objectContaining({ code: "OBJECTIVE_OCCURRENCES_WRONG" });
  expect(() => collector.finish()).toThrow(wrong);
  expect(() => collector.add(Int32Array.of(0), { logp: [-1] })).toThrow(wrong);
  expect(() => objective.cotangents(Int32Array.of(0), { logp: [-1] })).toThrow(
    expect.objectContaining({ code: "OBJECTIVE_STATISTICS_MISSING" }),
  );
  expect(() => objective.finish([])).toThrow(wrong);
});
