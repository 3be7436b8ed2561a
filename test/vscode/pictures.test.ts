// The pictures of README and docs, taken of the installed product with runs that really ran; a person looks at them.
// `npm run pictures` takes them anew and puts them where the documents show them (scripts/pictures.mjs).
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cacheFolder } from "../../agent-daemon/src/recipes/cacheFolder.ts";
import { installPayload, productVsix } from "../support/installedProduct.ts";
import { preparePictureRuns, putOnPath } from "../support/pictureRuns.ts";
import { startVSCode, type VSCode } from "../support/vscode.ts";

const scratch = realpathSync(mkdtempSync(join(tmpdir(), "pictures-")));
const folder = join(scratch, "agents");
const minutes = process.env["ROLLSCOPE_PICTURE_RUNS"] === undefined ? 2 : 30;
let vscode: VSCode;

beforeAll(async () => {
  vscode = await startVSCode({
    folder,
    extensions: [productVsix()],
    environment: { ROLLSCOPE_CACHE: cacheFolder() },
    viewport: { width: 1280, height: 860 },
    settings: {
      "workbench.colorTheme": "Default Dark Modern",
      "workbench.layoutControl.enabled": false,
      "workbench.reduceMotion": "on",
      "window.commandCenter": false,
      "editor.minimap.enabled": false,
      "terminal.integrated.gpuAcceleration": "off",
      "terminal.integrated.shellIntegration.enabled": false,
    },
    prepare: async (home) => {
      const payload = installPayload(home);
      putOnPath(home, payload);
      await preparePictureRuns(folder, home, payload);
    },
  });
}, 240_000);
afterAll(async () => {
  await vscode?.dispose();
  rmSync(scratch, { recursive: true, force: true });
});

const sidebarRows = (text: string | RegExp) => vscode.page.locator(".sidebar .monaco-list-row", { hasText: text });
const sidebarRow = (text: string | RegExp) => sidebarRows(text).first();

/** Of the window, or of the upper part of one of its parts. */
async function picture(name: string, of?: Locator, height = Number.POSITIVE_INFINITY): Promise<void> {
  const box = of === undefined ? undefined : ((await of.boundingBox()) ?? undefined);
  await vscode.screenshot(`pictures/${name}`, box && { ...box, height: Math.min(box.height, height) });
}

test(
  "a run draws itself in the terminal, also when it is resumed",
  async () => {
    await vscode.runCommand("Terminal: Create New Terminal");
    await vscode.page.locator(".terminal.xterm").waitFor();
    await vscode.runCommand("View: Toggle Maximized Panel");
    const screen = vscode.page.locator(".xterm-rows");
    await expect.poll(() => screen.textContent()).toContain("$");
    await vscode.page.locator(".xterm-helper-textarea").focus();
    await vscode.page.keyboard.type("rollscope resume latest");
    await expect.poll(() => screen.textContent()).toContain("latest");
    await vscode.page.keyboard.press("Enter");
    const under = vscode.page.locator(".xterm-rows", { hasText: /step [1-9]\d*\/\d+.*(sampling|training) \d+\/\d+/ });
    await under.waitFor({ timeout: 60_000 });
    await picture("terminal", vscode.page.locator(".part.panel .terminal-wrapper.active"), 370);
    await expect.poll(() => screen.textContent(), { timeout: minutes * 60_000 }).toContain("rollscope inspect");
    await vscode.runCommand("Terminal: Kill the Active Terminal Instance");
  },
  minutes * 60_000,
);

interface Animated {
  getAnimations(options: { readonly subtree: boolean }): { readonly finished: Promise<unknown> }[];
}

/** What fades in has come. */
async function settled(part: Locator): Promise<void> {
  await part.first().evaluate(async (element: Animated) => {
    await Promise.all(element.getAnimations({ subtree: true }).map(({ finished }) => finished));
  });
}

async function dashboardReady() {
  const dashboard = await vscode.webview(/arithmetic-grpo/);
  await dashboard.locator(".chart-plot canvas").nth(4).waitFor();
  await dashboard.locator(".waste-bars").waitFor();
  await dashboard.getByText("Loading…").first().waitFor({ state: "hidden" });
  return dashboard;
}

test("the views list the run, and its dashboard shows what moved, in dark and in light", async () => {
  await vscode.runCommand("View: Show Rollscope");
  await sidebarRow("This machine").waitFor();
  // The oldest one: it went from its first step to its last in one go.
  const run = sidebarRows(/arithmetic-grpo.*\d+\/\d+/).last();
  await run.click();
  await run.getByRole("button", { name: "Open Run Dashboard" }).click();
  await dashboardReady();
  await sidebarRow(/tokens/).waitFor();
  await picture("dashboard-dark");
  await picture("views", vscode.page.locator(".part.sidebar"));
  await vscode.useTheme("light");
  await dashboardReady();
  await picture("dashboard-light");
});

test("a point of a chart leads to the trajectories of its step, and one of them to every number of its tokens", async () => {
  const dashboard = await dashboardReady();
  const plot = dashboard.getByRole("slider", { name: "Reward. Step" }).locator(".u-over");
  const box = (await plot.boundingBox())!;
  await plot.click({ position: { x: box.width - 2, y: box.height / 2 } });
  await dashboard.locator(".step-table .virtual-row").first().waitFor();
  await picture("step");

  await dashboard.getByRole("button", { name: "Show in the Trajectories view" }).click();
  await vscode.page.locator(".pane-header", { hasText: /step \d+/ }).waitFor();
  // It opens beside the dashboard, which then makes room.
  await dashboard.locator(".step-table .virtual-row", { hasText: " #" }).first().click();
  await vscode.webview(/^t\d/);
  await vscode.runCommand("View: Close Editors in Other Groups");
  const inspector = await vscode.webview(/^t\d/);
  await inspector
    .getByRole("option", { name: /assistant/ })
    .first()
    .click();
  await inspector.getByRole("button", { name: "Worst token" }).click();
  await expect.poll(() => inspector.locator("[data-column='logprob']").textContent()).toMatch(/\d/);
  await inspector.locator(".legend").first().waitFor();
  await picture("inspector-light");
  await vscode.useTheme("dark");
  await picture("inspector-dark");
  await inspector.getByRole("button", { name: "Siblings" }).click();
  await inspector.locator(".sibling-text pre").nth(1).waitFor();
  await picture("siblings", vscode.page.locator(".part.editor"), 420);
});

test("recipe.yaml explains its keys and says what is wrong with them", async () => {
  await vscode.runCommand("View: Close All Editors");
  await vscode.openFile("arithmetic-grpo/recipe.yaml");
  const key = (name: string) =>
    vscode.page.locator(".editor-instance .view-line span", { hasText: new RegExp(`^${name}$`) }).first();
  const hover = vscode.page.locator(".monaco-hover:visible");
  await key("groupSize").hover();
  await hover.getByText("In force").waitFor();
  await settled(hover);
  await picture("recipe-hover", vscode.page.locator(".part.editor"), 480);
  await key("groupSize").dblclick();
  await vscode.page.keyboard.type("num_generations");
  await vscode.page.keyboard.press("Escape");
  await vscode.page.locator(".squiggly-error").first().waitFor();
  await key("num_generations").hover();
  await hover.getByRole("button", { name: /Quick Fix/ }).waitFor();
  await settled(hover);
  await picture("recipe-problem", vscode.page.locator(".part.editor"), 480);
});
