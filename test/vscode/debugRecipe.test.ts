// Debug Recipe in a real debug session: a breakpoint is hit in rollout, in evaluate and in an objective, variables are seen, and the
// person may stand there for longer than every time limit of the recipe without the run noticing.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProductWindow, startProduct } from "../support/productWindow.ts";
import { tinyModelFiles } from "../support/tinyModelFolder.ts";
import type { VSCode } from "../support/vscode.ts";

let folder = "";
let product: ProductWindow;
let vscode: VSCode;

/** Seconds of every limit on recipe code; a stop at a breakpoint lasts longer. */
const limit = 3;

const recipe = `name: sums
model: { source: ./model }
data: { train: tasks.jsonl }
sampling:
  tasksPerStep: 2
  groupSize: 2
  maxNewTokens: 6
  rolloutTimeout: ${limit}
  startTimeout: ${limit}
  callGapTimeout: ${limit}
  evaluateTimeout: ${limit}
objective: { kind: custom, aggregation: token-mean }
advantages: { estimator: group_mean }
training: { steps: 2, lr: 0.01, seed: 5, tokenBudget: 512 }
evaluation: { everySteps: null, atStart: false }
`;

const code = `import { defineRecipe, type ObjectiveDefinition } from "rollscope/recipe";

const pull: ObjectiveDefinition = {
  name: "pull",
  scope: "token",
  reads: ["advantage"],
  token({ advantage, logp }) {
    const weighted = 2 * advantage;
    return { loss: -weighted * logp, dLogp: -weighted };
  },
};

export default defineRecipe({
  async rollout(task, agent) {
    const asked = String(task.payload.question) + " = ?";
    await agent.chat({ messages: [{ role: "user", content: asked }] });
  },
  evaluate(record) {
    const letters = new Set(record.text).size;
    return { score: letters / 8 };
  },
  objective: pull,
});
`;

beforeAll(async () => {
  const tasks = Array.from({ length: 8 }, (_, index) => JSON.stringify({ id: `q${index}`, question: `${index} + 2` }));
  const files = {
    ...tinyModelFiles(),
    "recipe.yaml": recipe,
    "recipe.ts": code,
    "tasks.jsonl": `${tasks.join("\n")}\n`,
  };
  product = await startProduct({
    files: Object.fromEntries(Object.entries(files).map(([name, content]) => [`sums/${name}`, content])),
    settings: { "rollscope.runs.open": "nothing", "debug.onTaskErrors": "showErrors" },
  });
  vscode = product.vscode;
  folder = product.folder;
});
afterAll(() => product?.dispose());

const standing = () =>
  vscode.page
    .locator(".monaco-editor .debug-top-stack-frame-line, .monaco-editor .debug-top-stack-frame-column")
    .first();

let broken: string | null = null;

/** Leaves this as the only breakpoint, or none. */
async function breakAt(text: string | null): Promise<void> {
  for (const place of [broken, text]) {
    if (place === null) continue;
    await vscode.page.locator(".editor-instance .monaco-editor").first().click();
    await vscode.page.keyboard.press("Control+G");
    await vscode.answer(`:${1 + code.split("\n").findIndex((written) => written.includes(place))}`);
    await vscode.page.keyboard.press("F9");
    const shown = vscode.page.locator(".debug-breakpoints .monaco-list-row", { hasText: "recipe.ts" });
    await expect.poll(() => shown.count()).toBe(place === text ? 1 : 0);
  }
  broken = text;
}

/** What the Variables view says of a name, once the program stands. */
async function variable(name: string): Promise<string> {
  const row = vscode.page.locator(".debug-variables .monaco-list-row", { hasText: new RegExp(`^${name}`) }).first();
  await row.waitFor();
  return (await row.textContent()) ?? "";
}

/** Waits until the program has stood in this function for longer than the recipe's limits allow its code to take. */
async function standIn(name: string): Promise<void> {
  const frame = vscode.page.locator(".debug-call-stack .monaco-list-row", {
    hasText: new RegExp(`${name}\\s*sums/recipe\\.ts`),
  });
  await frame.first().waitFor({ timeout: 60_000 });
  await standing().waitFor();
  const begun = Date.now();
  await expect.poll(() => Date.now() - begun, { timeout: 30_000 }).toBeGreaterThan(1500 * limit);
}

/** The newest run's journal, event by event. */
function journal(): { readonly type: string; readonly [key: string]: unknown }[] {
  const runs = join(folder, "sums", "runs");
  const newest = readdirSync(runs).sort().at(-1) ?? "";
  const lines = readFileSync(join(runs, newest, "journal.jsonl"), "utf8")
    .trim()
    .split("\n");
  return lines.map((text) => JSON.parse(text) as { readonly type: string });
}

test("a breakpoint in rollout stops the run, and shows the task's variables", async () => {
  await vscode.openFile("recipe.ts");
  await vscode.runCommand("View: Show Run and Debug");
  await breakAt("content: asked");
  await vscode.runCommand("Rollscope: Debug Recipe");
  await vscode.page.locator(".quick-input-list .monaco-list-row", { hasText: "sums" }).first().click();
  await standIn("rollout");
  expect(await variable("asked")).toMatch(/\d \+ 2 = \?/);
  await vscode.screenshot("breakpoint-rollout");
});

test("a breakpoint in evaluate is hit next, and shows what the model said", async () => {
  await breakAt("score: letters");
  await vscode.runCommand("Debug: Continue");
  await standIn("evaluate");
  expect(await variable("letters")).toMatch(/letters.*\d+/);
  await vscode.screenshot("breakpoint-evaluate");
});

test("a breakpoint in the recipe's objective is hit next, and shows a token's numbers", async () => {
  await breakAt("loss: -weighted");
  await vscode.runCommand("Debug: Continue");
  await standIn("token");
  expect(await variable("weighted")).toMatch(/weighted.*\d/);
  await vscode.screenshot("breakpoint-objective");
});

test("without breakpoints the run goes on to its end, and no limit has passed meanwhile", async () => {
  await breakAt(null);
  await vscode.runCommand("Debug: Continue");
  await vscode.page.locator(".debug-toolbar").waitFor({ state: "hidden", timeout: 60_000 });
  await expect.poll(() => journal().at(-1)?.type, { timeout: 60_000 }).toBe("ended");
  const events = journal();
  expect(events.at(-1)).toMatchObject({ type: "ended", status: "completed", step: 2, error: null });
  expect(events.filter(({ type }) => type === "warning")).toEqual([]);
  const counts = events.findLast(({ type }) => type === "records")?.["counts"];
  expect(counts).toMatchObject({ graded: 4, ungraded: 0, failed: 0, cancelled: 0, retried: 0 });
  await vscode.runCommand("View: Show Rollscope");
  await vscode.page
    .locator(".sidebar .monaco-list-row", { hasText: /sums.*2\/2/ })
    .first()
    .waitFor();
  await vscode.screenshot("debugged");
});
