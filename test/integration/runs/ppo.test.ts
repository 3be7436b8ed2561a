import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { embeddedEngines } from "../../../agent-daemon/src/runs/embeddedEngines.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { loadTrajectory } from "../../../agent-daemon/src/store/loadTrajectory.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import type { JournalEvent } from "../../../protocol/journal.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { tinyModelFiles } from "../../support/tinyModelFolder.ts";
import { attemptToyRun, newToyRun, type ToyRun, toyFiles } from "../../support/toyRun.ts";

const recipe = `
name: ppo
model: { source: ./model }
data: { train: tasks.jsonl }
sampling: { tasksPerStep: 2, groupSize: 2, maxNewTokens: 6 }
objective: { kind: ppo, aggregation: token-mean, value: { coef: 0.5, clip: 0.2 } }
advantages: { estimator: gae, gamma: 1, lambda: 0.95, whiten: true }
training: { steps: 3, lr: 1e-3, seed: 5, tokenBudget: 512 }
`;

const code = `
import { defineRecipe } from "rollscope/recipe";
export default defineRecipe({
  async rollout(task, agent) {
    await agent.chat({ messages: [{ role: "user", content: task.payload.question }] });
  },
  evaluate: (record) => record.text.length % 3,
});
`;

async function newRun(): Promise<ToyRun> {
  const { "tasks.jsonl": tasks = "" } = toyFiles;
  const files = { ...tinyModelFiles(), "recipe.yaml": recipe, "recipe.ts": code, "tasks.jsonl": tasks };
  return await newToyRun(await temporaryFolder(files));
}

const metricsOf = (events: readonly JournalEvent[]) =>
  events.flatMap((event) => (event.type === "step" ? [event.metrics] : []));

function policyAt(run: ToyRun, step: number): Record<string, Buffer> {
  const folder = join(run.folder.checkpoints, `step_${step}`, "policy");
  const weights = readdirSync(folder).filter((name) => name.endsWith(".safetensors"));
  return Object.fromEntries(weights.map((name) => [name, readFileSync(join(folder, name))]));
}

test("PPO trains a value head on the policy, and a resume has it as it was", async () => {
  const whole = await newRun();
  const { end, events } = await attemptToyRun(whole, { openEngines: embeddedEngines });
  expect(end).toMatchObject({ status: "completed", step: 3, error: null });
  const metrics = metricsOf(events);
  expect(metrics.map((step) => step["value_loss"])).toEqual([
    expect.any(Number),
    expect.any(Number),
    expect.any(Number),
  ]);
  // The head starts at zero, so the first loss is the mean square of the returns, and it falls as the head learns.
  expect(metrics[0]?.["value_loss"]).toBeGreaterThan(0);
  const head = policyAt(whole, 3)["value_head.safetensors"];
  expect(head?.subarray(-64).some((byte) => byte !== 0)).toBe(true);

  const run = await newRun();
  const first = await attemptToyRun(run, {
    openEngines: embeddedEngines,
    onEvent: (event, stops) => {
      if (event.type === "step" && event.step === 2) stops.stop();
    },
  });
  expect(first.end).toMatchObject({ status: "stopped", step: 2, error: null });
  const second = await attemptToyRun(run, { attempt: 2, openEngines: embeddedEngines });
  expect(second.end).toMatchObject({ status: "completed", step: 3, error: null });
  expect([...metricsOf(first.events), ...metricsOf(second.events)]).toEqual(metrics);
  expect(policyAt(run, 3)).toEqual(policyAt(whole, 3));
});

test("the values, returns and advantages of each trained token are on record", async () => {
  const run = await newRun();
  const { end } = await attemptToyRun(run, { openEngines: embeddedEngines });
  const store = await openSqliteStore(run.folder.records, { readOnly: true });
  onTestFinished(() => store.dispose());
  const trajectory = await loadTrajectory(store, await openFileBlobs(run.folder.blobs), end.record ?? "");
  const [span] = trajectory.calls[0]?.training ?? [];
  const { advantage, return: returns, oldValue, newValue } = span?.columns ?? {};
  expect([advantage, returns, oldValue, newValue].map((column) => column?.length)).toEqual(Array(4).fill(span?.length));
  expect(oldValue).toEqual(newValue);
});
