// The token-waste waterfall on runs of a tiny model: whatever the recipe does with tokens, the stages add up to what was sampled.
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { runWaterfall, stepWaterfall, type WaterfallSource } from "../../../agent-daemon/src/daemon/waterfall.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { readLedger } from "../../../agent-daemon/src/store/ledger.ts";
import { allDocuments } from "../../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { type WasteStage, wasteStages } from "../../../protocol/runView.ts";
import { attemptToyRun, newToyRun, toyFolder } from "../../support/toyRun.ts";

const open: { dispose(): Promise<void> }[] = [];
afterAll(async () => {
  for (const store of open) await store.dispose();
});

async function sourceOf(
  overrides: readonly string[],
  files: Readonly<Record<string, string>> = {},
  stopAfter: number | null = null,
): Promise<WaterfallSource & { readonly completed: boolean }> {
  const run = await newToyRun(await toyFolder(files), overrides);
  let { end } = await attemptToyRun(run, {
    onEvent: (event, stops) => {
      if (event.type === "step" && event.step === stopAfter) stops.stop();
    },
  });
  if (end.status === "stopped") ({ end } = await attemptToyRun(run, { attempt: 2 }));
  const completed = end.status === "completed";
  // Only a recipe of one's own may fail too often.
  expect(completed || files["recipe.ts"] !== undefined).toBe(true);
  const store = await openSqliteStore(run.folder.records, { readOnly: true });
  open.push(store);
  return { store, blobs: await openFileBlobs(run.folder.blobs), run: run.folder.run, config: run.config, completed };
}

/** Tokens that training rollouts sampled, by a plain sum over calls. */
async function sampledTokens({ store, run }: WaterfallSource): Promise<number> {
  const records = await allDocuments(store.records, { run, split: "train" });
  const train = new Set(records.map(({ id }) => id));
  const calls = await allDocuments(store.calls, { run });
  return calls.filter(({ record }) => train.has(record)).reduce((sum, { output }) => sum + output.length, 0);
}

/** Tokens of the records that a step used, and of those that nobody used since the step before, by a plain sum. */
async function tokensBehind({ store, blobs, run }: WaterfallSource, number: number): Promise<number> {
  const steps = (await allDocuments(store.steps, { run }, { order: "step" })).filter(({ step }) => step > 0);
  const index = steps.findIndex(({ step }) => step === number);
  const ledgers = await Promise.all(steps.map((step) => readLedger(blobs, step)));
  const used = new Set(ledgers[index]!.map(({ record }) => record));
  const usedByAny = new Set(ledgers.flat().map(({ record }) => record));
  const [since, until] = [steps[index - 1]?.committed ?? Number.NEGATIVE_INFINITY, steps[index]!.committed];
  const train = await allDocuments(store.records, { run, split: "train" });
  for (const { id, created } of train) if (!usedByAny.has(id) && created > since && created <= until) used.add(id);
  const calls = await allDocuments(store.calls, { run });
  return calls.filter(({ record }) => used.has(record)).reduce((sum, { output }) => sum + output.length, 0);
}

const noTokens = () => Object.fromEntries(wasteStages.map((stage) => [stage, 0])) as Record<WasteStage, number>;

describe("the waterfall", () => {
  it.each([
    ["plain GRPO", []],
    ["groups replaced, truncated calls masked", ["--sampling.refill.limit=3", "--sampling.truncated=mask"]],
    [
      "several steps and passes a window with a tight clip",
      [
        "--training.stepsPerWindow=2",
        "--training.epochsPerWindow=2",
        "--objective.clipLow=0",
        "--objective.clipHigh=0",
      ],
    ],
    ["a correction that drops sequences", ["--objective.correction.sequenceMask=[5,6]"]],
  ] as const)("adds up to every sampled token: %s", async (_name, overrides) => {
    const source = await sourceOf(overrides);
    const steps = (await allDocuments(source.store.steps, { run: source.run })).filter(({ step }) => step > 0);
    for (const { step } of steps) {
      const { sampled, stages } = (await stepWaterfall(source, step))!;
      expect(wasteStages.reduce((sum, stage) => sum + stages[stage]!, 0)).toBe(sampled);
    }
    const total = await runWaterfall(source);
    expect(total.sampled).toBe(await sampledTokens(source));
    expect(total.sampled).toBeGreaterThan(0);
  });

  it("adds up in every step and over the run, whatever a recipe does with its rollouts and its tokens", async () => {
    const anyRecipe = fc.record({
      groupSize: fc.integer({ min: 3, max: 5 }),
      tasksPerStep: fc.integer({ min: 1, max: 3 }),
      maxNewTokens: fc.integer({ min: 1, max: 4 }),
      stepsPerWindow: fc.integer({ min: 1, max: 2 }),
      epochsPerWindow: fc.integer({ min: 1, max: 2 }),
      truncated: fc.constantFrom("mask", "keep"),
      refill: fc.integer({ min: 0, max: 2 }),
      clip: fc.constantFrom(0, 0.2),
      correction: fc.constantFrom(null, "sequenceMask=[5,6]", "sequenceMask=[0.5,2]", "tokenMask=[0.9,1.1]"),
      /** Of a hundred rollouts so many fail, are left without a score, call the model twice. */
      failing: fc.constantFrom(0, 20),
      ungraded: fc.constantFrom(0, 20),
      twice: fc.constantFrom(0, 50),
      scores: fc.constantFrom("1", "record.text.charCodeAt(0) % 3", "record.text.length"),
      stopAfter: fc.constantFrom(null, 1, 2),
    });
    await fc.assert(
      fc.asyncProperty(anyRecipe, async (recipe) => {
        const { groupSize, tasksPerStep, maxNewTokens, truncated, stepsPerWindow, epochsPerWindow, clip } = recipe;
        const code = `
import { defineRecipe } from "rollscope/recipe";
let count = 0;
export default defineRecipe({
  async rollout(task, agent) {
    const own = (count++ * 37) % 100;
    const first = await agent.chat({ messages: [{ role: "user", content: task.payload.question }] });
    if (own < ${recipe.failing}) throw new Error("planned");
    if (own >= ${100 - recipe.twice}) await agent.chat({ messages: [
      { role: "user", content: task.payload.question }, first.message, { role: "user", content: "1" } ] });
  },
  evaluate(record) { return (count * 53) % 100 < ${recipe.ungraded} ? null : ${recipe.scores}; },
});`;
        const source = await sourceOf(
          [
            `--sampling.groupSize=${groupSize}`,
            `--sampling.tasksPerStep=${tasksPerStep}`,
            `--sampling.maxNewTokens=${maxNewTokens}`,
            `--sampling.truncated=${truncated}`,
            `--sampling.refill.limit=${recipe.refill}`,
            `--training.stepsPerWindow=${stepsPerWindow}`,
            `--training.epochsPerWindow=${epochsPerWindow}`,
            `--objective.clipLow=${clip}`,
            `--objective.clipHigh=${clip}`,
            ...(recipe.correction === null ? [] : [`--objective.correction.${recipe.correction}`]),
          ],
          { "recipe.ts": code },
          recipe.stopAfter,
        );
        const total = noTokens();
        const steps = (await allDocuments(source.store.steps, { run: source.run })).filter(({ step }) => step > 0);
        expect(steps.length > 0 || !source.completed).toBe(true);
        for (const { step } of steps) {
          const { sampled, stages } = (await stepWaterfall(source, step))!;
          for (const stage of wasteStages) expect(Number.isInteger(stages[stage]) && stages[stage]! >= 0).toBe(true);
          expect(wasteStages.reduce((sum, stage) => sum + stages[stage]!, 0)).toBe(sampled);
          expect(sampled).toBe(await tokensBehind(source, step));
        }
        const ofRun = await runWaterfall(source, async (_step, compute) => {
          const one = await compute();
          for (const stage of wasteStages) total[stage] += one.stages[stage]!;
          return one;
        });
        expect(ofRun.stages).toEqual(total);
        // What was sampled after the last step that was committed belongs to none.
        if (source.completed) expect(ofRun.sampled).toBe(await sampledTokens(source));
        else expect(ofRun.sampled).toBeLessThanOrEqual(await sampledTokens(source));
      }),
      { numRuns: 6 },
    );
  });

  it("knows tokens of groups without variance, and counts as contributing what has a gradient", async () => {
    const source = await sourceOf([]);
    const { stages } = await runWaterfall(source);
    expect(stages.contributing).toBeGreaterThan(0);
    expect(stages.zeroVariance).toBeGreaterThan(0);
    expect(stages.clipped + stages.filtered + stages.stale + stages.notCaptured).toBe(0);
  });

  it("calls tokens masked, truncated, filtered and clipped by the setting that did it", async () => {
    const masked = await runWaterfall(await sourceOf(["--sampling.truncated=mask"]));
    expect(masked.stages.truncated).toBeGreaterThan(0);
    const filtered = await runWaterfall(await sourceOf(["--objective.correction.sequenceMask=[5,6]"]));
    expect(filtered.stages).toMatchObject({ contributing: 0, clipped: 0 });
    expect(filtered.stages.filtered).toBeGreaterThan(0);
    const clipped = await runWaterfall(
      await sourceOf(["--training.stepsPerWindow=2", "--objective.clipLow=0", "--objective.clipHigh=0"]),
    );
    expect(clipped.stages.clipped).toBeGreaterThan(0);
  });

  it("has no answer for a step that was not committed", async () => {
    expect(await stepWaterfall(await sourceOf(["--training.steps=1"]), 7)).toBeNull();
  });
});
