// What can be asked about runs that are over, each from the palette: why the loss is zero, two runs compared, the daemon's log, an export
// and its import, and what the status bar and the notifications offer.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProductWindow, startProduct } from "../support/productWindow.ts";
import { tinyRecipeFiles } from "../support/tinyRecipe.ts";

let product: ProductWindow;

beforeAll(async () => {
  product = await startProduct({
    files: { ...tinyRecipeFiles("sums", { steps: 6 }), ...tinyRecipeFiles("flat", { steps: 3, score: "1" }) },
    before: async ({ folder, rollscope }) => {
      for (const recipe of ["sums", "flat"]) await rollscope("run", recipe, "--output-dir", join(folder, "runs"));
    },
  });
  await product.openViews();
  await product.line(/flat.*completed/).waitFor();
});
afterAll(() => product?.dispose());

const choose = (text: string) =>
  product.vscode.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().click();

test("Explain Why Loss Is Zero answers from the run's data", async () => {
  const { vscode } = product;
  await vscode.runCommand("Rollscope: Explain Why Loss Is Zero");
  await choose("flat");
  await vscode.page.getByText("Step of flat, 1 to 3").waitFor();
  await vscode.page.keyboard.press("Enter");
  await vscode.tab("flat, step 3.txt").waitFor();
  await vscode.page.getByText("flat, step 3: why is the loss zero?").first().waitFor();
  await vscode.page.getByText("Every score of the step is 1").first().waitFor();
  await vscode.screenshot("explain");
});

test("Compare Runs draws both runs in each chart of one dashboard", async () => {
  const { vscode } = product;
  await vscode.runCommand("Rollscope: Compare Runs");
  for (const name of ["sums", "flat"]) await choose(name);
  await vscode.page.keyboard.press("Enter");
  const dashboard = await vscode.webview(/and 1 more$/);
  const legend = dashboard.locator('[id="chart reward"] .chart-legend');
  await legend.getByText(/sums/).first().waitFor();
  await legend.getByText(/flat/).first().waitFor();
  await dashboard.locator('[id="chart loss"] canvas').waitFor();
  await vscode.screenshot("compared");
});

test("Show Daemon Log opens what the daemon wrote", async () => {
  const { vscode } = product;
  await vscode.runCommand("Rollscope: Show Daemon Log");
  await vscode.tab("Daemon.log").waitFor();
  const line = vscode.page.locator(".monaco-editor .view-line", { hasText: `(process ${product.daemons()[0]!.pid})` });
  await line.first().waitFor();
  await vscode.screenshot("daemon-log");
});

test("Export Run writes a file and says where, and Import Trajectories reads it as a run", async () => {
  const { vscode, folder } = product;
  await vscode.runCommand("Rollscope: Export Run");
  await choose("sums");
  await choose("Chat");
  const box = vscode.page.locator(".quick-input-widget:visible input");
  await expect.poll(() => box.inputValue()).toMatch(/chat\.rollscope\.jsonl$/);
  await vscode.page.keyboard.press("Enter");
  const written = vscode.notification(/\d+ records of sums were written to/);
  await written.getByRole("button", { name: "Copy Path" }).hover();
  const said = (await written.textContent())!;
  const [count, file] = [Number(/(\d+) records/.exec(said)?.[1]), /\/\S+\.rollscope\.jsonl/.exec(said)![0]];
  expect(dirname(file)).toBe(folder);
  expect(readFileSync(file, "utf8").trimEnd().split("\n")).toHaveLength(count);
  await vscode.screenshot("exported");

  await vscode.runCommand("Rollscope: Import Trajectories");
  await expect.poll(() => box.inputValue()).toContain(folder);
  await vscode.answer(file);
  const read = vscode.notification(`${count} trajectories were imported.`);
  await read.getByRole("button", { name: "Show Trajectories" }).click();
  await product.header("Trajectories").getByText("import", { exact: true }).waitFor();
  await product.line(/1 turn/).waitFor();
  await vscode.screenshot("imported");
});

test("there is one status bar item, which offers what can be done, and no notification without an action", async () => {
  const { vscode } = product;
  const items = vscode.page.locator('.part.statusbar .statusbar-item[id^="rollscope."]');
  expect(await items.count()).toBe(1);
  await items.click();
  await vscode.page.locator(".quick-input-list .monaco-list-row", { hasText: "Open Run Dashboard" }).waitFor();
  await vscode.screenshot("actions");
  await vscode.page.keyboard.press("Escape");
  expect(await vscode.notifications()).not.toEqual([]);
  expect(await vscode.notificationsWithoutAction()).toEqual([]);
});
