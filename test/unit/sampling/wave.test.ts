import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../../agent-daemon/src/sampling/clock.ts";
import { type GroupContext, gradedScore, type ScheduledTask } from "../../../agent-daemon/src/sampling/group.ts";
import { createLimiter } from "../../../agent-daemon/src/sampling/limiter.ts";
import type { RecipeCode } from "../../../agent-daemon/src/sampling/rollout.ts";
import { sampleWave, type WaveSettings } from "../../../agent-daemon/src/sampling/wave.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { RecordDocument } from "../../../protocol/record.ts";
import { manualClock } from "../../support/manualClock.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { type Speaker, type SpokenTrajectory, spokenSessions } from "../../support/spokenSession.ts";

const settings: WaveSettings = {
  groups: 2,
  groupSize: 2,
  minGroupSize: 2,
  refillLimit: 0,
  retries: 0,
  deadline: null,
  sampling: { maxNewTokens: 8, maxTurns: null, temperature: 1, topP: 1, topK: 0, minP: 0, stop: [] },
  limits: { start: null, callGap: null, total: 60_000, evaluate: 5_000 },
};

function tasksInOrder(count = 100): () => ScheduledTask | null {
  let next = 0;
  return () => {
    if (next === count) return null;
    const index = next++;
    return { task: { id: `q${index}`, split: "train", index, payload: { index } }, epoch: 0 };
  };
}

interface Setup {
  readonly recipe: Partial<RecipeCode>;
  readonly speaker?: Speaker;
  readonly clock?: Clock;
  readonly cancel?: AbortSignal;
  readonly places?: number;
}

const sayHello: RecipeCode["rollout"] = async (_task, agent) => {
  await agent.chat({ messages: [{ role: "user", content: "hello" }] });
};

async function setUp({ recipe, speaker, clock = systemClock, cancel, places = Number.POSITIVE_INFINITY }: Setup) {
  const store = await openSqliteStore(join(await temporaryFolder(), "records.sqlite"));
  onTestFinished(() => store.dispose());
  const seen: RecordDocument[] = [];
  const context: GroupContext<SpokenTrajectory> = {
    run: "r",
    attempt: 1,
    store,
    limiter: createLimiter(places),
    clock,
    cancel: cancel ?? new AbortController().signal,
    onRecord: (record) => seen.push(record),
    openSession: spokenSessions(speaker ?? { answer: ({ record }) => `answer of ${record}` }),
    recipe: { rollout: sayHello, evaluate: (record) => (record.id.endsWith("s0") ? 0 : 1), ...recipe },
  };
  const stored = async (id: string) => (await store.records.get([id])).get(id);
  return { context, store, stored, seen };
}

describe("a wave", () => {
  test("hands over its groups in data order, records ready and tasks with their scores", async () => {
    const { context, store, stored } = await setUp({ recipe: {} });
    const wave = await sampleWave(tasksInOrder(), settings, context);
    expect(wave.accepted.map((group) => group.scheduled.task.id)).toEqual(["q0", "q1"]);
    expect(wave.accepted.map((group) => group.samples.map(gradedScore))).toEqual([
      [0, 1],
      [0, 1],
    ]);
    expect(wave.counts).toMatchObject({ records: 4, graded: 4, failed: 0, groups: 2, replaced: 0, dropped: 0 });
    expect((await stored("t0-1-s1"))?.status).toBe("ready");
    expect((await store.tasks.get(["t0-1"])).get("t0-1")).toMatchObject({ status: "completed", scores: [0, 1] });
  });

  test("keeps a rollout that throws inside its record and tries it again while the budget lasts", async () => {
    const { context, stored } = await setUp({
      recipe: {
        rollout: async (task, agent) => {
          if (agent.record === "t0-0-s1" || agent.record.startsWith("t0-1-s1")) throw new TypeError("no such field");
          await sayHello(task, agent);
        },
      },
    });
    const wave = await sampleWave(tasksInOrder(), { ...settings, retries: 1 }, context);
    expect(wave.accepted.map((group) => group.scheduled.task.id)).toEqual(["q0"]);
    expect(wave.dropped.map((group) => group.scheduled.task.id)).toEqual(["q1"]);
    expect(wave.accepted[0]?.samples.map((sample) => sample.record.id)).toEqual(["t0-0-s0", "t0-0-s1-r1"]);
    expect(wave.counts).toMatchObject({ records: 6, failed: 3, retried: 2, dropped: 1 });
    expect(await stored("t0-1-s1-r1")).toMatchObject({
      status: "failed",
      score: null,
      resample: 1,
      error: { code: "SAMPLING_ROLLOUT_FAILED", message: "rollout threw TypeError: no such field" },
    });
    expect((await stored("t0-1-s0"))?.status).toBe("abandoned");
  });

  test("begins its rollouts one a turn of the event loop, so that timers and commands are served between them", async () => {
    let turns = 0;
    const begun: number[] = [];
    const { context } = await setUp({
      recipe: {
        rollout: async (task, agent) => {
          begun.push(turns);
          await sayHello(task, agent);
        },
      },
    });
    let over = false;
    const count = () => {
      turns += 1;
      if (!over) setImmediate(count);
    };
    setImmediate(count);
    await sampleWave(tasksInOrder(), { ...settings, groups: 10, groupSize: 5 }, context);
    over = true;
    expect(begun).toHaveLength(50);
    expect(new Set(begun).size).toBe(50);
  });

  test("gives up a rollout that ignores its abort signal, and goes on without it", async () => {
    const clock = manualClock();
    const { context, stored } = await setUp({
      clock,
      recipe: {
        rollout: async (task, agent) => {
          if (agent.record === "t0-0-s0") await new Promise(() => {});
          await sayHello(task, agent);
        },
      },
    });
    const sampled = sampleWave(tasksInOrder(), { ...settings, minGroupSize: 1 }, context);
    await clock.advance(60_000);
    const wave = await sampled;
    expect(wave.accepted).toHaveLength(2);
    expect(await stored("t0-0-s0")).toMatchObject({ status: "failed", error: { code: "SAMPLING_ROLLOUT_TIMEOUT" } });
    expect(clock.waiting).toBe(0);
  });

  test("holds a place of the concurrency limit no longer than the rollout's time-out", async () => {
    const clock = manualClock();
    const { context, seen } = await setUp({
      clock,
      places: 1,
      recipe: { rollout: () => new Promise(() => {}) },
    });
    const sampled = sampleWave(tasksInOrder(), { ...settings, groups: 1 }, context);
    await clock.advance(60_000);
    expect(seen.map((record) => record.id)).toEqual(["t0-0-s0"]);
    await clock.advance(60_000);
    expect((await sampled).counts).toMatchObject({ failed: 2, dropped: 1 });
  });

  test("tells a rollout that never starts from one that stalls between calls", async () => {
    const clock = manualClock();
    const { context, stored } = await setUp({
      clock,
      recipe: {
        rollout: async (task, agent) => {
          if (agent.record.endsWith("s1")) await sayHello(task, agent);
          await new Promise(() => {});
        },
      },
    });
    const limits = { ...settings.limits, start: 1000, callGap: 2000 };
    const sampled = sampleWave(tasksInOrder(), { ...settings, groups: 1, limits }, context);
    await clock.advance(1000);
    expect((await stored("t0-0-s0"))?.error?.code).toBe("SAMPLING_START_TIMEOUT");
    expect((await stored("t0-0-s1"))?.status).toBe("running");
    await clock.advance(1000);
    await sampled;
    expect((await stored("t0-0-s1"))?.error?.code).toBe("SAMPLING_CALL_GAP_TIMEOUT");
  });

  test("does not take a long call for a stall between calls", async () => {
    const clock = manualClock();
    let speak: (text: string) => void = () => {};
    const { context } = await setUp({
      clock,
      speaker: { answer: () => new Promise<string>((resolve) => (speak = resolve)) },
      recipe: { evaluate: () => 1 },
    });
    const limits = { ...settings.limits, start: 1000, callGap: 1000 };
    const sampled = sampleWave(
      tasksInOrder(),
      { ...settings, groups: 1, groupSize: 1, minGroupSize: 1, limits },
      context,
    );
    await clock.advance(30_000);
    speak("done");
    expect((await sampled).counts.graded).toBe(1);
  });

  test("leaves a record ungraded when evaluate overruns, throws or returns no finite number", async () => {
    const clock = manualClock();
    const { context, stored } = await setUp({
      clock,
      recipe: {
        evaluate: (record) => {
          if (record.id.endsWith("s0")) return new Promise<number>(() => {});
          if (record.id.endsWith("s1")) throw new Error("verifier is down");
          return record.id.endsWith("s2") ? Number.NaN : 1;
        },
      },
    });
    const sampled = sampleWave(
      tasksInOrder(),
      { ...settings, groups: 1, groupSize: 4, minGroupSize: 1, retries: 3 },
      context,
    );
    await clock.advance(5_000);
    const wave = await sampled;
    expect(wave.counts).toMatchObject({ records: 4, graded: 1, ungraded: 3, failed: 3, retried: 0 });
    const codes = await Promise.all([0, 1, 2].map(async (sample) => await stored(`t0-0-s${sample}`)));
    expect(codes.map((record) => [record?.status, record?.score, record?.error?.code])).toEqual([
      ["failed", "ungraded", "SAMPLING_EVALUATE_TIMEOUT"],
      ["failed", "ungraded", "SAMPLING_EVALUATE_FAILED"],
      ["failed", "ungraded", "SAMPLING_SCORE_INVALID"],
    ]);
  });

  test("excludes and counts ungraded records and never takes them for 0", async () => {
    const { context, stored } = await setUp({
      recipe: {
        evaluate: (record) => {
          if (record.id.endsWith("s0")) return { score: null, labels: ["no reference"] };
          return record.id.endsWith("s1") ? (undefined as unknown as number) : 1;
        },
      },
    });
    const wave = await sampleWave(tasksInOrder(), { ...settings, groups: 1, groupSize: 4 }, context);
    expect(wave.accepted[0]?.samples.map(gradedScore)).toEqual([null, null, 1, 1]);
    expect(wave.counts).toMatchObject({ graded: 2, ungraded: 2, withoutVariance: 1 });
    expect(await stored("t0-0-s0")).toMatchObject({ status: "abandoned", score: "ungraded", labels: ["no reference"] });
  });

  test("replaces groups without variance by the next tasks, up to the limit", async () => {
    const uniform = new Set([0, 2, 3]);
    const evaluate: RecipeCode["evaluate"] = (record) =>
      uniform.has(record.task.index) ? 1 : Number(record.id.endsWith("s0"));
    const { context, stored } = await setUp({ recipe: { evaluate } });
    const wave = await sampleWave(tasksInOrder(), { ...settings, groups: 3, refillLimit: 2 }, context);
    expect(wave.accepted.map((group) => group.scheduled.task.index)).toEqual([1, 3, 4]);
    expect(wave.replaced.map((group) => group.scheduled.task.index)).toEqual([0, 2]);
    expect(wave.counts).toMatchObject({ groups: 3, replaced: 2, withoutVariance: 1 });
    expect((await stored("t0-2-s0"))?.status).toBe("abandoned");
  });

  test("decides a group at its deadline with what is graded by then", async () => {
    const clock = manualClock();
    const { context, stored } = await setUp({
      clock,
      recipe: {
        rollout: async (task, agent) => {
          if (agent.record === "t0-0-s2") await new Promise(() => {});
          if (task.index === 1 && !agent.record.endsWith("s0")) await new Promise(() => {});
          await sayHello(task, agent);
        },
      },
    });
    const sampled = sampleWave(tasksInOrder(), { ...settings, groupSize: 3, deadline: 9_000, retries: 5 }, context);
    await clock.advance(9_000);
    const wave = await sampled;
    expect(wave.accepted.map((group) => group.samples.map(gradedScore))).toEqual([[0, 1, null]]);
    expect(wave.dropped.map((group) => group.scheduled.task.index)).toEqual([1]);
    expect(await stored("t0-0-s2")).toMatchObject({ status: "cancelled", error: { code: "SAMPLING_GROUP_DECIDED" } });
  });

  test("ends at once when cancelled: what runs and what waits is cancelled, and the reason is thrown", async () => {
    const cancel = new AbortController();
    const { context, store } = await setUp({
      cancel: cancel.signal,
      places: 1,
      recipe: { rollout: () => new Promise(() => {}) },
    });
    const sampled = sampleWave(tasksInOrder(), settings, context);
    const reason = new RollscopeError("RUN_STOPPED", "Stopped.", { next: "Resume." });
    cancel.abort(reason);
    await expect(sampled).rejects.toBe(reason);
    const { items } = await store.records.query({ run: "r" });
    expect(items.map((record) => [record.status, record.error?.code])).toEqual(
      Array(4).fill(["cancelled", "RUN_STOPPED"]),
    );
  });

  test("stops and throws when the store refuses what it writes", async () => {
    const { context } = await setUp({ recipe: {} });
    await sampleWave(tasksInOrder(), settings, context);
    await expect(sampleWave(tasksInOrder(), settings, context)).rejects.toMatchObject({ code: "STORE_DUPLICATE" });
  });

  test("does not depend on the order in which rollouts end", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 24, maxLength: 24 }),
        fc.array(fc.nat(), { minLength: 24, maxLength: 24 }),
        async (scores, delays) => {
          const waits: { at: number; go: () => void }[] = [];
          const place = (record: string) => {
            const [, index, sample] = /t0-(\d+)-s(\d+)/.exec(record) ?? [];
            return (Number(index) * 2 + Number(sample)) % 24;
          };
          const run = async (delayed: boolean) => {
            const { context } = await setUp({
              speaker: {
                answer: async ({ record, streamKey }) => {
                  if (delayed) {
                    await new Promise<void>((go) => {
                      waits.push({ at: delays[place(record)] ?? 0, go });
                      setImmediate(() => {
                        waits.sort((a, b) => a.at - b.at);
                        waits.shift()?.go();
                      });
                    });
                  }
                  return streamKey;
                },
              },
              recipe: { evaluate: (record) => Math.min(1, scores[place(record.id)] ?? 0) },
            });
            const wave = await sampleWave(tasksInOrder(), { ...settings, groups: 4, refillLimit: 4 }, context);
            return [wave.accepted, wave.replaced, wave.dropped].map((groups) =>
              groups.map((group) =>
                group.samples.map((sample) => [
                  sample.record.id,
                  gradedScore(sample),
                  sample.outcome.session?.trajectories(),
                ]),
              ),
            );
          };
          expect(await run(true)).toEqual(await run(false));
        },
      ),
      { numRuns: 8 },
    );
  });
});
