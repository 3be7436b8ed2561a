// The dashboard for everybody: keyboard alone, screen readers, every theme, narrow panes.
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { contrast, parseColour } from "../../webview/shared/colour.ts";
import { launchChromium } from "../support/chromium.ts";
import { type EditorThemeName, editorThemes, openInTheme, switchTheme } from "./editorThemes.ts";
import { type PageBench, watchPage } from "./pageBench.ts";
import { type BenchRun, goodRun, startRunBench } from "./runBench.ts";

let browser: Browser;
let bench: PageBench;
let page: Page;
let faults: string[];

beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());
afterEach(async () => {
  await page.close();
  await bench.close();
  expect(faults).toEqual([]);
});

async function open(
  run: BenchRun,
  theme: EditorThemeName,
  view: Record<string, unknown> = {},
  width = 1280,
): Promise<void> {
  bench = await startRunBench([run, goodRun("/runs/other", 20, 3)], { view });
  page = await browser.newPage({ viewport: { width, height: 900 } });
  faults = watchPage(page);
  await openInTheme(page, theme);
  await page.goto(bench.url);
  await page.locator(".run-header").waitFor();
}

function noticed(): BenchRun {
  const run = goodRun("/runs/a", 60);
  run.start(80, { step: 50 });
  run.step(51, { loss: Number.NaN, reward_mean: 0.8 });
  run.advisories = [
    {
      kind: "entropyCollapse",
      severity: "severe",
      from: 40,
      to: 60,
      inForce: true,
      sentence: "Entropy fell to 0.1 nats.",
      causes: ["The entropy coefficient is 0."],
      numbers: {},
      links: [{ kind: "step", step: 50 }],
    },
  ];
  return run;
}

const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Serious and critical violations, each with where it is. */
async function violations(): Promise<string[]> {
  // The page's policy lets no script in; a world of its own is not bound by it.
  const source = await (await import("node:fs/promises")).readFile(axeFile, "utf8");
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  await session.send("Runtime.evaluate", { expression: source, contextId: executionContextId });
  const { result } = await session.send("Runtime.evaluate", {
    expression: "axe.run(document, { resultTypes: ['violations'] })",
    contextId: executionContextId,
    awaitPromise: true,
    returnByValue: true,
  });
  return (result.value as AxeResults).violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")} ${node.failureSummary}`));
}

/** What a person who uses the Tab key reaches: names of the elements, in order. */
async function tabStops(): Promise<string[]> {
  const stops: string[] = [];
  for (;;) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const element = document.activeElement;
      if (element === null || element === document.body) return "";
      return element.getAttribute("aria-label") ?? (element.textContent.trim() || element.tagName);
    });
    if (name === "" || stops.length > 120) return stops;
    stops.push(name);
  }
}

describe("keyboard alone", () => {
  it("reaches every control in the order of the page", async () => {
    await open(noticed(), "dark");
    await expect.poll(() => page.locator(".u-over").count()).toBe(9);
    await page.getByRole("button", { name: "Where tokens went: show as a table" }).waitFor();
    const stops = await tabStops();
    for (const name of ["Pause", "Stop", "Compare…", "Charts", "Log", "Add metric…", "Log scale"]) {
      expect(stops).toContain(name);
    }
    expect(stops.filter((name) => name.endsWith(". Step")).length).toBe(9);
    expect(stops.filter((name) => name.endsWith(": show as a table")).length).toBe(10);
    expect(stops.indexOf("Pause")).toBeLessThan(stops.indexOf("Charts"));
  });

  it("reads a chart step by step, zooms, pans, and opens a step and a trajectory", async () => {
    await open(goodRun("/runs/a", 60), "dark");
    const plot = page.getByRole("slider", { name: "Loss. Step" });
    await plot.locator(".u-over").waitFor({ state: "attached" });
    await plot.focus();
    await page.keyboard.press("End");
    await expect.poll(() => plot.getAttribute("aria-valuetext")).toMatch(/^step 60: 0\.0\d+/);
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => plot.getAttribute("aria-valuetext")).toMatch(/^step 59: /);
    expect(await plot.getAttribute("aria-valuenow")).toBe("59");
    await page.keyboard.press("+");
    const reset = page.locator("vscode-button", { hasText: "Whole run" });
    await expect.poll(() => reset.getAttribute("aria-disabled")).not.toBe("true");
    await page.keyboard.press("Shift+ArrowLeft");
    await expect.poll(() => bench.state.view["range"]).not.toBeNull();
    await page.keyboard.press("0");
    await expect.poll(() => bench.state.view["range"]).toBeNull();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Step 59" }).waitFor();
    await page.locator(".step-table").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect
      .poll(() => bench.asked.find(({ method }) => method === "host/openTrajectory")?.params)
      .toMatchObject({ source: { record: "rec-59-1" } });
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("heading", { name: "Step 59" }).count()).toBe(0);
  });

  it("finds a metric among a thousand and gives it a chart", async () => {
    const run = goodRun("/runs/a", 5);
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`probe/layer.${index}`, index]));
    run.step(6, many);
    run.step(7, many);
    await open(run, "dark");
    await page.locator("vscode-button", { hasText: "Add metric…" }).focus();
    await page.keyboard.press("Enter");
    await page.keyboard.type("layer.777");
    await page.getByText(/^1 of 1,0\d\d metrics$/).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "probe/layer.777" }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator(".popup").count()).toBe(0);
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Add metric…");
  });
});

describe("every theme", () => {
  it.each(Object.keys(editorThemes) as EditorThemeName[])("has no serious violation in %s", async (theme) => {
    await open(noticed(), theme, { step: 40, picked: ["clip_fraction"] });
    await page.locator(".step-table .virtual-row").first().waitFor();
    await page.locator(".u-over").first().waitFor();
    await page.locator(".advisory summary").first().click();
    expect(await violations()).toEqual([]);
    await page.getByRole("button", { name: "Loss: show as a table" }).click();
    await page.locator("vscode-button", { hasText: "Add metric…" }).click();
    await page.locator(".popup .virtual-row").first().waitFor();
    expect(await violations()).toEqual([]);
    for (const tab of ["Checkpoints", "Configuration", "Log"]) {
      await page.getByRole("button", { name: tab, exact: true }).click();
      await page.locator("main [role=row], main .virtual-row").first().waitFor();
      expect(await violations()).toEqual([]);
    }
  });

  it("is drawn anew when the theme changes while the page is open, with lines at 3:1 or better (P40)", async () => {
    await open(goodRun("/runs/a", 60), "light");
    const canvas = page.locator("canvas").first();
    await canvas.waitFor();
    for (const theme of ["dark", "highContrast", "highContrastLight", "light"] as const) {
      await switchTheme(page, theme);
      const ground = parseColour(editorThemes[theme].variables["editor-background"])!;
      await expect
        .poll(() => page.evaluate(() => getComputedStyle(document.body).backgroundColor))
        .toBe(`rgb(${ground.r}, ${ground.g}, ${ground.b})`);
      const least = theme.startsWith("high") ? 4.5 : 3;
      const line = () =>
        canvas.evaluate((element: HTMLCanvasElement) => {
          const { data } = element.getContext("2d")!.getImageData(0, 0, element.width, element.height);
          const counts = new Map<string, number>();
          for (let at = 0; at < data.length; at += 4) {
            const [r, g, b, a] = data.slice(at, at + 4) as unknown as [number, number, number, number];
            // The line is the one thing in colour.
            if (a < 255 || Math.max(r, g, b) - Math.min(r, g, b) < 40) continue;
            const key = `rgb(${r}, ${g}, ${b})`;
            counts.set(key, (counts.get(key) ?? 0) + 1);
          }
          return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? "";
        });
      await expect
        .poll(async () => contrast(parseColour(await line()) ?? ground, ground))
        .toBeGreaterThanOrEqual(least);
    }
  });

  it("fits a pane of 400 pixels without scrolling sideways", async () => {
    await open(noticed(), "dark", { step: 40 }, 400);
    await page.locator(".u-over").first().waitFor();
    const wide = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.querySelector("main")!.scrollWidth,
    ]);
    for (const width of wide) expect(width).toBeLessThanOrEqual(400);
  });
});
