// A run from the palette to its tokens, with the embedded engine on a tiny model: the views move, the dashboard opens and survives a
// reload, a run is paused, resumed and stopped, a trajectory opens.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installPayload, productVsix } from "../support/installedProduct.ts";
import { tinyModelFiles } from "../support/tinyModelFolder.ts";
import { startVSCode, type VSCode } from "../support/vscode.ts";

const scratch = realpathSync(mkdtempSync(join(tmpdir(), "rollscope-runs-")));
const folder = join(scratch, "work");
let vscode: VSCode;

const recipe = `
name: sums
model: { source: ./model }
data: { train: tasks.jsonl, heldOutCount: 2 }
sampling: { tasksPerStep: 2, groupSize: 4, maxNewTokens: 6 }
objective: { kind: grpo, aggregation: token-mean }
advantages: { estimator: group_normalized }
training: { steps: 20000, lr: 0.01, seed: 5, tokenBudget: 512, checkpoint: { every: 50 } }
evaluation: { everySteps: null }
`;

const code = `import { defineRecipe } from "rollscope/recipe";

/** Rewards answers with many different letters. */
function variety(text: string): number {
  const letters = new Set(text).size;
  return letters / 8;
}

export default defineRecipe({
  async rollout(task, agent) {
    await agent.chat({ messages: [{ role: "user", content: String(task.payload.question) }] });
  },
  evaluate(record) {
    return { score: variety(record.text) };
  },
});
`;

beforeAll(async () => {
  const tasks = Array.from({ length: 12 }, (_, index) => JSON.stringify({ id: index, question: `${index} + 2` }));
  const files = {
    ...tinyModelFiles(),
    "recipe.yaml": recipe,
    "recipe.ts": code,
    "tasks.jsonl": `${tasks.join("\n")}\n`,
  };
  for (const [name, content] of Object.entries(files)) {
    const file = join(folder, "sums", name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  vscode = await startVSCode({
    folder,
    extensions: [productVsix()],
    prepare: (home) => void installPayload(home),
    settings: { "workbench.colorTheme": "Default Dark Modern" },
  });
});
afterAll(async () => {
  await vscode?.dispose();
  rmSync(scratch, { recursive: true, force: true });
});

const row = (text: string | RegExp) => vscode.page.locator(".sidebar .monaco-list-row", { hasText: text }).first();

async function stepShown(): Promise<number> {
  const text = (await row(/\d+\/20000/).textContent()) ?? "";
  return Number(/(\d+)\/20000/.exec(text)?.[1]);
}

test("Run Recipe starts a run, opens its dashboard, and the Runs view moves", async () => {
  await vscode.runCommand("View: Show Rollscope");
  await row("This machine").waitFor();
  await vscode.runCommand("Rollscope: Run Recipe");
  await vscode.page.locator(".quick-input-list .monaco-list-row", { hasText: "sums" }).first().click();
  await vscode.page.locator(".tabs-container .tab", { hasText: /sums/ }).first().waitFor();
  await row(/[1-9]\d*\/20000/).waitFor();
  const first = await stepShown();
  await expect.poll(stepShown).toBeGreaterThan(first);
  await (await vscode.webview(/sums/)).locator("canvas").first().waitFor();
  await vscode.screenshot("run");
});

test("the run's trajectories are listed, and one opens in the inspector", async () => {
  const line = vscode.page.locator(".sidebar .monaco-list-row", { hasText: /turn ·.*tokens/ }).first();
  await line.waitFor();
  await line.click();
  await expect.poll(async () => await vscode.page.locator(".tabs-container .tab").count()).toBeGreaterThan(1);
  const inspector = await vscode.webview(/^t\d|^h\d/);
  await inspector
    .getByText(/assistant/i)
    .first()
    .waitFor();
  await vscode.screenshot("trajectory");
});

test("the dashboard and the inspector come back after a reload, and the run went on", async () => {
  const before = await stepShown();
  const tabs = await vscode.page.locator(".tabs-container .tab").allTextContents();
  // As a person does it: the editor saves its layout first, which a reload of the browser may be too quick for.
  const loaded = vscode.page.waitForEvent("domcontentloaded");
  await vscode.runCommand("Developer: Reload Window");
  await loaded;
  await (await vscode.webview(/^t\d|^h\d/))
    .getByText(/assistant/i)
    .first()
    .waitFor();
  expect(await vscode.page.locator(".tabs-container .tab").allTextContents()).toEqual(tabs);
  await vscode.tab(tabs[0]!.trim()).click();
  await (await vscode.webview(/^sums/)).locator("canvas").first().waitFor();
  await vscode.runCommand("View: Show Rollscope");
  await row(/\d+\/20000/).waitFor();
  await expect.poll(stepShown).toBeGreaterThan(before);
  await vscode.screenshot("reloaded");
});

test("a run is paused, goes on, and stops", async () => {
  await vscode.runCommand("Rollscope: Pause Run");
  await row(/paused/).waitFor();
  await vscode.runCommand("Rollscope: Resume Run");
  await row(/^sums(?!.*paused)/).waitFor();
  await vscode.runCommand("Rollscope: Stop Run");
  await row(/stopped/).waitFor();
  await vscode.screenshot("stopped");
});
