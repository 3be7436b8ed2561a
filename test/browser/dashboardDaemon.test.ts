// The dashboard as `rollscope open` serves it: a daemon of its own, a run that really ran, nothing in between but the socket.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { advisoryKinds } from "../../protocol/advisory.ts";
import { journalLine } from "../../protocol/journal.ts";
import { launchChromium } from "../support/chromium.ts";
import { bundleModule } from "../support/moduleProgram.ts";
import { temporaryFolder } from "../support/recipeFolder.ts";
import { runDaemon } from "../support/runningDaemon.ts";
import { attemptToyRun, newToyRun, toyFolder } from "../support/toyRun.ts";
import { metricTroubles, troubledJournal } from "../support/troubledRun.ts";
import { watchPage } from "./pageBench.ts";

let script = "";
let remove = () => {};
let browser: Browser;
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
  browser = await launchChromium();
});
afterAll(async () => {
  remove();
  await browser.close();
});

it("shows a run of the daemon, its numbers and the trajectories behind a point", async () => {
  const run = await newToyRun(await toyFolder());
  await attemptToyRun(run);
  const folder = run.folder.path;
  const client = await (await runDaemon(script)).connect();
  const { runs } = await client.call("runs/look", { folders: [folder] });
  const summary = runs.find((one) => one.folder === folder)!;
  const { rows } = await client.call("metrics/rows", { folder, from: 0, limit: 100 });
  const last = rows.at(-1)!;
  const { url } = await client.call("page/open", { state: { page: "dashboard", folders: [folder], view: {} } });

  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const faults = watchPage(page);
  await page.goto(url);
  await page.getByRole("heading", { name: summary.recipe }).waitFor();
  await expect
    .poll(() => page.locator(".run-facts").textContent())
    .toContain(`${summary.step} of ${summary.steps} steps`);
  const loss = page.getByRole("slider", { name: "Loss. Step" });
  await loss.locator("canvas").waitFor();
  await loss.focus();
  await page.keyboard.press("End");
  await expect.poll(() => loss.getAttribute("aria-valuetext")).toContain(`step ${last.step}: `);
  await page.getByRole("button", { name: "Loss: show as a table" }).click();
  const cell = page.locator('.chart-table .virtual-row [role="gridcell"]').nth(1);
  const shown = Number((await cell.textContent())!.replace("−", "-").replace(/e−/, "e-"));
  expect(shown).toBeCloseTo(Number(last.metrics["loss"]), 5);

  await page.locator(".chart-table .virtual-row").first().dblclick();
  await page.getByRole("heading", { name: `Step ${last.step}` }).waitFor();
  const { rows: behind } = await client.call("trajectories/ofStep", { folder, step: last.step });
  expect(behind.length).toBeGreaterThan(0);
  await page.getByText(`${behind.length} trajectories`).waitFor();
  await page.getByRole("button", { name: "Configuration", exact: true }).click();
  const cells = page.locator('.config-table .virtual-row [role="gridcell"]:nth-child(2)');
  await cells.nth(5).waitFor();
  // Short and long values stand in one column.
  const places = await cells.evaluateAll((found) => found.map((cell) => Math.round(cell.getBoundingClientRect().x)));
  expect(new Set(places).size).toBe(1);
  await page.getByRole("button", { name: "Charts", exact: true }).click();
  await expect.poll(() => page.getByRole("heading", { name: "Where tokens went" }).count()).toBe(1);
  expect(await page.locator(".banner").allTextContents()).toEqual([]);
  expect(faults).toEqual([]);
  await page.close();
});

it("says all that the daemon noticed about a run's numbers, each with its causes", async () => {
  const folder = join(await temporaryFolder(), "run");
  mkdirSync(folder);
  // Entropy that is no number has not collapsed.
  const changes = metricTroubles.filter(([kind]) => kind !== "nonFiniteMetric").map(([, change]) => change);
  const lines = troubledJournal(30, changes).map((event) => `${journalLine(event)}\n`);
  writeFileSync(join(folder, "journal.jsonl"), lines.join(""));
  const client = await (await runDaemon(script)).connect();
  const { runs } = await client.call("runs/look", { folders: [folder] });
  const { advisories } = runs[0]!;
  const kinds = new Set(advisories.map(({ kind }) => kind));
  expect(advisoryKinds.filter((kind) => !kinds.has(kind))).toEqual(["stalledPhase", "nonFiniteMetric"]);
  const { url } = await client.call("page/open", { state: { page: "dashboard", folders: [folder], view: {} } });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const faults = watchPage(page);
  await page.goto(url);
  await page.locator(".advisory").first().waitFor();
  const shown = (await page.locator(".advisory").allTextContents()).join("\n");
  for (const { sentence, causes } of advisories) {
    expect(shown).toContain(sentence);
    for (const cause of causes) expect(shown).toContain(cause);
  }
  expect(faults).toEqual([]);
  await page.close();
});

it("lets a person in a plain browser choose another run of the daemon to draw into the same charts", async () => {
  const recipe = await toyFolder();
  const runs = [await newToyRun(recipe), await newToyRun(recipe)];
  for (const run of runs) await attemptToyRun(run);
  const folders = runs.map((run) => run.folder.path);
  const client = await (await runDaemon(script)).connect();
  await client.call("runs/look", { folders });
  const { url } = await client.call("page/open", { state: { page: "dashboard", folders: [folders[0]!], view: {} } });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const faults = watchPage(page);
  await page.goto(url);
  await page.getByRole("button", { name: "Compare…" }).click();
  const picker = page.getByRole("dialog");
  await picker.getByRole("checkbox").first().waitFor();
  expect(await picker.getByRole("checkbox").count()).toBe(1);
  await picker.getByRole("checkbox").focus();
  await page.keyboard.press("Space");
  await picker.getByRole("button", { name: "Show" }).click();
  await page.locator(`.chip[title="${folders[1]}"]`).waitFor();
  expect(await picker.count()).toBe(0);
  expect(await page.locator(".banner").allTextContents()).toEqual([]);
  expect(faults).toEqual([]);
  await page.close();
});
