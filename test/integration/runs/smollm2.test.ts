// Whole runs of a real model: a process each, because a compute pool lives as long as its process.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { loadTrajectory } from "../../../agent-daemon/src/store/loadTrajectory.ts";
import { allDocuments } from "../../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { verifyLedger } from "../../../agent-daemon/src/store/verifyLedger.ts";
import { smollm2Path } from "../../support/model.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { startProgram } from "../../support/program.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

const recipe = `
import { defineRecipe } from "rollscope/recipe";
export default defineRecipe({
  async rollout(task, agent) {
    await agent.chat({ messages: [{ role: "user", content: task.payload.question }] });
  },
  evaluate: (record) => record.text.length % 7,
});
`;

const config = (model: string) => `
name: real
model: { source: ${JSON.stringify(model)} }
data: { train: tasks.jsonl, heldOutCount: 2 }
sampling: { tasksPerStep: 2, groupSize: 2, maxNewTokens: 8 }
objective: { kind: grpo, aggregation: token-mean }
advantages: { estimator: group_normalized }
training: { steps: 2, lr: 1e-5, seed: 11, checkpoint: { keepLast: 1 } }
evaluation: { everySteps: null, maxNewTokens: 4 }
`;

const tasks = ["Name a river.", "What is 3 + 4?", "Say hello.", "Count to three.", "Name a colour.", "Is ice cold?"];

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/embeddedRollscope.ts"));
});
afterAll(() => remove());

interface Finished {
  readonly run: string;
  readonly path: string;
  readonly status: string;
  readonly record: string;
  readonly peakMemory: number;
}

async function runOnce(folder: string, ...more: string[]): Promise<Finished> {
  const program = startProgram(script, ["run", folder, "--json", `--output-dir=${join(folder, "runs")}`, ...more]);
  program.process.stdin?.end();
  const { code, errors } = await program.ended;
  const output = await program.output;
  const document = JSON.parse(output);
  expect([code, errors, document.error]).toEqual([0, "", null]);
  return document;
}

/** Everything that must be equal for one seed. */
async function contents({ run, path }: Finished) {
  const store = await openSqliteStore(join(path, "records.sqlite"), { readOnly: true });
  onTestFinished(() => store.dispose());
  const blobs = await openFileBlobs(join(path, "blobs"));
  const records = await allDocuments(store.records, { run });
  const trajectories = await Promise.all(records.map((record) => loadTrajectory(store, blobs, record.id)));
  const weights = join(path, "checkpoints", "step_2", "policy", "model.safetensors");
  return {
    metrics: (await allDocuments(store.steps, { run }, { order: "step" })).map((step) => step.metrics),
    tokens: trajectories
      .map(({ record, calls }) => [
        record.id,
        record.score,
        calls.map((call) => [
          [...call.output],
          [...call.logprobs],
          call.training.map((span) => [...(span.columns.new ?? [])]),
        ]),
      ])
      .sort(),
    weights: createHash("sha256").update(readFileSync(weights)).digest("hex"),
    faults: (await verifyLedger(store, blobs, run)).faults,
  };
}

describe("a run of SmolLM2", { timeout: 600_000 }, () => {
  test("gives identical tokens, metrics and weights for one seed, in under 4.5 GB", async () => {
    const folder = await temporaryFolder({
      "recipe.ts": recipe,
      "recipe.yaml": config(smollm2Path()),
      "tasks.jsonl": tasks.map((question) => JSON.stringify({ question })).join("\n"),
    });
    mkdirSync(join(folder, "runs"));
    const one = await runOnce(folder);
    const two = await runOnce(folder, "--sampling.concurrency=1");
    expect(one.status).toBe("completed");
    const first = await contents(one);
    expect(first.faults).toEqual([]);
    expect(first.metrics[1]?.["mismatch_abs_max"]).toBeLessThan(1e-4);
    expect(await contents(two)).toEqual(first);
    expect(one.peakMemory).toBeLessThan(4.5e9);
    expect(existsSync(join(one.path, "control.json"))).toBe(false);
  });
});
