// Why a loss is zero, on runs of a tiny model made so that one cause after the other holds.
import { afterEach, expect, it } from "vitest";
import { explainZeroLoss } from "../../../agent-daemon/src/daemon/explainZeroLoss.ts";
import type { WaterfallSource } from "../../../agent-daemon/src/daemon/waterfall.ts";
import { knownKeys } from "../../../agent-daemon/src/recipes/configKeys.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { recipeSchema } from "../../../protocol/recipe.ts";
import { explanationSchema } from "../../../protocol/runView.ts";
import { attemptToyRun, newToyRun, toyFolder } from "../../support/toyRun.ts";

const open: { dispose(): Promise<void> }[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.dispose();
});

const scoring = (evaluate: string) => ({
  "recipe.ts": `
import { defineRecipe } from "rollscope/recipe";
export default defineRecipe({
  async rollout(task, agent) { await agent.chat({ messages: [{ role: "user", content: task.payload.question }] }); },
  evaluate(record) { ${evaluate} },
});`,
});

async function explain(files: Readonly<Record<string, string>>, overrides: readonly string[], step = 1) {
  const run = await newToyRun(await toyFolder(files), ["--training.steps=2", ...overrides]);
  expect((await attemptToyRun(run)).end.status).toBe("completed");
  const store = await openSqliteStore(run.folder.records, { readOnly: true });
  open.push(store);
  const blobs = await openFileBlobs(run.folder.blobs);
  const source: WaterfallSource = { store, blobs, run: run.folder.run, config: run.config };
  const explanation = await explainZeroLoss(source, step);
  if (explanation === null) return null;
  const keys = new Set(knownKeys(recipeSchema).all);
  for (const { key } of explanation.causes) if (key !== null) expect(keys).toContain(key);
  return explanationSchema.parse(JSON.parse(JSON.stringify(explanation)));
}

it("says that every score is the same, and which", async () => {
  const found = await explain(scoring("return 0.25;"), []);
  expect(found!.answer).toMatch(/zero, and so is its gradient.*Every score of the step is 0.25/);
  expect(found!.causes[0]!.records.length).toBeGreaterThan(0);
});

it("says that groups are equal within themselves though they differ", async () => {
  const found = await explain(scoring("return record.task.index;"), []);
  expect(found!.causes[0]!.sentence).toContain("In each of the 2 groups all scores are equal");
});

it("says that answers were cut off and are masked, and that what is left has no advantage", async () => {
  const found = await explain({}, ["--sampling.truncated=mask", "--sampling.maxNewTokens=1"]);
  expect(found!.causes[0]).toMatchObject({ key: "sampling.maxNewTokens" });
  expect(found!.causes.map(({ sentence }) => sentence).join(" ")).toMatch(
    /trained tokens have the advantage 0|No trainable token/,
  );
});

it("says which filter took all gradients", async () => {
  const found = await explain({}, [
    "--objective.correction.sequenceMask=[5,6]",
    "--objective.aggregation=sequence-mean",
  ]);
  expect(found!.causes[0]).toMatchObject({ key: "objective.correction" });
});

it("says that a loss of zero on policy does teach", async () => {
  const varied = scoring("return record.text.charCodeAt(0) % 3;");
  const found = await explain(varied, ["--objective.aggregation=sequence-mean"]);
  expect(found!.answer).toMatch(/is zero, but it does teach: the gradient's norm is/);
  expect(found!.causes[0]!.sentence).toContain("every ratio is 1");
});

it("adds that the learning rate is 0", async () => {
  const found = await explain(scoring("return 1;"), ["--training.lr=0"]);
  expect(found!.causes.at(-1)).toMatchObject({ key: "training.lr" });
});

it("says that nothing is learned when the learning rate is 0, though there is a gradient", async () => {
  const varied = scoring("return record.text.charCodeAt(0) % 3;");
  const found = await explain(varied, ["--training.lr=0", "--objective.aggregation=sequence-mean"]);
  expect(found!.answer).toMatch(/nothing is learned\. The learning rate is 0/);
  expect(found!.answer).not.toContain("does teach");
  expect(found!.causes[0]).toMatchObject({ key: "training.lr", evidence: { lr: 0 } });
});

it("says that the clip took every gradient", async () => {
  // One token a sample, seen twice: the second pass finds each of them moved to where the clip holds it.
  const found = await explain(
    {
      "recipe.ts": scoring("return ++judged % 2;")["recipe.ts"].replace(
        "export default",
        "let judged = 0; export default",
      ),
    },
    [
      "--sampling.tasksPerStep=1",
      "--sampling.groupSize=2",
      "--sampling.maxNewTokens=1",
      "--training.epochsPerWindow=2",
      "--objective.clipLow=0",
      "--objective.clipHigh=0",
    ],
    2,
  );
  expect(found!.answer).toMatch(/its gradient/);
  expect(found!.causes[0]).toMatchObject({
    key: "objective.clipHigh",
    sentence: expect.stringMatching(/^The clip took the gradient of 2 tokens; none is left/),
  });
});

it("says that no token could be trained, and why the step was skipped", async () => {
  // Every answer of the second step is longer than one token.
  const cut = ["--sampling.truncated=mask", "--sampling.maxNewTokens=1"];
  const found = await explain(scoring("return record.task.index;"), cut, 2);
  expect(found!.answer).toMatch(/^Step 2 was skipped: None of the 8 trajectories of this batch has a trainable token/);
  expect(found!.causes.map(({ key }) => key)).toContain("sampling.maxNewTokens");
  expect(found!.causes.map(({ sentence }) => sentence)).toContain("No trainable token reached the step.");
});

it("says so when the loss is not zero, and answers nothing for a step that is not there", async () => {
  const kl = ["--objective.kl={estimator: k3, coef: 0.5}"];
  const found = await explain(scoring("return record.text.charCodeAt(0) % 3;"), kl, 2);
  expect(found!.answer).toContain("is not zero");
  expect(await explain({}, [], 77)).toBeNull();
});
