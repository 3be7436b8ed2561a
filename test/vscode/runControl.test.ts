// A run that is stopped, resumed and paused from the window, goes on while the window is loaded anew, and is found again after the
// daemon was killed.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProductWindow, startProduct } from "../support/productWindow.ts";
import { tinyRecipeFiles } from "../support/tinyRecipe.ts";

const steps = 20_000;
let product: ProductWindow;

beforeAll(async () => {
  product = await startProduct({
    files: tinyRecipeFiles("sums", { steps }),
    settings: { "workbench.colorTheme": "Default Dark Modern" },
  });
  await product.openViews();
  await product.runRecipe("sums");
  await product.line(/[1-9]\d*\/20000/).waitFor();
});
afterAll(() => product?.dispose());

const stepShown = () => product.stepInView(steps);

/** The run takes steps, and the view shows it. */
async function moves(): Promise<void> {
  const before = await stepShown();
  await expect.poll(stepShown, { timeout: 30_000 }).toBeGreaterThan(before);
}

/** Process of the run, as its own command line says. */
async function runProcess(): Promise<{ readonly pid: number | null; readonly attempt: number; readonly step: number }> {
  const { folder, rollscope } = product;
  const { runs } = JSON.parse(await rollscope("list", "--json", "--output-dir", `${folder}/sums/runs`));
  return runs[0];
}

test("a paused run stands still, on its page too, and goes on", async () => {
  const { vscode } = product;
  await vscode.runCommand("Rollscope: Pause Run");
  await product.line(/sums.*paused/).waitFor();
  const dashboard = await product.dashboard("sums");
  await dashboard.getByText("Paused", { exact: true }).waitFor();
  await vscode.screenshot("paused");
  await vscode.runCommand("Rollscope: Resume Run");
  await product.line(/^sums(?!.*paused)/).waitFor();
  await moves();
});

test("a stopped run is resumed where it stood", async () => {
  const { vscode } = product;
  await vscode.runCommand("Rollscope: Stop Run");
  await product.line(/sums.*stopped/).waitFor();
  const dashboard = await product.dashboard("sums");
  await dashboard.getByText("Stopped", { exact: true }).waitFor();
  const stopped = await stepShown();
  await vscode.screenshot("stopped");
  await vscode.runCommand("Rollscope: Resume Run");
  await product.line(/^sums(?!.*stopped)/).waitFor();
  await expect.poll(stepShown, { timeout: 30_000 }).toBeGreaterThan(stopped);
  await dashboard.getByRole("banner").getByText("attempt 2").waitFor();
  await vscode.screenshot("resumed");
});

test("a reload of the window keeps what it showed, and the run goes on meanwhile", async () => {
  const { vscode } = product;
  const dashboard = await product.dashboard("sums");
  await dashboard.getByText("Log scale").click();
  await product.line(/turn ·.*tokens/).click();
  await (await product.inspector()).locator(".turn-list").getByText("assistant").waitFor();
  const before = await stepShown();
  const tabs = await vscode.page.locator(".tabs-container .tab").allTextContents();
  // As a person does it: the editor saves its layout first, which a reload of the browser may be too quick for.
  const loaded = vscode.page.waitForEvent("domcontentloaded");
  await vscode.runCommand("Developer: Reload Window");
  await loaded;
  await (await product.inspector()).locator(".turn-list").getByText("assistant").waitFor();
  expect(await vscode.page.locator(".tabs-container .tab").allTextContents()).toEqual(tabs);
  await vscode.tab(tabs[0]!.trim()).click();
  const again = await product.dashboard("sums");
  await again.getByRole("slider", { name: "Loss. Step" }).locator("canvas").waitFor();
  expect(await again.getByRole("checkbox", { name: "Log scale" }).getAttribute("aria-checked")).toBe("true");
  await product.line(/\d+\/20000/).waitFor();
  await expect.poll(stepShown).toBeGreaterThan(before);
  await vscode.screenshot("reloaded");
});

test("a daemon that is killed comes back, and the window finds the living run again", async () => {
  const { vscode } = product;
  const dashboard = await product.dashboard("sums");
  const loss = dashboard.getByRole("slider", { name: "Loss. Step" });
  const lastStep = async () => Number(await loss.getAttribute("aria-valuemax"));
  const run = await runProcess();
  const killed = product.daemons();
  expect(killed).toHaveLength(1);
  process.kill(killed[0]!.pid, "SIGKILL");
  await expect.poll(() => product.daemons().filter(({ pid }) => pid !== killed[0]!.pid).length).toBe(1);
  await vscode.statusItem(/sums \d+\/20000/).waitFor();
  const [drawn, step] = [await lastStep(), await stepShown()];
  await expect.poll(lastStep, { timeout: 30_000 }).toBeGreaterThan(drawn);
  await expect.poll(stepShown, { timeout: 30_000 }).toBeGreaterThan(step);
  expect((await runProcess()).attempt).toBe(run.attempt);
  await vscode.screenshot("daemon-killed");
});
