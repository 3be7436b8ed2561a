import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { readJournal } from "../../../agent-daemon/src/runs/journal.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { loadTrajectory } from "../../../agent-daemon/src/store/loadTrajectory.ts";
import { allDocuments } from "../../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { verifyLedger } from "../../../agent-daemon/src/store/verifyLedger.ts";
import type { JournalEvent, JournalEventOf } from "../../../protocol/journal.ts";
import { referenceEngines } from "../../support/referenceEngines.ts";
import { attemptToyRun, newToyRun, type ToyRun, toyFolder } from "../../support/toyRun.ts";

function ofType<Type extends JournalEvent["type"]>(
  events: readonly JournalEvent[],
  type: Type,
): JournalEventOf<Type>[] {
  return events.filter((event) => event.type === type) as JournalEventOf<Type>[];
}

async function stores(run: ToyRun) {
  const store = await openSqliteStore(run.folder.records);
  onTestFinished(() => store.dispose());
  return { store, blobs: await openFileBlobs(run.folder.blobs) };
}

/** Tokens, log-probabilities, advantages and metrics of everything that counts, without times. */
async function contents(run: ToyRun) {
  const { store, blobs } = await stores(run);
  const steps = await allDocuments(store.steps, { run: run.folder.run }, { order: "step" });
  const trained = await allDocuments(store.records, { run: run.folder.run, numbers: { trainedCount: { min: 1 } } });
  const records = await Promise.all(
    trained.map(async (record) => {
      const { calls } = await loadTrajectory(store, blobs, record.id);
      return {
        id: record.id.replace(/-a\d+$/, ""),
        step: record.lastTrainedStep,
        score: record.score,
        tokens: calls.map((call) => [...call.output]),
        logprobs: calls.map((call) => [...call.logprobs]),
        advantages: calls.map((call) => call.training.map((span) => [...(span.columns.advantage ?? [])])),
      };
    }),
  );
  records.sort((a, b) => (a.id < b.id ? -1 : 1));
  const weights = readdirSync(run.folder.checkpoints)
    .sort()
    .map((name) => [name, readFileSync(join(run.folder.checkpoints, name, "policy", "weights.json"), "utf8")]);
  return {
    steps: steps.map(({ step, metrics, weightVersion }) => ({ step, metrics, weightVersion })),
    records,
    weights,
  };
}

describe("a run", () => {
  test("samples, trains, evaluates, saves and writes all of it down", async () => {
    const run = await newToyRun(await toyFolder());
    const { end, events } = await attemptToyRun(run);
    expect(end).toMatchObject({ status: "completed", step: 4, error: null });
    expect(ofType(events, "step").map((event) => event.step)).toEqual([1, 2, 3, 4]);
    expect(ofType(events, "evaluation").map((event) => [event.step, event.summary.tasks])).toEqual([
      [0, 4],
      [2, 4],
      [4, 4],
    ]);
    expect(Object.keys(ofType(events, "evaluation")[0]?.summary.scores ?? {})).toEqual(["score", "digit"]);
    expect(ofType(events, "checkpoint").map((event) => event.checkpoint)).toEqual([
      "checkpoints/step_2",
      "checkpoints/step_4",
    ]);
    expect(ofType(events, "mismatch")[0]?.metrics["mismatch_abs_max"]).toBeLessThan(1e-6);
    expect(ofType(events, "records").map((event) => event.counts.records)).toEqual([8, 8, 8, 8]);
    expect(readJournal(run.folder.journal).events).toEqual(events);
    const { store, blobs } = await stores(run);
    const report = await verifyLedger(store, blobs, run.folder.run);
    expect(report.faults).toEqual([]);
    expect(report).toMatchObject({ steps: 5, consumptions: 32 });
    const mismatched = { numbers: { trainedCount: 1, staleness: 0, mismatch: { max: 1e-6 } } };
    expect((await store.records.count({ run: run.folder.run, ...mismatched })).count).toBe(32);
    const [last] = await allDocuments(store.steps, { run: run.folder.run, step: 4 });
    expect(last).toMatchObject({ checkpoint: "checkpoints/step_4", weightVersion: 4 });
    expect(last?.metrics["eval_score"]).toBe(ofType(events, "evaluation").at(-1)?.summary.scores["score"]);
    expect(existsSync(run.folder.control)).toBe(false);
    expect(end.record).toMatch(/^t0-\d+-s\d$/);
  });

  test("learns what it is rewarded for, and nothing at a learning rate of 0", async () => {
    const folder = await toyFolder();
    const reward = async (lr: string) => {
      const overrides = ["training.steps=20", `training.lr=${lr}`, "evaluation.everySteps=null"];
      const { events } = await attemptToyRun(await newToyRun(folder, overrides));
      const scores = ofType(events, "evaluation").map((event) => event.summary.scores["score"] ?? Number.NaN);
      return { first: scores[0], last: scores.at(-1) };
    };
    const learned = await reward("0.05");
    expect(learned.last).toBeGreaterThan(0.7);
    expect(learned.first).toBeLessThan(0.5);
    const control = await reward("0");
    expect(control.last).toBe(control.first);
  });

  test("gives identical tokens, metrics and weights for one seed, and others for another", async () => {
    const folder = await toyFolder();
    const overrides = ["objective.kl={estimator: k3, coef: 0.05}", "sampling.concurrency=3", "sampling.refill.limit=1"];
    const one = await newToyRun(folder, overrides);
    const two = await newToyRun(folder, overrides);
    const three = await newToyRun(folder, [...overrides, "training.seed=6"]);
    for (const run of [one, two, three]) expect((await attemptToyRun(run)).end.status).toBe("completed");
    const first = await contents(one);
    expect(first.steps[1]?.metrics).toHaveProperty("kl_k3");
    expect(await contents(two)).toEqual(first);
    expect((await contents(three)).weights).not.toEqual(first.weights);
  });

  test("stops at the next safe point with a checkpoint, and a resume ends where an uninterrupted run does", async () => {
    const folder = await toyFolder();
    const whole = await newToyRun(folder);
    await attemptToyRun(whole);
    const run = await newToyRun(folder);
    const first = await attemptToyRun(run, {
      onEvent: (event, stops) => {
        if (event.type === "step" && event.step === 3) stops.stop();
      },
    });
    expect(first.end).toMatchObject({ status: "stopped", step: 3 });
    const second = await attemptToyRun(run, { attempt: 2 });
    expect(second.end).toMatchObject({ status: "completed", step: 4 });
    expect(ofType(second.events, "started")[0]?.resumed).toEqual({
      step: 3,
      checkpoint: "checkpoints/step_3",
      voidedSteps: 0,
    });
    const { weights: _w, ...resumed } = await contents(run);
    const { weights: _v, ...uninterrupted } = await contents(whole);
    expect(resumed).toEqual(uninterrupted);
    expect(weightsAt(run, 4)).toBe(weightsAt(whole, 4));
  });

  test("goes on after a crash from the last whole checkpoint: later rows are void, the same tasks come again", async () => {
    const folder = await toyFolder();
    const whole = await newToyRun(folder);
    await attemptToyRun(whole);
    const run = await newToyRun(folder);
    // As a kill leaves it: the process is gone in the middle of step 4, after steps 1 to 3.
    const copy = `${run.folder.path}-crashed`;
    await attemptToyRun(run, {
      onEvent: (event) => {
        if (event.type === "step" && event.step === 3) cpSync(run.folder.path, copy, { recursive: true });
      },
    });
    rmSync(run.folder.path, { recursive: true });
    cpSync(copy, run.folder.path, { recursive: true });

    const { end, events } = await attemptToyRun(run, { attempt: 2 });
    expect(end).toMatchObject({ status: "completed", step: 4 });
    expect(ofType(events, "started")[0]?.resumed).toEqual({
      step: 2,
      checkpoint: "checkpoints/step_2",
      voidedSteps: 1,
    });
    expect(ofType(events, "step").map((event) => event.step)).toEqual([3, 4]);
    const { weights: _w, ...resumed } = await contents(run);
    const { weights: _v, ...uninterrupted } = await contents(whole);
    expect(resumed).toEqual(uninterrupted);
    expect(weightsAt(run, 4)).toBe(weightsAt(whole, 4));
    const { store, blobs } = await stores(run);
    expect((await verifyLedger(store, blobs, run.folder.run)).faults).toEqual([]);
    const abandoned = await allDocuments(store.records, { run: run.folder.run, status: "abandoned", attempt: 1 });
    expect(abandoned).toHaveLength(8);
  });

  test("begins again when no checkpoint is whole, and says which were not used", async () => {
    const run = await newToyRun(await toyFolder());
    await attemptToyRun(run, {
      onEvent: (event, stops) => {
        if (event.type === "step" && event.step === 1) stops.stop();
      },
    });
    rmSync(join(run.folder.checkpoints, "step_1", "policy", "weights.json"));
    const { end, events } = await attemptToyRun(run, { attempt: 2 });
    expect(end.status).toBe("completed");
    expect(ofType(events, "started")[0]?.resumed).toEqual({ step: 0, checkpoint: null, voidedSteps: 2 });
    expect(ofType(events, "warning").map((event) => event.error.code)).toEqual(["CHECKPOINT_INVALID"]);
    const { store, blobs } = await stores(run);
    expect((await verifyLedger(store, blobs, run.folder.run)).faults).toEqual([]);
  });

  test("stops at once when it is told twice, in the middle of sampling", async () => {
    const recipe = `
      import { defineRecipe } from "rollscope/recipe";
      export default defineRecipe({ rollout: () => new Promise(() => {}), evaluate: () => 1 });
    `;
    const run = await newToyRun(await toyFolder({ "recipe.ts": recipe }), ["evaluation.atStart=false"]);
    const { end } = await attemptToyRun(run, {
      onEvent: (event, stops) => {
        if (event.type !== "phase" || event.phase !== "sampling") return;
        stops.stop();
        stops.stop();
      },
    });
    expect(end).toMatchObject({ status: "stopped", step: 0, error: null });
  });

  test("ends with the first failure when not one group can be trained on", async () => {
    const recipe = `
      import { defineRecipe } from "rollscope/recipe";
      export default defineRecipe({ rollout: () => { throw new Error("the tool server is down"); }, evaluate: () => 1 });
    `;
    const run = await newToyRun(await toyFolder({ "recipe.ts": recipe }));
    const { end, events } = await attemptToyRun(run);
    expect(end).toMatchObject({ status: "failed", error: { code: "SAMPLING_NOTHING_USABLE" } });
    expect(ofType(events, "ended")[0]?.error?.message).toContain("the tool server is down");
    expect(ofType(events, "evaluation")[0]?.summary).toMatchObject({ tasks: 4, failed: 4, scores: {} });
  });

  test("stops with an explanation when sampler and trainer disagree before any update", async () => {
    const run = await newToyRun(await toyFolder());
    const { end } = await attemptToyRun(run, {
      openEngines: async (...given) => {
        const engines = await referenceEngines(...given);
        const generate = engines.inference.generate.bind(engines.inference);
        engines.inference.generate = async function* (request, signal) {
          for await (const chunk of generate(request, signal)) {
            yield { ...chunk, logprobs: chunk.logprobs.map((logprob) => logprob - 0.01) };
          }
        };
        return engines;
      },
    });
    expect(end).toMatchObject({ status: "failed", step: 0, error: { code: "SAMPLING_MISMATCH" } });
    const { store } = await stores(run);
    expect((await allDocuments(store.steps, { run: run.folder.run })).map((step) => step.step)).toEqual([0]);
  });

  test("refuses to resume when a task file has changed, or the run is complete", async () => {
    const folder = await toyFolder();
    const run = await newToyRun(folder);
    const { end: early } = await attemptToyRun(run, {
      onEvent: (event, stops) => {
        if (event.type === "step" && event.step === 3) stops.stop();
      },
    });
    expect(early.status).toBe("stopped");
    const tasks = readFileSync(join(folder, "tasks.jsonl"), "utf8");
    appendFileSync(join(folder, "tasks.jsonl"), '{"id":"new","question":"1+1="}\n');
    const { end } = await attemptToyRun(run, { attempt: 2 });
    expect(end.error).toMatchObject({ code: "RUN_NOT_RESUMABLE", message: expect.stringContaining("tasks.jsonl") });
    writeFileSync(join(folder, "tasks.jsonl"), tasks);
    expect((await attemptToyRun(run, { attempt: 3 })).end.status).toBe("completed");
    const journal = readFileSync(run.folder.journal, "utf8");
    await expect(attemptToyRun(run, { attempt: 4 })).rejects.toMatchObject({ code: "RUN_NOT_RESUMABLE" });
    expect(readFileSync(run.folder.journal, "utf8")).toBe(journal);
  });

  test("takes several steps a window and ends inside one", async () => {
    const overrides = [
      "training.stepsPerWindow=2",
      "training.epochsPerWindow=2",
      "training.steps=6",
      "evaluation.everySteps=null",
    ];
    const run = await newToyRun(await toyFolder(), overrides);
    const { end, events } = await attemptToyRun(run);
    expect(end).toMatchObject({ status: "completed", step: 6 });
    expect(ofType(events, "records").map((event) => event.counts.records)).toEqual([16, 16]);
    expect(ofType(events, "checkpoint").map((event) => event.step)).toEqual([4, 6]);
    const { store, blobs } = await stores(run);
    expect((await verifyLedger(store, blobs, run.folder.run)).faults).toEqual([]);
  });
});

function weightsAt(run: ToyRun, step: number): string {
  return readFileSync(join(run.folder.checkpoints, `step_${step}`, "policy", "weights.json"), "utf8");
}
