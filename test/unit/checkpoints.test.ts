import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  latestWhole,
  loadCheckpoint,
  pruneCheckpoints,
  type Saved,
  writeCheckpoint,
} from "../../agent-daemon/src/training/checkpoints.ts";
import type { LoopState } from "../../protocol/checkpoint.ts";
import { ReferenceEngine } from "../support/referenceEngine.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "checkpoints-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const stateAt = (step: number): LoopState => ({
  step,
  applied: step,
  window: step,
  stepOfWindow: 0,
  epoch: 1,
  taskPosition: 3,
  seed: 7,
  policyVersion: step,
  criticVersion: null,
});

async function breakHalfway(step: number): Promise<void> {
  await writeCheckpoint(dir, stateAt(step), { policy: new ReferenceEngine({ seed: step }) });
  const folder = join(dir, `step_${step}`);
  const weights = join(folder, "policy", "weights.json");
  await truncate(weights, Math.floor((await readFile(weights)).length / 2));
  await rm(join(folder, "checkpoint.json"));
}

describe("checkpoints", () => {
  it("bring back weights, optimizer state, version and the state of the loop", async () => {
    const engine = new ReferenceEngine();
    await engine.step({ lr: 0.1, betas: [0.9, 0.99], eps: 1e-8, weightDecay: 0.1, decayed: "all", maxGradNorm: 1 });
    const written = await writeCheckpoint(dir, stateAt(1), {
      policy: engine,
      critic: new ReferenceEngine({ seed: 2 }),
    });
    const policy = new ReferenceEngine({ seed: 9 });
    const critic = new ReferenceEngine({ seed: 8 });
    const { checkpoint, skipped } = await latestWhole(dir);
    expect(checkpoint).toEqual(written);
    expect(skipped).toEqual([]);
    expect(await loadCheckpoint(checkpoint!, { policy, critic })).toEqual(stateAt(1));
    expect(policy.weights).toEqual(engine.weights);
    expect(policy.version).toBe(1);
    expect(critic.weights).toEqual(new ReferenceEngine({ seed: 2 }).weights);
  });

  it("P29: a half-written newest one is passed over with a reason, then rewritten", async () => {
    await writeCheckpoint(dir, stateAt(10), { policy: new ReferenceEngine() });
    await breakHalfway(20);
    const before = await latestWhole(dir);
    expect(before.checkpoint?.step).toBe(10);
    expect(before.skipped).toEqual([
      { step: 20, path: join(dir, "step_20"), reason: expect.stringContaining("no finish mark") },
    ]);
    await writeCheckpoint(dir, stateAt(20), { policy: new ReferenceEngine({ seed: 5 }) });
    const after = await latestWhole(dir);
    expect(after.checkpoint?.step).toBe(20);
    expect(after.skipped).toEqual([]);
  });

  it("P29: an empty state file, a shortened file and changed bytes each make it not whole", async () => {
    await writeCheckpoint(dir, stateAt(10), { policy: new ReferenceEngine() });
    const folder = join(dir, "step_20");
    const reasons: string[] = [];
    const afterDamage = async (damage: () => Promise<void>) => {
      await writeCheckpoint(dir, stateAt(20), { policy: new ReferenceEngine() });
      await damage();
      const { checkpoint, skipped } = await latestWhole(dir);
      expect(checkpoint?.step).toBe(10);
      reasons.push(skipped[0]!.reason);
    };
    await afterDamage(() => truncate(join(folder, "state.json"), 0));
    await afterDamage(() => truncate(join(folder, "policy", "optimizer.json"), 5));
    await afterDamage(() => rm(join(folder, "policy", "weights.json")));
    await afterDamage(async () => {
      const file = join(folder, "policy", "weights.json");
      await writeFile(file, (await readFile(file, "utf8")).replace("1", "2"));
    });
    await afterDamage(() => writeFile(join(folder, "checkpoint.json"), "{"));
    expect(reasons).toEqual([
      expect.stringMatching(/^state.json has 0 bytes/),
      expect.stringMatching(/^policy\/optimizer.json has 5 bytes/),
      "policy/weights.json is missing",
      expect.stringContaining("policy/weights.json are not those"),
      expect.stringContaining("finish mark"),
    ]);
  });

  it("P29: keep-last never deletes the last whole one for a broken newer one", async () => {
    await writeCheckpoint(dir, stateAt(10), { policy: new ReferenceEngine() });
    await breakHalfway(20);
    expect(await pruneCheckpoints(dir, 1)).toEqual([]);
    await breakHalfway(5);
    await writeCheckpoint(dir, stateAt(30), { policy: new ReferenceEngine() });
    expect(await pruneCheckpoints(dir, 1)).toEqual([20, 10, 5]);
    expect(await readdir(dir)).toEqual(["step_30"]);
  });

  it("keep the newest ones, by number", async () => {
    for (const step of [8, 9, 10, 11]) await writeCheckpoint(dir, stateAt(step), { policy: new ReferenceEngine() });
    expect(await pruneCheckpoints(dir, 2)).toEqual([9, 8]);
    expect((await latestWhole(dir)).checkpoint?.step).toBe(11);
  });

  it("leave nothing under the final name when the disk is full, and the old one as it was", async () => {
    const engine = new ReferenceEngine();
    await writeCheckpoint(dir, stateAt(10), { policy: engine });
    const onFullDisk: Saved = {
      load: engine.load.bind(engine),
      async save(folder) {
        await mkdir(folder);
        await writeFile(join(folder, "weights.json"), "half of it");
        await symlink("/dev/full", join(folder, "optimizer.json"));
        await writeFile(join(folder, "optimizer.json"), "the rest");
      },
    };
    await expect(writeCheckpoint(dir, stateAt(20), { policy: onFullDisk })).rejects.toMatchObject({
      code: "CHECKPOINT_DISK_FULL",
      at: { path: join(dir, "step_20") },
    });
    await expect(writeCheckpoint(dir, stateAt(10), { policy: onFullDisk })).rejects.toMatchObject({ retryable: true });
    expect(await readdir(dir)).toEqual(["step_10"]);
    expect((await latestWhole(dir)).checkpoint?.step).toBe(10);
    await writeCheckpoint(dir, stateAt(20), { policy: engine });
    expect((await latestWhole(dir)).checkpoint?.step).toBe(20);
  });

  it("name another failure as what it is", async () => {
    const refusing: Saved = { load: async () => undefined, save: () => Promise.reject(new Error("no such device")) };
    await expect(writeCheckpoint(dir, stateAt(1), { policy: refusing })).rejects.toMatchObject({
      code: "CHECKPOINT_WRITE_FAILED",
      message: expect.stringContaining("no such device"),
    });
  });

  it("survive a writer killed at any moment", async () => {
    await writeCheckpoint(dir, stateAt(10), { policy: new ReferenceEngine() });
    await mkdir(join(dir, ".partial-step_20", "policy"), { recursive: true });
    await rename(join(dir, "step_10"), join(dir, ".replaced-step_10"));
    expect((await latestWhole(dir)).checkpoint?.step).toBe(10);
    await writeCheckpoint(dir, stateAt(20), { policy: new ReferenceEngine() });
    expect((await readdir(dir)).sort()).toEqual(["step_10", "step_20"]);
  });

  it("say that there is none in an empty or missing folder", async () => {
    expect(await latestWhole(join(dir, "nowhere"))).toEqual({ checkpoint: null, skipped: [] });
  });
});
