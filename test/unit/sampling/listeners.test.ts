import { getEventListeners } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createStopSwitch } from "../../../agent-daemon/src/runs/stopSwitch.ts";
import { systemClock } from "../../../agent-daemon/src/sampling/clock.ts";
import { evaluateTasks } from "../../../agent-daemon/src/sampling/evaluation.ts";
import type { GroupContext } from "../../../agent-daemon/src/sampling/group.ts";
import { createLimiter } from "../../../agent-daemon/src/sampling/limiter.ts";
import { sampleWave } from "../../../agent-daemon/src/sampling/wave.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { toySession } from "../../support/captured.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { spokenSessions } from "../../support/spokenSession.ts";

const settings = {
  groups: 24,
  groupSize: 4,
  minGroupSize: 2,
  refillLimit: 0,
  retries: 0,
  deadline: null,
  sampling: { maxNewTokens: 8, maxTurns: null, temperature: 1, topP: 1, topK: 0, minP: 0, stop: [] },
  limits: { start: null, callGap: null, total: 60_000, evaluate: 5_000 },
};

/** Names of the warnings that the process was given until the returned function is called. */
function warnings(): () => Promise<string[]> {
  const seen: string[] = [];
  const listen = (warning: Error) => seen.push(`${warning.name}: ${warning.message}`);
  process.on("warning", listen);
  onTestFinished(() => void process.off("warning", listen));
  return async () => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    return seen;
  };
}

test("many rollouts at once listen to one stop signal without a warning, and none is left listening", async () => {
  const warned = warnings();
  const store = await openSqliteStore(join(await temporaryFolder(), "records.sqlite"));
  onTestFinished(() => store.dispose());
  const stops = createStopSwitch();
  let most = 0;
  const agents: AbortSignal[] = [];
  const context: GroupContext<unknown> = {
    run: "r",
    attempt: 1,
    store,
    limiter: createLimiter(40),
    clock: systemClock,
    cancel: stops.now,
    onRecord: () => {},
    openSession: spokenSessions({ answer: () => "hello" }),
    recipe: {
      rollout: async (_task, agent) => {
        agents.push(agent.signal);
        most = Math.max(most, getEventListeners(stops.now, "abort").length);
        await agent.chat({ messages: [{ role: "user", content: "hello" }] });
      },
      evaluate: (record) => (record.id.endsWith("s0") ? 0 : 1),
    },
  };
  let next = 0;
  const task = (split: "train" | "heldOut", index: number) => ({ id: `q${index}`, split, index, payload: {} });
  const wave = await sampleWave(() => ({ task: task("train", next++), epoch: 0 }), settings, context);
  expect(wave.counts.graded).toBe(96);
  const heldOut = Array.from({ length: 30 }, (_, index) => task("heldOut", index));
  expect((await evaluateTasks(heldOut, 0, settings, context)).graded).toBe(30);
  expect(most).toBeGreaterThan(0);
  expect(getEventListeners(stops.now, "abort")).toEqual([]);
  expect(agents.flatMap((signal) => getEventListeners(signal, "abort"))).toEqual([]);
  expect(await warned()).toEqual([]);
});

test("many calls of one rollout leave nothing listening to its signal", async () => {
  const warned = warnings();
  const over = new AbortController();
  const session = toySession({ signal: over.signal, settings: { maxNewTokens: 2 } });
  const ask = () => session.agent.chat({ messages: [{ role: "user", content: "q" }] });
  await Promise.all(Array.from({ length: 30 }, ask));
  await session.close();
  expect(getEventListeners(over.signal, "abort")).toEqual([]);
  expect(await warned()).toEqual([]);
});
