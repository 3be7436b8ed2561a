// The training loop on the embedded engine with the oracles' tiny models: what was proven on the float64 model holds in f32.
import { chmod, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { embeddedTrainingEngine, openEmbeddedModel } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import type { EmbeddedTrainingEngine } from "../../agent-daemon/src/engines/embeddedTraining.ts";
import { encodeColumns, type TypedArray } from "../../agent-daemon/src/store/columns.ts";
import { openFileBlobs } from "../../agent-daemon/src/store/fileBlobs.ts";
import { latestWhole, loadCheckpoint, writeCheckpoint } from "../../agent-daemon/src/training/checkpoints.ts";
import { forwardOccurrences, splitByTrajectory } from "../../agent-daemon/src/training/occurrenceColumns.ts";
import type { StepResult } from "../../agent-daemon/src/training/optimizerStep.ts";
import { packTrajectories } from "../../agent-daemon/src/training/packing.ts";
import { parseObjective } from "../../protocol/objective.ts";
import type { Trajectory } from "../../protocol/trajectory.ts";
import { accumulateAs, batchOf, logprobsOf, packings } from "../support/gradientOf.ts";
import { modelOracles } from "../support/modelOracles.ts";
import { oraclesPath } from "../support/paths.ts";
import { runWindow, setupOn } from "../support/trainerSetup.ts";
import { forests, sketchTrajectory } from "../support/trajectories.ts";

const opened: EmbeddedModel[] = [];
const folders: string[] = [];

/** `path`: a folder, or the name of an oracle's model. */
async function open(
  path: string,
  valueHead = false,
): Promise<{ model: EmbeddedModel; engine: EmbeddedTrainingEngine }> {
  const model = await openEmbeddedModel(isAbsolute(path) ? path : oraclesPath("models", path), { valueHead });
  opened.push(model);
  return { model, engine: embeddedTrainingEngine(model) };
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "training-"));
  folders.push(folder);
  return folder;
}

afterAll(async () => {
  for (const model of opened) model.dispose();
  for (const folder of folders) await rm(folder, { recursive: true });
});

async function gradients(model: EmbeddedModel, engine: EmbeddedTrainingEngine): Promise<Float32Array[]> {
  return Promise.all(model.native.tensors().map(({ name }) => engine.readTensor(name, "gradient")));
}

const distance = (a: Float32Array, b: Float32Array) => Math.sqrt(a.reduce((sum, x, i) => sum + (x - b[i]!) ** 2, 0));

const objectives = [
  { kind: "grpo", aggregation: "token-mean", kl: { estimator: "k3", coef: 0.1 }, entropy: { coef: 0.01 } },
  { kind: "gspo", aggregation: "sequence-mean", clipLow: 0.5, clipHigh: 2 },
  { kind: "gspo", aggregation: "sequence-mean", unit: "turn", clipLow: 0.5, clipHigh: 2 },
  { kind: "reinforce", aggregation: "token-mean", entropy: { coef: 0.3, target: 1.1 } },
] as const;

describe.each(["llama-tiny", "qwen3-tiny", "qwen3moe-tiny"])("%s", (name) => {
  let model: EmbeddedModel;
  let engine: EmbeddedTrainingEngine;
  beforeAll(async () => {
    ({ model, engine } = await open(name));
  });

  async function expectEqual(trajectories: Trajectory[], input: (typeof objectives)[number]): Promise<void> {
    const config = parseObjective(input);
    const now = await logprobsOf(engine, trajectories);
    const moved = (by: number) => now.map((column) => column.map((x, i) => x + by * Math.sin(5 * i + by)));
    const batch = batchOf(trajectories, { old: moved(0.3), ref: moved(0.2) });
    const results: { way: string; loss: number; norm: number; tensors: Float32Array[] }[] = [];
    for (const [way, forest] of Object.entries(packings(trajectories, 7))) {
      const loss = await accumulateAs(engine, { config }, batch, forest);
      results.push({ way, loss, norm: (await engine.gradient()).norm, tensors: await gradients(model, engine) });
      await engine.discard();
    }
    const [first, ...others] = results;
    for (const { way, loss, tensors } of others) {
      expect(Math.abs(loss - first!.loss), way).toBeLessThanOrEqual(1e-6);
      tensors.forEach((tensor, t) => {
        expect(distance(tensor, first!.tensors[t]!), way).toBeLessThanOrEqual(1e-5 * first!.norm + 1e-12);
      });
    }
  }

  it("gives one loss and gradient flat, packed, merged and in 7 micro-batches, for random forests", async () => {
    await fc.assert(
      fc.asyncProperty(forests({ trajectories: 12, tail: 10 }), fc.constantFrom(...objectives), expectEqual),
      { numRuns: 20, endOnFailure: true },
    );
  });

  it("gives log-probabilities with the same bits flat, packed, merged and cut, on paths over several key panels", async () => {
    const want = { logprob: true, entropy: true, value: false };
    await fc.assert(
      fc.asyncProperty(forests({ trajectories: 8, tail: 90 }), async (trajectories) => {
        const columns: Float64Array[][][] = [];
        for (const forest of Object.values(packings(trajectories, 4))) {
          const { logprob, entropy } = await forwardOccurrences(
            engine,
            forest,
            trajectories,
            want,
            { kind: "policy" },
            {},
          );
          columns.push([logprob!, entropy!].map((column) => splitByTrajectory(forest.occurrences.offsets, column)));
        }
        for (const other of columns.slice(1)) expect(other).toEqual(columns[0]);
      }),
      { numRuns: 20, endOnFailure: true },
    );
  });

  it("gives them with one trajectory's tokens in three micro-batches", async () => {
    const stem = [13, 14, 15, 16];
    const side = (start: number, token: number) =>
      sketchTrajectory({
        tokens: [...stem.slice(0, start), ...new Array(24 - 2 * start).fill(token)],
        score: token % 2 === 0 ? 1 : -0.5,
      });
    const turn = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];
    const long = sketchTrajectory({ tokens: [...stem, ...new Array(8).fill(17)], turn, score: 0.7 });
    const trajectories = [side(2, 18), side(2, 19), side(4, 18), side(4, 19), long];
    const options = { mode: "tree", budget: 24, replicas: 1, cost: { perToken: 1, perPair: 0 } } as const;
    const { occurrences } = packTrajectories(trajectories, options);
    const ofLong = occurrences.batch.slice(occurrences.offsets[4], occurrences.offsets[5]);
    expect(new Set(ofLong).size).toBe(3);
    for (const objective of objectives) await expectEqual(trajectories, objective);
  });

  it("gives gradient 0 for two identical samples with advantages +1 and −1", async () => {
    const twins = [1, -1].map((score) => sketchTrajectory({ tokens: [3, 40, 50, 60, 70], score }));
    const config = parseObjective({ kind: "grpo", aggregation: "token-mean" });
    await accumulateAs(engine, { config }, batchOf(twins.slice(0, 1), null), packings(twins.slice(0, 1), 1)["flat"]!);
    const { norm: ofOne } = await engine.gradient();
    await engine.discard();
    for (const forest of Object.values(packings(twins, 1))) {
      await accumulateAs(engine, { config }, batchOf(twins, null), forest);
      const { norm } = await engine.gradient();
      await engine.discard();
      expect(norm).toBeLessThan(1e-6 * ofOne);
    }
    await accumulateAs(engine, { config }, batchOf(twins, null), packings(twins, 1)["tree"]!);
    expect((await engine.gradient()).norm).toBe(0);
    await engine.discard();
  });
});

/** `turns` turns of six prompt tokens and six answers. */
function conversation(turns: number, record: string): Trajectory {
  const tokens = Array.from({ length: turns * 12 }, (_, i) => 3 + ((i * 7919) % 251));
  return sketchTrajectory({
    tokens,
    trainable: tokens.map((_, i) => (i % 12 >= 6 ? 1 : 0)),
    turn: tokens.map((_, i) => Math.floor(i / 12)),
    rollout: tokens.map(() => -5.9),
    record,
    score: 1,
  });
}

/** The oracle's model for longer inputs: rotary positions have no end of their own. */
async function modelForLongInputs(): Promise<string> {
  const folder = join(await temporaryFolder(), "model");
  await cp(oraclesPath("models", "llama-tiny"), folder, { recursive: true });
  const file = join(folder, "config.json");
  const config = JSON.parse(await readFile(file, "utf8"));
  await chmod(file, 0o600);
  await writeFile(file, JSON.stringify({ ...config, max_position_embeddings: 8192 }));
  return folder;
}

describe("a conversation of 300 turns", () => {
  it("trains in one micro-batch, and what is stored of it grows with its length and no faster", async () => {
    const stored: number[] = [];
    const folder = await modelForLongInputs();
    for (const turns of [100, 300]) {
      const { engine } = await open(folder);
      const setup = setupOn(engine, {
        objective: { kind: "gspo", aggregation: "sequence-mean", unit: "turn" },
        advantages: { estimator: "none" },
        training: { tokenBudget: 4096 },
      });
      const [step] = await runWindow(setup, [conversation(turns, `long-${turns}`)]);
      expect(step!.outcome.kind).toBe("applied");
      expect(step!.metrics).toMatchObject({ tokens_trainable: turns * 6, tokens_packed: turns * 12, units: turns });
      expect(step!.rows[0]!.spans.length).toBe(turns);
      const blobs = await openFileBlobs(await temporaryFolder());
      const columns = await encodeColumns(
        blobs,
        Object.values(step!.rows[0]!.columns) as TypedArray[],
        Number.MAX_SAFE_INTEGER,
      );
      stored.push(columns.reduce((sum, column) => sum + (column.kind === "inline" ? column.data.length : 0), 0));
    }
    expect(stored[0]).toBeGreaterThan(0);
    expect(stored[1]! / stored[0]!).toBeLessThan(3.3);
  });

  it("needs memory that grows with its length and no faster", async () => {
    const { model } = await open("llama-tiny");
    const bytes: number[] = [];
    for (const turns of [100, 200, 300]) bytes.push((await model.trainer.plan(turns * 12)).activationBytes);
    const [first, second, third] = bytes as [number, number, number];
    expect((third - second) / (second - first)).toBeLessThan(1.1);
  });
});

describe("a checkpoint of the embedded engine", () => {
  it("goes on exactly where the uninterrupted run would have been", async () => {
    const trajectories = [
      sketchTrajectory({ tokens: [3, 40, 50, 60, 70], score: 1, group: "g" }),
      sketchTrajectory({ tokens: [3, 40, 51, 61], score: 0, group: "g" }),
    ];
    const steps = async (engine: EmbeddedTrainingEngine, from: number, to: number) => {
      const results: StepResult[] = [];
      for (let at = from; at < to; at++) {
        const setup = setupOn(engine, { training: { lr: 1e-3, weightDecay: 0.1 } });
        results.push(...(await runWindow(setup, trajectories, { policyVersion: at, applied: at, window: at })));
      }
      return results.map(({ metrics }) => metrics);
    };
    const dir = await temporaryFolder();
    const whole = await open("qwen3-tiny");
    await steps(whole.engine, 0, 2);
    const state = { step: 2, applied: 2, window: 2, stepOfWindow: 0, epoch: 0, taskPosition: 2, seed: 0 };
    await writeCheckpoint(dir, { ...state, policyVersion: 2, criticVersion: null }, { policy: whole.engine });
    const expected = await steps(whole.engine, 2, 4);

    const { checkpoint, skipped } = await latestWhole(dir);
    expect(skipped).toEqual([]);
    const resumed = await open("qwen3-tiny");
    const restored = await loadCheckpoint(checkpoint!, { policy: resumed.engine });
    expect(restored.policyVersion).toBe(resumed.model.native.version());
    expect(await steps(resumed.engine, 2, 4)).toEqual(expected);
    for (const { name } of whole.model.native.tensors()) {
      expect(await resumed.model.readTensor(name)).toEqual(await whole.model.readTensor(name));
    }
  });

  it("opens as a model folder of its own", async () => {
    const dir = await temporaryFolder();
    const { engine } = await open("llama-tiny");
    const state = { step: 0, applied: 0, window: 0, stepOfWindow: 0, epoch: 0, taskPosition: 0, seed: 0 };
    const written = await writeCheckpoint(dir, { ...state, policyVersion: 0, criticVersion: null }, { policy: engine });
    const copy = join(dir, "copy");
    await cp(join(written.path, "policy"), copy, { recursive: true });
    const model = await openEmbeddedModel(copy);
    opened.push(model);
    expect(model.info().architecture).toBe(opened[0]!.info().architecture);
  });
});

describe("a value head", () => {
  it("learns beside the policy by PPO", async () => {
    const { engine } = await open("llama-tiny", true);
    const setup = setupOn(engine, {
      objective: { kind: "ppo", aggregation: "token-mean", value: { coef: 0.5, clip: 0.2 } },
      advantages: { estimator: "gae", gamma: 1, lambda: 0.95, whiten: true },
      training: { lr: 1e-3, epochsPerWindow: 4 },
    });
    const steps = await runWindow(setup, [
      sketchTrajectory({ tokens: [3, 40, 50, 60, 70], score: 1 }),
      sketchTrajectory({ tokens: [3, 40, 51, 61], score: -1 }),
    ]);
    const losses = steps.map(({ metrics }) => metrics.value_loss!);
    expect(losses.at(-1)).toBeLessThan(losses[0]!);
  });
});

describe("weights that give numbers which are not finite", () => {
  it("stop the step with the record, the call and the first token that brings them in", async () => {
    // With a tied head the token would spoil every logit instead of the states that read it.
    const untied = modelOracles().find(({ tied }) => !tied);
    const { model, engine } = await open(untied!.dir);
    const name = "model.embed_tokens.weight";
    const embedding = await model.readTensor(name);
    const { hiddenSize } = engine.info();
    embedding.fill(Number.NaN, 77 * hiddenSize, 78 * hiddenSize);
    await model.writeTensor(name, embedding);
    const trajectories = [
      sketchTrajectory({ tokens: [3, 40, 50, 60], score: 1, record: "sound" }),
      sketchTrajectory({ tokens: [3, 40, 50, 77, 51, 52, 53], score: 0, record: "odd" }),
    ];
    const setup = setupOn(engine, { advantages: { estimator: "batch_mean" } });
    await expect(runWindow(setup, trajectories)).rejects.toMatchObject({
      code: "TRAINING_NON_FINITE",
      at: { record: "odd", call: "odd/call-0", token: 2 },
    });
    expect((await engine.gradient()).norm).toBe(0);
    expect(model.native.version()).toBe(0);
  });
});
