// The inspector in the four themes of an editor: nothing serious for axe-core, and colours that follow the theme.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launchChromium } from "../support/chromium.ts";
import { type EditorThemeName, editorThemes, switchTheme } from "./editorThemes.ts";
import { eventually, type OpenArguments, openInspector } from "./inspectorPage.ts";
import { mathTrajectory, toolTrajectory } from "./trajectoryBench.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());

const open = (...given: OpenArguments) => openInspector(browser, ...given);

test.each(Object.keys(editorThemes) as EditorThemeName[])(
  "in %s nothing serious is wrong for axe-core",
  async (name) => {
    const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    const { page } = await open(toolTrajectory(), { turn: 2, column: "advantage" }, name);
    await page.locator('[data-cell="0"]').waitFor();
    await page.locator(".legend").waitFor();
    for (const mode of ["1", "2", "3", "4"]) {
      await page.keyboard.press(mode);
      await page.waitForFunction(() => !document.querySelector("main")?.textContent?.endsWith("…"));
      await page.evaluate(axe);
      const serious = await page.evaluate(async () => {
        const { violations } = await (window as unknown as { axe: typeof import("axe-core") }).axe.run({
          // Terminal colours are the theme's own, as in its terminal.
          exclude: [[".text span[style]"]],
        });
        return violations
          .filter(({ impact }) => impact === "serious" || impact === "critical")
          .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
      });
      expect(serious).toEqual([]);
    }
  },
);

test("colours of tokens follow the theme while the page is open", async () => {
  const { page } = await open(mathTrajectory(), { turn: 2, column: "advantage" }, "highContrast");
  await page.locator(".legend").waitFor();
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const cell = () => page.locator('[data-cell="2"]').evaluate((element) => getComputedStyle(element).backgroundColor);
  expect(await ground()).toBe("rgb(0, 0, 0)");
  const dark = await cell();
  await switchTheme(page, "highContrastLight");
  await eventually(ground).toBe("rgb(255, 255, 255)");
  await eventually(cell).not.toBe(dark);
});
