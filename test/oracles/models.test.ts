// The embedded engine's forward, gradient, optimizer, trees, value head and routing against reference models computed in
// float64. Agreement is asked for within ten times what rounding did to other float32 engines.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { embeddedTrainingEngine, openEmbeddedModel } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import type { EmbeddedTrainingEngine } from "../../agent-daemon/src/engines/embeddedTraining.ts";
import type { PackedBatch, Scalars } from "../../agent-daemon/src/engines/interface.ts";
import { forest, rows } from "../support/batches.ts";
import { type GradientSummary, type ModelOracle, modelOracles, type TrainingRun } from "../support/modelOracles.ts";

const both = { logprob: true, entropy: true, value: false };
const onlyValue = { logprob: false, entropy: false, value: true };
const policy = { kind: "policy" } as const;
const factor = 10;
/** Two units in the last place of a float32: no float32 engine can be held to less, however lucky the measured runs were. */
const resolution = 2 ** -22;

const floats = (values: readonly (number | null)[]) => Float32Array.from(values, (value) => value ?? 0);

/** Compares element by element; null in the reference must be NaN. */
function expectClose(
  actual: ArrayLike<number>,
  expected: readonly (number | null)[],
  tolerance: number | undefined,
): void {
  expect(tolerance).toBeGreaterThan(0);
  expect(actual.length).toBe(expected.length);
  for (const [index, value] of expected.entries()) {
    if (value === null) expect(actual[index]).toBeNaN();
    else
      expect(Math.abs((actual[index] ?? Number.NaN) - value), `element ${index}`).toBeLessThanOrEqual(
        Math.max(factor * (tolerance ?? 0), resolution * Math.abs(value)),
      );
  }
}

async function scalarsOf(engine: EmbeddedTrainingEngine, batch: PackedBatch, want = both): Promise<Scalars> {
  for await (const { scalars } of engine.forward([batch], want, policy)) return scalars;
  throw new Error("no scalars");
}

async function expectGradients(
  engine: EmbeddedTrainingEngine,
  params: Readonly<Record<string, GradientSummary>>,
  tolerance: Readonly<Record<string, number>> | undefined,
): Promise<void> {
  for (const [name, summary] of Object.entries(params)) {
    const gradient = await engine.readTensor(name, "gradient");
    expect(gradient.length, name).toBe(summary.shape.reduce((product, axis) => product * axis, 1));
    const l2 = Math.sqrt(gradient.reduce((sum, g) => sum + g * g, 0));
    const sum = gradient.reduce((total, g) => total + g, 0);
    expectClose([l2], [summary.l2], tolerance?.["l2"]);
    expectClose([sum], [summary.sum], tolerance?.["sum"]);
    expectClose(gradient.subarray(0, 5), summary.first5, tolerance?.["first5"]);
    expectClose([gradient[summary.largest.index] ?? Number.NaN], [summary.largest.value], tolerance?.["largest"]);
  }
}

describe.each(modelOracles())("$name", ({ dir, expected }) => {
  let model: EmbeddedModel;
  let engine: EmbeddedTrainingEngine;
  const tolerance = expected.float32_tolerance;
  const tokensOf = (sequence: number) => expected.sequences[sequence]?.tokens ?? [];

  beforeAll(async () => {
    model = await openEmbeddedModel(dir, { valueHead: expected.tiny_value_head !== undefined });
    engine = embeddedTrainingEngine(model);
  });
  afterAll(() => model.dispose());

  test("log-probabilities and entropies of each sequence are those of the reference", async () => {
    for (const sequence of expected.sequences) {
      const scalars = await scalarsOf(engine, rows([sequence.tokens]));
      expectClose(scalars.logprob ?? [], sequence.logprobs, tolerance["sequences"]?.["logprobs"]);
      expectClose(scalars.entropy ?? [], sequence.entropy, tolerance["sequences"]?.["entropy"]);
    }
  });

  test("at a temperature they are those of the divided logits", async () => {
    for (const { tokens, tempered } of expected.sequences) {
      const scalars = await scalarsOf(engine, rows([tokens], tempered.temperature));
      expectClose(scalars.logprob ?? [], tempered.logprobs, tolerance["sequences"]?.["tempered_logprobs"]);
      expectClose(scalars.entropy ?? [], tempered.entropy, tolerance["sequences"]?.["tempered_entropy"]);
    }
  });

  test("the gradient through log-probabilities and entropies is that of the reference", async () => {
    const { sequence, logprob_cotangent, entropy_cotangent, scalar, params } = expected.gradient;
    let total = 0;
    await engine.accumulate([rows([tokensOf(sequence)])], both, (_, scalars) => {
      const logprob = floats(logprob_cotangent);
      const entropy = floats(entropy_cotangent);
      for (let i = 1; i < logprob.length; i++) {
        total += (logprob[i] ?? 0) * (scalars.logprob?.[i] ?? 0) + (entropy[i] ?? 0) * (scalars.entropy?.[i] ?? 0);
      }
      return { logprob, entropy };
    });
    expectClose([total], [scalar], tolerance["gradient"]?.["scalar"]);
    await expectGradients(engine, params, tolerance["gradient"]);
    await engine.discard();
  });

  test("a prefix tree run once has its paths' log-probabilities and the gradient of each node once", async () => {
    const { nodes, paths, node_logprobs, node_cotangent, scalar, params } = expected.tree;
    const batch = forest(nodes.map((node) => ({ tokens: [node.token], parent: node.parent ?? -1 })));
    expect([...(batch.positions[0] ?? [])]).toEqual(nodes.map((node) => node.depth));
    let seen: Scalars = {};
    await engine.accumulate([batch], { logprob: true, entropy: false, value: false }, (_, scalars) => {
      seen = scalars;
      return { logprob: floats(node_cotangent) };
    });
    expectClose(seen.logprob ?? [], node_logprobs, tolerance["tree"]?.["logprobs"]);
    for (const path of paths) {
      const along = path.nodes.map((node) => seen.logprob?.[node] ?? Number.NaN);
      expectClose(along, path.logprobs, tolerance["tree"]?.["logprobs"]);
    }
    const total = node_cotangent.reduce<number>(
      (sum, c, i) => sum + (c === null ? 0 : c * (seen.logprob?.[i] ?? 0)),
      0,
    );
    expectClose([total], [scalar], tolerance["tree"]?.["scalar"]);
    await expectGradients(engine, params, tolerance["tree"]);
    await engine.discard();
  });

  if (expected.tiny_value_head) {
    const head = expected.tiny_value_head;
    test("a value head reads the state before each token and passes its gradient on", async () => {
      await model.writeTensor("value_head.weight", floats(head.weight));
      await model.writeTensor("value_head.bias", floats([head.bias]));
      // One more token, so that the last state predicts something.
      const tokens = tokensOf(head.sequence);
      const batch = rows([[...tokens, tokens[0] ?? 3]]);
      let values: Float32Array = new Float32Array(0);
      await engine.accumulate([batch], onlyValue, (_, scalars) => {
        values = scalars.value ?? values;
        return { value: floats([null, ...head.value_cotangent]) };
      });
      expectClose(values, [null, ...head.values], tolerance["tiny_value_head"]?.["values"]);
      const scalar = head.value_cotangent.reduce((sum, c, i) => sum + c * (values[i + 1] ?? Number.NaN), 0);
      expectClose([scalar], [head.scalar], tolerance["tiny_value_head"]?.["scalar"]);
      await expectGradients(engine, head.params, tolerance["tiny_value_head"]);
      await engine.discard();
    });
  }

  if (expected.moe) {
    const { sequence, natural, forced, top_k } = expected.moe;
    const flat = (choices: typeof natural.experts, empty: number) =>
      choices.flatMap((layer) => layer?.flat() ?? tokensOf(sequence).flatMap(() => Array<number>(top_k).fill(empty)));

    test("the router chooses the reference's experts with its weights", async () => {
      const routing = await engine.routing(rows([tokensOf(sequence)]));
      expect([...routing.experts]).toEqual(flat(natural.experts, -1));
      expectClose(routing.weights, flat(natural.weights, 0), tolerance["moe"]?.["weights"]);
    });

    test("forced experts replace the router's choice", async () => {
      const routing = Int16Array.from(flat(forced.experts, -1));
      const batch = { ...rows([tokensOf(sequence)]), routing };
      const scalars = await scalarsOf(engine, batch);
      expectClose(scalars.logprob ?? [], forced.logprobs, tolerance["moe"]?.["forced_logprobs"]);
      expectClose(scalars.entropy ?? [], forced.entropy, tolerance["moe"]?.["forced_entropy"]);
    });
  }
});

describe.each(
  modelOracles().flatMap(({ name, dir, expected }) =>
    Object.entries(expected.training).map(([run, training]) => ({ name, dir, expected, run, training })),
  ),
)("$name trained by the run $run", ({ dir, expected, run, training }) => {
  test("has the reference's losses, gradient norms and final log-probabilities", async () => {
    const model = await openEmbeddedModel(dir);
    try {
      await train(embeddedTrainingEngine(model), expected, run, training);
    } finally {
      model.dispose();
    }
  });
});

async function train(
  engine: EmbeddedTrainingEngine,
  expected: ModelOracle,
  run: string,
  training: TrainingRun,
): Promise<void> {
  const { optimizer } = training;
  const tolerance = (what: string) => expected.float32_tolerance["training"]?.[`${run}.${what}`];
  const batch = rows(expected.sequences.map((sequence) => sequence.tokens));
  const predicted = expected.sequences.reduce((sum, sequence) => sum + sequence.tokens.length - 1, 0);
  const lossOf = (logprob: Float32Array) =>
    -logprob.reduce((sum, l) => (Number.isNaN(l) ? sum : sum + l), 0) / predicted;
  const losses: number[] = [];
  const norms: number[] = [];
  for (let step = 1; step <= optimizer.steps; step++) {
    await engine.accumulate(
      [batch],
      { logprob: true, entropy: false, value: false },
      (_, { logprob = new Float32Array(0) }) => {
        losses.push(lossOf(logprob));
        return { logprob: logprob.map((l) => (Number.isNaN(l) ? 0 : -1 / predicted)) };
      },
    );
    norms.push((await engine.gradient()).norm);
    const { version } = await engine.step({
      lr: optimizer.lr,
      betas: [optimizer.beta1, optimizer.beta2],
      eps: optimizer.eps,
      weightDecay: optimizer.weight_decay,
      decayed: "all",
      maxGradNorm: optimizer.max_grad_norm,
    });
    expect(version).toBe(step);
  }
  losses.push(lossOf((await scalarsOf(engine, batch)).logprob ?? new Float32Array(0)));
  expectClose(losses, [...training.loss_before_step, training.loss_after], tolerance("loss"));
  expectClose(norms, training.grad_norm, tolerance("grad_norm"));
  const tokens = expected.sequences[training.sequence]?.tokens ?? [];
  const after = await scalarsOf(engine, rows([tokens]));
  expectClose(after.logprob ?? [], training.logprobs_after, tolerance("logprobs_after"));
}
