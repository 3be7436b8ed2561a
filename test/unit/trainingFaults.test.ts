import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Scalars } from "../../agent-daemon/src/engines/interface.ts";
import { readReplay, replayGradient, writeReplay } from "../../agent-daemon/src/training/stepReplay.ts";
import { ReferenceEngine } from "../support/referenceEngine.ts";
import { runWindow, sketchSetup } from "../support/trainerSetup.ts";
import { sketchTrajectory } from "../support/trajectories.ts";

const supervised = { objective: { kind: "cross_entropy", aggregation: "token-mean" } };

/** An engine that reports a loss per token of our choice: by the token's id. */
function engineWithLosses(losses: { readonly [token: number]: number }): ReferenceEngine {
  const engine = new ReferenceEngine();
  engine.corrupt = (scalars: Scalars) => {
    const { batches } = engine.calls.at(-1)!;
    const batch = batches.find(({ tokens }) => tokens.length === scalars.logprob!.length)!;
    batch.tokens.forEach((token, i) => {
      if (batch.wanted[i] === 1) scalars.logprob![i] = -losses[token]!;
    });
  };
  return engine;
}

const row = (token: number, length: number, kept = true) =>
  sketchTrajectory({
    tokens: [3, ...new Array(length).fill(token)],
    trainable: [0, ...new Array(length).fill(kept ? 1 : 0)],
  });

describe("known faults", () => {
  it("P10: a token mean does not change with the micro-batch split", async () => {
    const norms: number[] = [];
    for (const tokenBudget of [9, 100]) {
      const policy = engineWithLosses({ 4: 3, 5: 0.5 });
      const setup = sketchSetup({ ...supervised, policy, training: { tokenBudget, packing: "rows" } });
      const [step] = await runWindow(setup, [row(4, 2), row(5, 8)]);
      expect(step!.metrics.loss).toBeCloseTo(1, 12);
      expect(step!.metrics.micro_batches).toBe(tokenBudget === 9 ? 2 : 1);
      norms.push(step!.metrics.grad_norm!);
    }
    expect(norms[0]).toBeCloseTo(norms[1]!, 10);
  });

  it("P11: masked tokens leave the divisor", async () => {
    const policy = engineWithLosses({ 4: 1, 5: 1, 6: 1 });
    const [step] = await runWindow(sketchSetup({ ...supervised, policy }), [row(4, 4), row(5, 4), row(6, 8, false)]);
    expect(step!.metrics.loss).toBeCloseTo(1, 12);
  });

  it("P11: a batch without a trained token gives loss 0, leaves the weights alone and says so", async () => {
    const setup = sketchSetup(supervised);
    const before = structuredClone(setup.policy.weights);
    const promptFillsLimit = sketchTrajectory({ tokens: [3, 4, 5], trainable: [0, 0, 0] });
    const [step] = await runWindow(setup, [row(4, 4, false), row(5, 4, false), promptFillsLimit]);
    expect(step!.outcome).toEqual({
      kind: "skipped",
      code: "TRAINING_NO_TRAINABLE_TOKENS",
      reason: expect.stringContaining("trainable token"),
    });
    expect(step!.metrics).toMatchObject({ loss: 0, skipped: 1, tokens_trainable: 0 });
    expect(step!.consumed.map(({ tokens }) => tokens)).toEqual([0, 0, 0]);
    expect(setup.policy.weights).toEqual(before);
    expect(setup.policy.version).toBe(0);
  });
});

describe("a number that is not finite", () => {
  it("in the gradient skips the step, leaves optimizer and schedule alone, and can be made again", async () => {
    const schedule = { kind: "linear" };
    const setup = sketchSetup({ ...supervised, training: { lr: 1, steps: 3, schedule } });
    const before = structuredClone(setup.policy.weights);
    setup.policy.gradientFault = Number.NaN;
    const [bad] = await runWindow(setup, [row(4, 3)]);
    expect(bad!.outcome).toMatchObject({ kind: "skipped", code: "TRAINING_GRADIENT_NON_FINITE" });
    expect(bad!.policyVersion).toBe(0);
    expect(setup.policy.weights).toEqual(before);
    expect(await setup.policy.gradient()).toEqual({ norm: 0, finite: true });

    setup.policy.gradientFault = 0;
    const dir = await mkdtemp(join(tmpdir(), "replay-"));
    await writeReplay(join(dir, "step_1.replay"), bad!.replay!);
    expect(await readdir(dir)).toEqual(["step_1.replay"]);
    const replay = await readReplay(join(dir, "step_1.replay"));
    expect(replay).toEqual(bad!.replay);
    await replayGradient(setup.policy, replay);
    const again = await setup.policy.gradient();
    await setup.policy.discard();
    const [good] = await runWindow(setup, [row(4, 3)]);
    expect(good!.metrics).toMatchObject({ lr: 1, skipped: 0 });
    expect(good!.metrics.grad_norm).toBeCloseTo(again.norm, 10);
    await writeFile(join(dir, "torn.replay"), "not one");
    await expect(readReplay(join(dir, "torn.replay"))).rejects.toMatchObject({ code: "TRAINING_REPLAY_INVALID" });
    await rm(dir, { recursive: true });
  });

  it("among the engine's log-probabilities names record, call and token, and leaves no gradient behind", async () => {
    const setup = sketchSetup(supervised);
    setup.policy.corrupt = (scalars) => {
      scalars.logprob![3] = Number.NEGATIVE_INFINITY;
    };
    await expect(runWindow(setup, [{ ...row(4, 4), record: "odd", calls: ["odd/1"] }])).rejects.toMatchObject({
      code: "TRAINING_NON_FINITE",
      at: { record: "odd", call: "odd/1", token: 2 },
    });
    expect(await setup.policy.gradient()).toEqual({ norm: 0, finite: true });
    expect(setup.policy.version).toBe(0);
  });

  it("as a score names the record", async () => {
    const odd = { ...row(4, 4), record: "odd", score: Number.NaN };
    await expect(runWindow(sketchSetup(), [odd])).rejects.toMatchObject({
      code: "TRAINING_NON_FINITE",
      at: { record: "odd" },
    });
  });

  it("as a recorded log-probability names the token; where nothing is trained it may stand", async () => {
    const rollout = Float64Array.of(Number.NaN, -1, Number.POSITIVE_INFINITY, -1, -1);
    const odd = { ...row(4, 4), record: "odd", calls: ["odd/1"], score: 1, rollout };
    await expect(runWindow(sketchSetup(), [odd])).rejects.toMatchObject({
      at: { record: "odd", call: "odd/1", token: 1 },
    });
    const masked = { ...odd, trainable: Uint8Array.of(0, 1, 0, 1, 1) };
    const [step] = await runWindow(sketchSetup({ advantages: { estimator: "none" } }), [masked]);
    expect(step!.outcome.kind).toBe("applied");
  });
});

describe("a trajectory that was assembled wrongly", () => {
  it.each([
    ["trainable", { trainable: Uint8Array.of(1, 1, 1) }],
    ["turn", { turn: Int32Array.of(0, 0) }],
    ["temperature", { temperature: Float32Array.of(1, Number.NaN, 1) }],
  ])("is refused by the name of the column: %s", async (column, wrong) => {
    const trajectory = { ...row(4, 2), ...wrong };
    await expect(runWindow(sketchSetup(), [trajectory])).rejects.toMatchObject({
      code: "TRAINING_TRAJECTORY_INVALID",
      at: { column },
    });
  });
});
