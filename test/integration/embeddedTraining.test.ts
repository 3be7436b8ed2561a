// Promises of the embedded training engine beyond the reference values: determinism, sums over any split, memory planned
// ahead, cancellation, refusals by code, and folders that load as they were saved.
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type EmbeddedOptions,
  embeddedTrainingEngine,
  openEmbeddedModel,
} from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import type { EmbeddedTrainingEngine } from "../../agent-daemon/src/engines/embeddedTraining.ts";
import type {
  Cotangents,
  OptimizerStep,
  Outputs,
  PackedBatch,
  Scalars,
  WeightsRef,
} from "../../agent-daemon/src/engines/interface.ts";
import { loadModelText } from "../../agent-daemon/src/engines/tokenizer/load.ts";
import { forest, rows } from "../support/batches.ts";
import { smollm2Path } from "../support/model.ts";
import { oraclesPath } from "../support/paths.ts";

const root = mkdtempSync(join(tmpdir(), "training-engine-"));
const opened: EmbeddedModel[] = [];
afterAll(() => {
  for (const model of opened) model.dispose();
  rmSync(root, { recursive: true });
});

async function open(path: string, options: EmbeddedOptions = {}) {
  const model = await openEmbeddedModel(path, options);
  opened.push(model);
  return { model, engine: embeddedTrainingEngine(model) };
}
const tiny = (name: string, options?: EmbeddedOptions) => open(oraclesPath("models", name), options);

const logprobOnly: Outputs = { logprob: true, entropy: false, value: false };
const all: Outputs = { logprob: true, entropy: true, value: true };
const policy: WeightsRef = { kind: "policy" };
const adamw: OptimizerStep = {
  lr: 1e-3,
  betas: [0.9, 0.99],
  eps: 1e-8,
  weightDecay: 0.1,
  decayed: "matrices",
  maxGradNorm: 1,
};

/** Ids from 3 to 253, which every tiny model has and none treats as special. */
const tokens = (count: number, seed: number) =>
  Array.from({ length: count }, (_, i) => 3 + ((i * 37 + seed * 101) % 251));

async function scalarsOf(
  engine: EmbeddedTrainingEngine,
  batch: PackedBatch,
  want = logprobOnly,
  weights = policy,
): Promise<Scalars> {
  for await (const { scalars } of engine.forward([batch], want, weights)) return scalars;
  throw new Error("no scalars");
}
const logprobsOf = async (engine: EmbeddedTrainingEngine, batch: PackedBatch) =>
  (await scalarsOf(engine, batch)).logprob ?? new Float32Array(0);

/** Cotangents that differ from token to token, zero where nothing is predicted. */
function waves(scalars: Scalars): Cotangents {
  const wave = (values: Float32Array | undefined, shift: number) =>
    values?.map((value, i) => (Number.isNaN(value) ? 0 : Math.sin(3 * i + shift)));
  const given = { logprob: wave(scalars.logprob, 0), entropy: wave(scalars.entropy, 1), value: wave(scalars.value, 2) };
  return Object.fromEntries(Object.entries(given).filter(([, values]) => values !== undefined));
}

async function gradients(model: EmbeddedModel, engine: EmbeddedTrainingEngine): Promise<Float32Array[]> {
  return Promise.all(model.native.tensors().map(({ name }) => engine.readTensor(name, "gradient")));
}
const weights = (model: EmbeddedModel) => Promise.all(model.native.tensors().map(({ name }) => model.readTensor(name)));

async function failure(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await work;
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error("it succeeded");
}

const l2 = (values: Float32Array) => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));

describe("SmolLM2", () => {
  let model: EmbeddedModel;
  let engine: EmbeddedTrainingEngine;
  beforeAll(async () => {
    ({ model, engine } = await open(smollm2Path()));
  });

  test("a row's log-probabilities have the same bits beside 0, 1, 6 and 63 other rows", async () => {
    const row = tokens(12, 0);
    const alone = await logprobsOf(engine, rows([row]));
    for (const others of [1, 6, 63]) {
      const beside = Array.from({ length: others }, (_, i) => tokens(5 + (i % 17), i + 1));
      const first = await logprobsOf(engine, rows([row, ...beside]));
      expect(first.subarray(0, row.length)).toEqual(alone);
      const last = await logprobsOf(engine, rows([...beside, row]));
      expect(last.subarray(last.length - row.length)).toEqual(alone);
    }
  });

  test("work can be cancelled while it runs, and the incomplete gradient cannot be used", async () => {
    const controller = new AbortController();
    const batch = rows(Array.from({ length: 8 }, (_, i) => tokens(64, i)));
    const running = failure(
      engine.accumulate([batch], logprobOnly, (_, scalars) => waves(scalars), { signal: controller.signal }),
    );
    setImmediate(() => controller.abort());
    expect((await running).code).toBe("ENGINE_CANCELLED");
    expect((await failure(engine.step(adamw))).code).toBe("ENGINE_REQUEST_INVALID");
    await engine.discard();
    expect(await engine.gradient()).toEqual({ norm: 0, finite: true });
  });

  test("a batch saved from GGUF comes back with the same bits, tokenizer included", async () => {
    const dir = join(root, "smollm2");
    await engine.save(dir, "weights");
    const again = await open(dir);
    const batch = rows([tokens(20, 5)]);
    expect(await logprobsOf(again.engine, batch)).toEqual(await logprobsOf(engine, batch));
    const [before, after] = [loadModelText(smollm2Path()), loadModelText(dir)];
    const sample = "Compute 17 + 25.\n\tÄrger, 温度 🧪 <|im_end|>";
    expect(after.tokenizer.encode(sample, { special: "parse" })).toEqual(
      before.tokenizer.encode(sample, { special: "parse" }),
    );
    expect(after.chatTemplate).toBe(before.chatTemplate);
    expect(after.stopIds).toEqual(before.stopIds);
    again.model.dispose();
    model.dispose();
  });
});

describe.each(["llama-tiny", "qwen2-tiny", "qwen3moe-tiny"])("gradients of %s", (name) => {
  test("are the same bits when everything is done again", async () => {
    const { model, engine } = await tiny(name, { valueHead: true });
    const batch = forest([
      { tokens: tokens(40, 1), parent: -1 },
      { tokens: tokens(9, 2), parent: 0 },
      { tokens: tokens(70, 3), parent: 0 },
    ]);
    const runs: Float32Array[][] = [];
    for (let run = 0; run < 2; run++) {
      await engine.accumulate([batch], all, (_, scalars) => waves(scalars));
      runs.push(await gradients(model, engine));
      await engine.discard();
    }
    expect(runs[1]).toEqual(runs[0]);
  });

  test("of two identical samples with opposite cotangents cancel, with equal ones double", async () => {
    const { model, engine } = await tiny(name);
    const row = tokens(21, 4);
    const gradientOf = async (batch: PackedBatch, signs: readonly number[]) => {
      await engine.accumulate([batch], logprobOnly, (_, { logprob = new Float32Array(0) }) => ({
        logprob: logprob.map((l, i) => (Number.isNaN(l) ? 0 : (signs[Math.floor(i / row.length)] ?? 0))),
      }));
      const result = await gradients(model, engine);
      const { norm } = await engine.gradient();
      await engine.discard();
      return { result, norm };
    };
    const one = await gradientOf(rows([row]), [1]);
    const opposite = await gradientOf(rows([row, row]), [1, -1]);
    const equal = await gradientOf(rows([row, row]), [1, 1]);
    expect(opposite.norm).toBeLessThan(1e-5 * one.norm);
    equal.result.forEach((tensor, t) => {
      expect(l2(tensor.map((x, i) => x - 2 * (one.result[t]?.[i] ?? 0)))).toBeLessThan(1e-5 * one.norm);
    });
  });

  test("are exact when memory is short: layers and logits are computed again", async () => {
    const batch = rows([tokens(64, 6), tokens(30, 7)]);
    const roomy = await tiny(name);
    await roomy.engine.accumulate([batch], logprobOnly, (_, scalars) => waves(scalars));
    const expected = await gradients(roomy.model, roomy.engine);
    const plan = await roomy.model.trainer.plan(94);
    expect(plan).toMatchObject({ checkpointedLayers: 0, keepsLogits: true });
    let limit = plan.fixedBytes + plan.activationBytes;
    const layers = roomy.model.info().layers;
    for (;;) {
      const tight = await tiny(name, { memoryLimit: limit, keptLogits: 0 });
      const { checkpointedLayers, keepsLogits } = await tight.model.trainer.plan(94);
      expect(keepsLogits).toBe(false);
      await tight.engine.accumulate([batch], logprobOnly, (_, scalars) => waves(scalars));
      expect(await gradients(tight.model, tight.engine)).toEqual(expected);
      tight.model.dispose();
      if (checkpointedLayers === layers) break;
      limit -= 16384;
    }
    const error = await failure((await tiny(name, { memoryLimit: plan.fixedBytes + 65536 })).model.trainer.plan(94));
    expect(error.code).toBe("ENGINE_OUT_OF_MEMORY");
    expect(error.message).toMatch(/94 tokens needs \d+ MiB beside \d+ MiB .* limit is \d+ MiB/);
  });
});

describe("outputs", () => {
  test("children that share a parent's last state may ask at temperatures of their own", async () => {
    const { engine } = await tiny("llama-tiny");
    const prompt = tokens(10, 1);
    const batch = forest([
      { tokens: prompt, parent: -1 },
      { tokens: [5, 6], parent: 0 },
      { tokens: [7, 8], parent: 0 },
      { tokens: [5, 9], parent: 0 },
    ]);
    batch.temperature.set([0.5, 0.5], 12);
    batch.temperature.set([0, 0], 14);
    const together = await scalarsOf(engine, batch, { logprob: true, entropy: true, value: false });
    for (const [first, temperature] of [
      [10, 1],
      [12, 0.5],
      [14, 1],
    ] as const) {
      const path = [...prompt, batch.tokens[first] ?? 0, batch.tokens[first + 1] ?? 0];
      const alone = await scalarsOf(engine, rows([path], temperature), { logprob: true, entropy: true, value: false });
      for (const i of [0, 1]) {
        expect(together.logprob?.[first + i]).toBeCloseTo(alone.logprob?.[10 + i] ?? Number.NaN, 5);
        expect(together.entropy?.[first + i]).toBeCloseTo(alone.entropy?.[10 + i] ?? Number.NaN, 5);
      }
    }
  });

  test("tokens that are not wanted have no output, and the others are not changed by that", async () => {
    const { engine } = await tiny("qwen3-tiny");
    const batch = rows([tokens(30, 2)]);
    const whole = await logprobsOf(engine, batch);
    batch.wanted.fill(0, 0, 20);
    const part = await logprobsOf(engine, batch);
    expect(part.subarray(0, 20).every(Number.isNaN)).toBe(true);
    expect(part.subarray(20)).toEqual(whole.subarray(20));
  });

  test("a snapshot keeps answering as the weights were, until it is released", async () => {
    const { engine } = await tiny("llama-tiny");
    const batch = rows([tokens(16, 3)]);
    const before = await logprobsOf(engine, batch);
    await engine.snapshot("reference");
    await engine.accumulate([batch], logprobOnly, (_, scalars) => waves(scalars));
    await engine.step(adamw);
    const reference = await scalarsOf(engine, batch, logprobOnly, { kind: "snapshot", id: "reference" });
    expect(reference.logprob).toEqual(before);
    expect(await logprobsOf(engine, batch)).not.toEqual(before);
    await engine.release("reference");
    const gone = scalarsOf(engine, batch, logprobOnly, { kind: "snapshot", id: "reference" });
    expect((await failure(gone)).code).toBe("ENGINE_REQUEST_INVALID");
  });

  test("the cotangents callback may run other forwards", async () => {
    const { model, engine } = await tiny("llama-tiny");
    const batch = rows([tokens(16, 3)]);
    await engine.accumulate([batch], logprobOnly, (_, scalars) => waves(scalars));
    const expected = await gradients(model, engine);
    await engine.discard();
    await engine.accumulate([batch], logprobOnly, async (_, scalars) => {
      await scalarsOf(engine, rows([tokens(200, 9), tokens(100, 8)]));
      return waves(scalars);
    });
    expect(await gradients(model, engine)).toEqual(expected);
  });

  test("progress counts tokens up to all of them", async () => {
    const { engine } = await tiny("llama-tiny");
    const seen: number[] = [];
    const batches = [rows([tokens(16, 1)]), rows([tokens(9, 2)])];
    await engine.accumulate(batches, logprobOnly, (_, scalars) => waves(scalars), {
      onProgress: ({ done, total }) => {
        expect(total).toBe(25);
        seen.push(done);
      },
    });
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(seen.at(-1)).toBe(25);
  });
});

describe("refusals", () => {
  test.each<[string, Partial<PackedBatch>]>([
    ["a token outside the vocabulary", { tokens: Int32Array.of(3, 4, 100000) }],
    ["a negative token", { tokens: Int32Array.of(3, -1, 5) }],
    ["a position beyond the model's context", { positions: [Int32Array.of(0, 1, 10 ** 6)] }],
    ["arrays of different lengths", { wanted: new Uint8Array(2) }],
    [
      "nodes with a gap",
      {
        nodes: [
          { start: 0, end: 1, parent: -1 },
          { start: 2, end: 3, parent: 0 },
        ],
      },
    ],
    [
      "a parent that comes later",
      {
        nodes: [
          { start: 0, end: 1, parent: 1 },
          { start: 1, end: 3, parent: -1 },
        ],
      },
    ],
    ["nodes that leave tokens out", { nodes: [{ start: 0, end: 2, parent: -1 }] }],
    ["a temperature that is not a number", { temperature: Float32Array.of(1, Number.NaN, 1) }],
    ["routing for a model without experts", { routing: new Int16Array(3) }],
  ])("%s", async (_, change) => {
    const { engine } = await tiny("llama-tiny");
    const batch = { ...rows([[3, 4, 5]]), ...change };
    expect((await failure(scalarsOf(engine, batch))).code).toBe("ENGINE_REQUEST_INVALID");
  });

  test("cotangents that are not numbers, or belong to no output, are named", async () => {
    const { engine } = await tiny("llama-tiny");
    const batch = rows([[3, 4, 5]]);
    const run = (given: Cotangents) => failure(engine.accumulate([batch], logprobOnly, () => given));
    expect((await run({ logprob: Float32Array.of(0, Number.NaN, 0) })).code).toBe("ENGINE_NON_FINITE");
    expect((await run({ logprob: Float32Array.of(1, 0, 0) })).code).toBe("ENGINE_REQUEST_INVALID");
    expect((await run({ entropy: Float32Array.of(0, 1, 0) })).code).toBe("ENGINE_REQUEST_INVALID");
    expect((await run({ logprob: Float32Array.of(0, 1) })).code).toBe("ENGINE_REQUEST_INVALID");
  });

  test("weights that have diverged are reported, not trained on", async () => {
    const { model, engine } = await tiny("llama-tiny");
    const norm = "model.norm.weight";
    await model.writeTensor(norm, (await model.readTensor(norm)).fill(1e38));
    expect((await failure(scalarsOf(engine, rows([tokens(5, 1)])))).code).toBe("ENGINE_NON_FINITE");
  });

  test("a gradient that is not finite changes no weight", async () => {
    const { model, engine } = await tiny("llama-tiny");
    const before = await weights(model);
    await engine.accumulate([rows([tokens(9, 1)])], logprobOnly, (_, scalars) => ({
      logprob: (waves(scalars).logprob ?? new Float32Array(0)).map((c) => c * 3e38),
    }));
    expect((await engine.gradient()).finite).toBe(false);
    expect((await failure(engine.step(adamw))).code).toBe("ENGINE_NON_FINITE");
    expect(await weights(model)).toEqual(before);
  });

  test("values without a value head, base weights without adapters and other engines' weights", async () => {
    const { engine } = await tiny("llama-tiny");
    const batch = rows([[3, 4, 5]]);
    expect((await failure(scalarsOf(engine, batch, all))).code).toBe("ENGINE_UNSUPPORTED");
    expect((await failure(scalarsOf(engine, batch, logprobOnly, { kind: "base" }))).code).toBe("ENGINE_UNSUPPORTED");
    const critic = { kind: "engine", role: "critic" } as const;
    expect((await failure(scalarsOf(engine, batch, logprobOnly, critic))).code).toBe("ENGINE_REQUEST_INVALID");
  });
});

describe("AdamW", () => {
  test("decays matrices only, unless all is asked for", async () => {
    for (const decayed of ["matrices", "all"] as const) {
      const { model, engine } = await tiny("llama-tiny");
      const norm = await model.readTensor("model.norm.weight");
      const matrix = await model.readTensor("model.layers.0.mlp.up_proj.weight");
      await engine.step({ ...adamw, lr: 0.5, weightDecay: 0.5, decayed });
      const kept = decayed === "all" ? 0.75 : 1;
      expect(await model.readTensor("model.norm.weight")).toEqual(norm.map((w) => w * kept));
      expect(await model.readTensor("model.layers.0.mlp.up_proj.weight")).toEqual(matrix.map((w) => w * 0.75));
    }
  });
});

describe("saved folders", () => {
  const batch = rows([tokens(24, 1), tokens(17, 2)]);
  const train = async (engine: EmbeddedTrainingEngine, steps: number, want = logprobOnly) => {
    for (let step = 0; step < steps; step++) {
      await engine.accumulate([batch], want, (_, scalars) => waves(scalars));
      await engine.step(adamw);
    }
  };

  test.each(["llama-tiny", "qwen2-tiny", "qwen3-tiny", "qwen3moe-tiny"])(
    "%s goes on from a full save as if nothing had happened",
    async (name) => {
      const { model, engine } = await tiny(name, { valueHead: true });
      const dir = join(root, `full-${name}`);
      await train(engine, 2, all);
      await engine.save(dir, "full");
      await train(engine, 1, all);
      const other = await tiny(name, { valueHead: true });
      await train(other.engine, 1, all);
      await other.engine.load(dir);
      expect(other.model.native.version()).toBe(2);
      await train(other.engine, 1, all);
      expect(await weights(other.model)).toEqual(await weights(model));
      const reopened = await open(dir, { valueHead: true });
      expect(reopened.model.native.version()).toBe(2);
    },
  );

  test("weights alone start a new optimizer and keep the version", async () => {
    const { engine } = await tiny("llama-tiny");
    await train(engine, 1);
    const dir = join(root, "weights");
    await engine.save(dir, "weights");
    expect(readdirSync(dir).filter((file) => file.startsWith("optimizer"))).toEqual([]);
    const other = await tiny("llama-tiny");
    await train(other.engine, 3);
    await other.engine.load(dir);
    expect(other.model.native.version()).toBe(1);
    expect(await other.model.trainer.optimizerSteps()).toBe(0);
  });

  test("a second save replaces the first whole; a failed one leaves nothing", async () => {
    const { engine } = await tiny("llama-tiny");
    const parent = mkdtempSync(join(root, "twice-"));
    const dir = join(parent, "model");
    await train(engine, 1);
    await engine.save(dir, "full");
    await engine.save(dir, "weights");
    expect(readdirSync(parent)).toEqual(["model"]);
    expect(existsSync(join(dir, "optimizer_first_moment.safetensors"))).toBe(false);
    const blocker = join(parent, "file");
    writeFileSync(blocker, "");
    expect((await failure(engine.save(join(blocker, "model"), "weights"))).code).toBe("ENGINE_SAVE_FAILED");
    expect(readdirSync(parent).sort()).toEqual(["file", "model"]);
  });

  test("another model's folder is refused and changes nothing", async () => {
    const { model, engine } = await tiny("llama-tiny");
    const before = await weights(model);
    expect((await failure(engine.load(oraclesPath("models", "qwen2-tiny")))).code).toMatch(/^ENGINE_/);
    expect(await weights(model)).toEqual(before);
  });
});
