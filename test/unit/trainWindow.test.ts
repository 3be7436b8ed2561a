import { describe, expect, it } from "vitest";
import { planOf, trainWindow } from "../../agent-daemon/src/training/trainWindow.ts";
import { stepMetricDefinitions, stepTimingDefinitions } from "../../protocol/metrics.ts";
import type { Trajectory } from "../../protocol/trajectory.ts";
import { logprobsOf } from "../support/gradientOf.ts";
import { ReferenceEngine } from "../support/referenceEngine.ts";
import { runWindow, sketchSetup } from "../support/trainerSetup.ts";
import { sketchTrajectory } from "../support/trajectories.ts";

const prompt = [3, 4, 5];

/** A group of samples after one prompt, scored by how many tokens are 7. */
function group(name: string, samples: number[][], extra: Partial<Trajectory> = {}): Trajectory[] {
  return samples.map((sample, index) => ({
    ...sketchTrajectory({
      tokens: [...prompt, ...sample],
      trainable: [0, 0, 0, ...sample.map(() => 1)],
      record: `${name}-${index}`,
      group: name,
      score: sample.filter((token) => token === 7).length,
    }),
    ...extra,
  }));
}

const twoGroups = () => [
  ...group("a", [
    [7, 7, 2],
    [8, 9, 2],
    [7, 6, 2],
  ]),
  ...group("b", [
    [6, 6, 6, 2],
    [7, 9, 2],
  ]),
];

/** Rollout log-probabilities as a sampler with the same weights would record them. */
async function sampledBy(engine: ReferenceEngine, trajectories: Trajectory[]): Promise<Trajectory[]> {
  const logprobs = await logprobsOf(engine, trajectories);
  return trajectories.map((trajectory, t) => {
    const rollout = new Float64Array(trajectory.tokens.length).fill(Number.NaN);
    let k = 0;
    trajectory.trainable.forEach((flag, i) => {
      if (flag === 1) rollout[i] = logprobs[t]![k++]!;
    });
    return { ...trajectory, rollout };
  });
}

describe("one optimizer step a window", () => {
  it("takes old from its own forward: no forward before, ratio 1", async () => {
    const setup = sketchSetup();
    const [step, ...more] = await runWindow(setup, twoGroups());
    expect(more).toEqual([]);
    expect(setup.policy.calls.map(({ kind }) => kind)).toEqual(["accumulate"]);
    expect(step).toMatchObject({ outcome: { kind: "applied" }, policyVersion: 1, pass: 0 });
    expect(step!.metrics).toMatchObject({ ratio_mean: 1, kl_old_k3: 0, clip_fraction: 0, skipped: 0, lr: 0.01 });
  });

  it("reports every number under a name that is defined", async () => {
    const engine = new ReferenceEngine();
    const [step] = await runWindow(sketchSetup(), await sampledBy(engine, twoGroups()));
    for (const name of Object.keys(step!.metrics)) expect(stepMetricDefinitions).toHaveProperty(name);
    for (const name of Object.keys(step!.timings)) expect(stepTimingDefinitions).toHaveProperty(name);
    expect(step!.metrics).toMatchObject({
      records: 5,
      trajectories: 5,
      groups: 2,
      zero_variance_groups: 0,
      reward_mean: 0.8,
      reward_min: 0,
      reward_max: 2,
      tokens_trainable: 16,
      tokens_sampled: 16,
      tokens_flat: 31,
      tokens_packed: 17,
      token_ratio: 31 / 17,
      micro_batches: 1,
      mismatch_tokens: 16,
    });
    expect(step!.metrics.mismatch_abs_max).toBeLessThan(1e-6);
    expect(step!.metrics.grad_norm).toBeGreaterThan(0);
  });

  it("leaves a ledger of every planned record and a row for each trained trajectory", async () => {
    const [step] = await runWindow(sketchSetup({ advantages: { estimator: "group_mean", dropZero: true } }), [
      ...group("a", [
        [7, 2],
        [8, 2],
      ]),
      ...group("even", [
        [8, 2],
        [9, 2],
      ]),
    ]);
    expect(step!.consumed).toEqual([
      { record: "a-0", pass: 0, calls: 1, tokens: 2 },
      { record: "a-1", pass: 0, calls: 1, tokens: 2 },
      { record: "even-0", pass: 0, calls: 0, tokens: 0 },
      { record: "even-1", pass: 0, calls: 0, tokens: 0 },
    ]);
    expect(step!.metrics).toMatchObject({ zero_variance_groups: 1, dropped: 2, trajectories: 2 });
    expect(step!.rows.map(({ record }) => record)).toEqual(["a-0", "a-1"]);
    const { columns, spans, occurrences, leaf } = step!.rows[0]!;
    expect({ spans, occurrences, leaf }).toEqual({
      spans: [{ call: "a-0/call-0", from: 0, start: 0, length: 2 }],
      occurrences: 2,
      leaf: "a-0/call-0",
    });
    expect([...columns.advantage!]).toEqual([0.5, 0.5]);
    expect(columns.old).toEqual(columns.new);
    expect([...columns.staleness!]).toEqual([0, 0]);
  });

  it("spans only the tokens that are trained, by their place in the call", async () => {
    const trajectory = {
      ...sketchTrajectory({ tokens: [3, 4, 5, 6, 7, 8], trainable: [0, 1, 0, 1, 1, 1], record: "r", score: 1 }),
      calls: ["first", "second"],
      call: Int32Array.of(-1, 0, 0, 0, 1, 1),
    };
    const [step] = await runWindow(sketchSetup({ advantages: { estimator: "none" } }), [trajectory]);
    expect(step!.rows[0]!.spans).toEqual([
      { call: "first", from: 0, start: 0, length: 1 },
      { call: "first", from: 2, start: 1, length: 1 },
      { call: "second", from: 0, start: 2, length: 2 },
    ]);
  });

  it("raises what was rewarded, and lowers it with the signs flipped", async () => {
    for (const sign of [1, -1]) {
      const setup = sketchSetup({ objective: { kind: "reinforce", aggregation: "token-mean" } });
      const samples = twoGroups().map((trajectory) => ({ ...trajectory, score: sign * trajectory.score! }));
      const before = await logprobsOf(setup.policy, samples.slice(0, 1));
      for (let i = 0; i < 20; i++) await runWindow(setup, samples, { policyVersion: i, applied: i });
      const after = await logprobsOf(setup.policy, samples.slice(0, 1));
      expect(Math.sign(after[0]![0]! - before[0]![0]!)).toBe(sign);
    }
  });

  it("trains chat data by cross entropy, without scores or a sampler", async () => {
    const setup = sketchSetup({ objective: { kind: "cross_entropy", aggregation: "token-mean" } });
    const data = [sketchTrajectory({ tokens: [3, 4, 5, 6, 7], trainable: [0, 0, 1, 0, 1], score: null })];
    const losses: number[] = [];
    for (let i = 0; i < 30; i++) {
      const [step] = await runWindow(setup, data, { policyVersion: i, applied: i });
      losses.push(step!.metrics.loss!);
      expect(step!.mismatch).toBeNull();
    }
    expect(losses.at(-1)).toBeLessThan(losses[0]! / 3);
  });
});

describe("several steps a window", () => {
  it("share one old, taken before the first; every group is consumed once a pass", async () => {
    const setup = sketchSetup({ training: { stepsPerWindow: 2, epochsPerWindow: 3, lr: 0.05 } });
    const trajectories = [
      ...twoGroups(),
      ...group("c", [
        [7, 2],
        [6, 2],
      ]),
    ];
    const plan = planOf(setup, { trajectories, window: 4 });
    for (const pass of [0, 1, 2]) {
      const consumed = plan.filter((step) => step.pass === pass).flatMap(({ consumption }) => consumption);
      expect(consumed.map(({ record }) => record).sort()).toEqual(trajectories.map(({ record }) => record).sort());
    }
    for (const { trajectories: members } of plan) {
      const groups = new Set(members.map((t) => trajectories[t]!.group));
      const whole = trajectories.filter((trajectory) => groups.has(trajectory.group));
      expect(members.length).toBe(whole.length);
    }
    const steps = await runWindow(setup, trajectories, { window: 4 });
    expect(setup.policy.calls.map(({ kind }) => kind)).toEqual(["forward", ...new Array(6).fill("accumulate")]);
    expect(steps.map(({ policyVersion }) => policyVersion)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(steps[0]!.metrics.kl_old_k3).toBe(0);
    expect(steps[5]!.metrics.kl_old_k3).toBeGreaterThan(0);
    expect(steps[5]!.metrics.staleness_max).toBe(5);
    const first = steps[0]!.rows[0]!;
    const again = steps
      .slice(2)
      .flatMap(({ rows }) => rows)
      .find(({ record }) => record === first.record)!;
    expect(again.columns.old).toEqual(first.columns.old);
    expect(again.columns.new).not.toEqual(first.columns.new);
  });

  it("go on where a window was left, with the same steps", async () => {
    const options = { training: { stepsPerWindow: 2, epochsPerWindow: 2 } };
    const whole = sketchSetup(options);
    const steps = await runWindow(whole, twoGroups());
    const resumed = await runWindow(sketchSetup(options), twoGroups(), { stepsDone: 3 });
    expect(resumed.length).toBe(1);
    expect(resumed[0]!.consumed).toEqual(steps[3]!.consumed);
  });

  it("skip a step that has no group left, and count it", async () => {
    const setup = sketchSetup({ training: { stepsPerWindow: 3 } });
    const steps = await runWindow(setup, twoGroups());
    expect(steps.map(({ outcome }) => outcome.kind)).toEqual(["applied", "applied", "skipped"]);
    expect(steps[2]!.consumed).toEqual([]);
  });

  it("run no forward for what will not be trained", async () => {
    const setup = sketchSetup({
      advantages: { estimator: "group_mean", dropZero: true },
      training: { epochsPerWindow: 2 },
    });
    const even = group("even", [
      [8, 2],
      [9, 2],
    ]);
    const [first] = await runWindow(setup, [
      ...even,
      ...group("a", [
        [7, 2],
        [8, 2],
      ]),
    ]);
    const tokens = setup.policy.calls.map(({ batches }) =>
      batches.reduce((sum, batch) => sum + batch.tokens.length, 0),
    );
    expect(tokens).toEqual([7, 7, 7]);
    expect(first!.consumed.length).toBe(4);
  });

  it("follow the schedule by applied steps", async () => {
    const schedule = { kind: "linear", warmupSteps: 2, finalFraction: 0.5 };
    const setup = sketchSetup({ training: { steps: 5, lr: 1, schedule, epochsPerWindow: 5 } });
    const steps = await runWindow(setup, twoGroups());
    expect(steps.map(({ metrics }) => metrics.lr)).toEqual([0.5, 1, 1, 0.75, 0.5]);
    expect(setup.policy.steps.map(({ lr }) => lr)).toEqual([0.5, 1, 1, 0.75, 0.5]);
  });
});

describe("a frozen reference", () => {
  it("is a snapshot of the same engine: KL 0 at first, above 0 after steps", async () => {
    const policy = new ReferenceEngine();
    await policy.snapshot("reference");
    const setup = sketchSetup({
      policy,
      reference: { engine: policy, weights: { kind: "snapshot", id: "reference" } },
      objective: { kind: "grpo", aggregation: "token-mean", kl: { estimator: "k3", coef: 0.1 } },
      training: { lr: 0.05 },
    });
    const [first] = await runWindow(setup, twoGroups());
    const [second] = await runWindow(setup, twoGroups(), { policyVersion: 1, applied: 1 });
    expect(first!.metrics.kl_k3).toBe(0);
    expect(second!.metrics.kl_k3).toBeGreaterThan(0);
    expect(second!.metrics.kl_loss).toBe(second!.metrics.kl_k3);
    expect(second!.rows[0]!.columns.reference).toEqual(first!.rows[0]!.columns.old);
  });

  it("enters scores before the group statistics with placement reward", async () => {
    const policy = new ReferenceEngine();
    const reference = { engine: new ReferenceEngine({ seed: 3 }), weights: { kind: "policy" } as const };
    const trajectories = group("a", [
      [7, 2],
      [8, 2],
    ]);
    const old = await logprobsOf(policy, trajectories);
    const ref = await logprobsOf(reference.engine, trajectories);
    const [step] = await runWindow(
      sketchSetup({
        policy,
        reference,
        objective: { kind: "grpo", aggregation: "token-mean", kl: { coef: 0.5, placement: "reward" } },
      }),
      trajectories,
    );
    const total = (t: number) => old[t]!.reduce((sum, x, i) => sum - 0.5 * (x - ref[t]![i]!), 0);
    const [a, b] = [1 + total(0), 0 + total(1)];
    expect(step!.rows[0]!.columns.advantage![0]).toBeCloseTo((a - b) / 2, 5);
    expect(step!.metrics).not.toHaveProperty("kl_loss");
  });

  it("that the objective needs and the run lacks is refused before anything is computed", async () => {
    const setup = sketchSetup({
      objective: { kind: "grpo", aggregation: "token-mean", kl: { estimator: "k3", coef: 1 } },
    });
    await expect(runWindow(setup, twoGroups())).rejects.toMatchObject({ code: "TRAINING_SETUP_INVALID" });
    expect(setup.policy.calls).toEqual([]);
  });
});

describe("a critic", () => {
  const advantages = { estimator: "gae", gamma: 1, lambda: 0.9, whiten: true };
  const objective = { kind: "ppo", aggregation: "token-mean", value: { coef: 0.5, clip: 0.2 } };

  it("as a value head of the policy learns in the same step", async () => {
    const setup = sketchSetup({ advantages, objective, training: { epochsPerWindow: 2 } });
    const [first, second] = await runWindow(setup, twoGroups());
    expect(first!.metrics.value_loss).toBeGreaterThan(second!.metrics.value_loss!);
    expect(first!.metrics.loss).toBeCloseTo(first!.metrics.policy_loss! + 0.5 * first!.metrics.value_loss!, 10);
    expect(first!.rows[0]!.columns.oldValue).toEqual(first!.rows[0]!.columns.newValue);
    expect(first!.rows[0]!.columns.return).toBeDefined();
  });

  it("with weights of its own gets the same value loss and gradient, and steps beside the policy", async () => {
    const shared = sketchSetup({ advantages, objective });
    const apart = sketchSetup({ advantages, objective, critic: new ReferenceEngine() });
    const [one] = await runWindow(shared, twoGroups());
    const [two] = await runWindow(apart, twoGroups());
    expect(two!.metrics.value_loss).toBeCloseTo(one!.metrics.value_loss!, 6);
    expect(two!.metrics.loss).toBeCloseTo(one!.metrics.loss!, 6);
    expect(two!.rows[0]!.columns.newValue).toEqual(one!.rows[0]!.columns.newValue);
    expect(two!.metrics.critic_grad_norm).toBeGreaterThan(0);
    expect(apart.critic).toMatchObject({ version: 1 });
    const { norm } = await new ReferenceEngine().gradient();
    expect(norm).toBe(0);
  });

  it("is refused where no engine has a value head", async () => {
    const setup = sketchSetup({ advantages, objective, policy: new ReferenceEngine({ value: false }) });
    await expect(runWindow(setup, twoGroups())).rejects.toMatchObject({ code: "TRAINING_SETUP_INVALID" });
  });
});

describe("scores", () => {
  it("of a record with several trajectories enter the group once", async () => {
    const [first, second] = group("a", [
      [7, 2],
      [8, 2],
    ]) as [Trajectory, Trajectory];
    const branch = { ...group("a", [[7, 9, 2]])[0]!, score: 1 };
    const [step] = await runWindow(sketchSetup(), [first, second, branch]);
    expect(step!.rows.map(({ columns }) => columns.advantage![0])).toEqual([0.5, -0.5, 0.5]);
    expect(step!.metrics).toMatchObject({ records: 2, trajectories: 3, reward_mean: 0.5 });
    expect(step!.consumed).toEqual([
      { record: "a-0", pass: 0, calls: 1, tokens: 5 },
      { record: "a-1", pass: 0, calls: 1, tokens: 2 },
    ]);
  });

  it("that are missing leave their record out, counted", async () => {
    const trajectories = group("a", [
      [7, 2],
      [8, 2],
      [6, 2],
    ]);
    trajectories[2] = { ...trajectories[2]!, score: null };
    const [step] = await runWindow(sketchSetup(), trajectories);
    expect(step!.rows.length).toBe(2);
    expect(step!.metrics).toMatchObject({ ungraded: 1, reward_mean: 0.5 });
  });
});

describe("the comparison with the sampler", () => {
  it("counts only tokens of the version that is trained and names the worst", async () => {
    const setup = sketchSetup();
    const samples = await sampledBy(setup.policy, twoGroups());
    samples[0] = { ...samples[0]!, version: samples[0]!.version.map((version) => (version < 0 ? -1 : 4)) };
    samples[1]!.rollout![4]! -= 0.25;
    const [step] = await runWindow(setup, samples.slice(0, 3), { policyVersion: 5 });
    expect(step!.metrics.mismatch_tokens).toBe(0);
    const [fresh] = await runWindow(sketchSetup(), samples);
    expect(fresh!.metrics.mismatch_tokens).toBe(13);
    expect(fresh!.mismatch!.worst[0]).toMatchObject({ place: { record: "a-1", call: "a-1/call-0", token: 1 } });
    expect(fresh!.metrics.mismatch_abs_max).toBeCloseTo(0.25, 5);
  });
});

describe("trainWindow", () => {
  it("does nothing of a step before it is asked for", async () => {
    const setup = sketchSetup({ training: { epochsPerWindow: 2 } });
    const steps = trainWindow(setup, { trajectories: twoGroups(), window: 0, policyVersion: 0, applied: 0 });
    await steps.next();
    expect(setup.policy.version).toBe(1);
    await steps.return(undefined);
    expect(setup.policy.version).toBe(1);
  });
});
