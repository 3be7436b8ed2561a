// The token-waste waterfall on runs of a tiny model: whatever the recipe does with tokens, the stages add up to what was sampled.
import { afterAll, describe, expect, it } from "vitest";
import { runWaterfall, stepWaterfall, type WaterfallSource } from "../../../agent-daemon/src/daemon/waterfall.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { allDocuments } from "../../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { wasteStages } from "../../../protocol/runView.ts";
import { attemptToyRun, newToyRun, toyFolder } from "../../support/toyRun.ts";

const open: { dispose(): Promise<void> }[] = [];
afterAll(async () => {
  for (const store of open) await store.dispose();
});

async function sourceOf(overrides: readonly string[]): Promise<WaterfallSource> {
  const run = await newToyRun(await toyFolder(), overrides);
  const { end } = await attemptToyRun(run);
  expect(end.status).toBe("completed");
  const store = await openSqliteStore(run.folder.records, { readOnly: true });
  open.push(store);
  return { store, blobs: await openFileBlobs(run.folder.blobs), run: run.folder.run, config: run.config };
}

/** Tokens that training rollouts sampled, by a plain sum over calls. */
async function sampledTokens({ store, run }: WaterfallSource): Promise<number> {
  const records = await allDocuments(store.records, { run, split: "train" });
  const train = new Set(records.map(({ id }) => id));
  const calls = await allDocuments(store.calls, { run });
  return calls.filter(({ record }) => train.has(record)).reduce((sum, { output }) => sum + output.length, 0);
}

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
