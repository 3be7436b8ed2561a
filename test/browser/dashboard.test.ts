// The dashboard in a real browser, as a person would use it.
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Advisory } from "../../protocol/advisory.ts";
import { launchChromium } from "../support/chromium.ts";
import { openInTheme } from "./editorThemes.ts";
import { BenchRefusal, type PageBench, watchPage } from "./pageBench.ts";
import { BenchRun, goodRun, startRunBench } from "./runBench.ts";

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
  runs: readonly BenchRun[],
  options: Parameters<typeof startRunBench>[1] & { readonly width?: number } = {},
): Promise<void> {
  bench = await startRunBench(runs, options);
  page = await browser.newPage({ viewport: { width: options.width ?? 1280, height: 900 } });
  faults = watchPage(page);
  await openInTheme(page, "dark");
  await page.goto(bench.url);
}

const chart = (title: string) => page.locator("figure", { has: page.getByRole("heading", { name: title }) });
const asked = (method: string) => bench.asked.filter((request) => request.method === method);

/** All cells of a chart's table, row by row. */
async function tableOf(title: string): Promise<string[][]> {
  await chart(title)
    .getByRole("button", { name: `${title}: show as a table` })
    .click();
  const rows = chart(title).locator('.virtual-row[role="row"]');
  await rows.first().waitFor();
  return rows.evaluateAll((list) =>
    list.map((row) => [...row.querySelectorAll('[role="gridcell"]')].map((cell) => cell.textContent)),
  );
}

/** How many pixels of a colour are drawn in a chart. */
function pixelsOf(title: string, rgb: readonly number[]): Promise<number> {
  return chart(title)
    .locator("canvas")
    .evaluate((canvas: HTMLCanvasElement, [r, g, b]) => {
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) {
        const far = Math.abs(data[at]! - r!) + Math.abs(data[at + 1]! - g!) + Math.abs(data[at + 2]! - b!);
        if (data[at + 3]! > 200 && far < 24) count += 1;
      }
      return count;
    }, rgb);
}

const blue = [0x37, 0x94, 0xff];
const red = [0xf1, 0x4c, 0x4c];

describe("a run", () => {
  it("shows its state, draws its metrics and grows with its events, asking for no number twice", async () => {
    const run = goodRun("/runs/a", 60);
    await open([run]);
    await page.getByRole("heading", { name: "gsm8k-grpo" }).waitFor();
    await expect.poll(() => page.locator(".run-facts").textContent()).toContain("60 of 100 steps");
    await expect.poll(() => pixelsOf("Loss", blue)).toBeGreaterThan(100);
    const before = asked("metrics/series").length;
    const at = run.events.length;
    run.step(61, { loss: 9, reward_mean: 0.9 });
    run.publish(at);
    await expect.poll(() => chart("Loss").locator(".chart-readout").textContent()).toBe("9");
    expect((await tableOf("Loss"))[0]).toEqual(["61", "9"]);
    expect(asked("metrics/series").length).toBe(before);
    const ranges = asked("metrics/series").map(({ params }) => JSON.stringify(params));
    expect(new Set(ranges).size).toBe(ranges.length);
  });

  it("draws what is finite when other values are NaN or infinite, marks the gap and counts it (P35)", async () => {
    const run = new BenchRun("/runs/nan");
    run.start(10);
    run.step(1, { loss: 1, entropy: 1 });
    run.step(2, { loss: Number.NaN, entropy: 1 });
    run.step(3, { loss: Number.POSITIVE_INFINITY, entropy: 1 });
    run.step(4, { loss: Number.NEGATIVE_INFINITY });
    run.step(5, { entropy: 1 });
    run.step(6, { loss: 2, entropy: 1 });
    run.step(7, { loss: 1.5, entropy: 1 });
    await open([run]);
    await expect.poll(() => pixelsOf("Loss", blue)).toBeGreaterThan(20);
    expect(await chart("Loss").locator(".chart-note").textContent()).toContain("3 not finite");
    expect(await pixelsOf("Loss", red)).toBeGreaterThan(10);
    await expect.poll(() => pixelsOf("Entropy", blue)).toBeGreaterThan(100);
    expect(await page.locator(".chart-plot").first().getAttribute("aria-valuetext")).toContain("values from 1 to 2");
    expect(await tableOf("Loss")).toEqual([
      ["7", "1.5"],
      ["6", "2"],
      ["4", "not finite"],
      ["3", "not finite"],
      ["2", "not finite"],
      ["1", "1"],
    ]);
  });

  it("shows the new attempt after a resume, the old one labelled, and no line that runs backwards (P36)", async () => {
    const run = new BenchRun("/runs/resumed");
    run.start(20);
    for (let step = 1; step <= 15; step++) run.step(step, { loss: 1 + step / 100 });
    run.start(20, { step: 10 });
    for (let step = 11; step <= 20; step++) run.step(step, { loss: 3 + step / 100 });
    await open([run]);
    const labels = chart("Loss").locator(".chart-legend-label");
    await expect.poll(() => labels.allTextContents()).toEqual(["attempt 1", "attempt 1, void", "attempt 2"]);
    const rows = await tableOf("Loss");
    expect(rows.map(([step]) => Number(step))).toEqual(rows.map((_, index) => 20 - index));
    expect(rows.length).toBeGreaterThan(10);
    expect(rows.find(([step]) => step === "13")).toEqual(["13", "", "1.13", "3.13"]);
    expect(rows.find(([step]) => step === "10")).toEqual(["10", "1.1", "", ""]);
  });

  it("shows names and messages as text, whatever they hold (P37)", async () => {
    const hostile = '<img src=q onerror="window.__hit=1"> | a | b |';
    const run = goodRun("/runs/hostile", 20);
    run.recipe = hostile;
    run.start(20, { step: 20 });
    run.step(21, { loss: 1, [hostile]: 2 });
    run.add({ type: "warning", step: 3, error: { code: "X", message: hostile, next: hostile } });
    run.log = `${hostile}\n`;
    run.advisories = [advisory(hostile)];
    await open([run], { view: { picked: [hostile] } });
    await page.getByRole("heading", { name: hostile }).first().waitFor();
    expect(await page.locator("h1").textContent()).toBe(hostile);
    await expect.poll(() => page.locator(".advisory").first().textContent()).toContain(hostile);
    await page.getByRole("button", { name: "Log", exact: true }).click();
    await page.locator(".log .virtual-row").first().waitFor();
    expect(await page.locator(".log .virtual-row").first().textContent()).toBe(hostile);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByText("Copy", { exact: true }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(hostile);
    expect(await page.evaluate(() => "__hit" in window)).toBe(false);
    expect(await page.locator("img").count()).toBe(0);
  });

  it("collapses progress lines of the log and keeps its colours (P39)", async () => {
    const run = goodRun("/runs/log", 5);
    run.log = "\x1b[31mERR\x1b[0m here\n10%\r20%\r30%\n\x1b[2J\x1b]0;t\x07last\n";
    await open([run], { view: { tab: "log" } });
    const rows = page.locator(".log .virtual-row");
    await expect.poll(() => rows.allTextContents()).toEqual(["ERR here", "30%", "last"]);
    expect(
      await rows
        .first()
        .locator("span")
        .evaluate((span) => getComputedStyle(span).color),
    ).toBe("rgb(205, 49, 49)");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByText("Copy", { exact: true }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe("ERR here\n30%\nlast");
  });

  it("opens the trajectories of a step with a click on a point, and one of them with another", async () => {
    await open([goodRun("/runs/a", 40)]);
    await expect.poll(() => pixelsOf("Loss", blue)).toBeGreaterThan(100);
    const over = chart("Loss").locator(".u-over");
    const box = (await over.boundingBox())!;
    await page.mouse.click(box.x + box.width - 1, box.y + 40);
    await page.getByRole("heading", { name: "Step 40" }).waitFor();
    expect(asked("trajectories/ofStep").at(-1)!.params).toEqual({ folder: "/runs/a", step: 40 });
    await page.locator(".step-table .virtual-row").first().click();
    await expect
      .poll(() => asked("host/openTrajectory").at(-1)?.params)
      .toEqual({ source: { kind: "record", folder: "/runs/a", record: "rec-40-0" }, beside: true });
  });

  it("draws other runs into the same charts, and lets them go", async () => {
    await open([goodRun("/runs/a", 40), goodRun("/runs/b", 60, 9)]);
    await page.getByText("Compare…").click();
    await expect.poll(() => page.locator(".run-header .chip").count()).toBe(2);
    await expect.poll(() => chart("Loss").locator(".chart-legend-label").count()).toBe(2);
    await page.getByRole("button", { name: "Remove b from the charts" }).click();
    await expect.poll(() => chart("Loss").locator(".chart-legend-label").count()).toBe(0);
    expect(asked("run/unfollow").map(({ params }) => params)).toEqual([{ folder: "/runs/b" }]);
  });

  it("says what was noticed, with links that lead on", async () => {
    const run = goodRun("/runs/a", 40);
    run.advisories = [advisory("KL rose to 0.04 at step 30.")];
    await open([run]);
    await page.getByText("KL rose to 0.04 at step 30.").click();
    await page.getByText("The learning rate is high.").waitFor();
    await page.getByRole("button", { name: "training.learningRate in recipe.yaml" }).click();
    await expect.poll(() => asked("host/follow").length).toBe(1);
    await page.getByRole("button", { name: "Show clip_fraction" }).click();
    await chart("clip_fraction").waitFor();
    await page.getByRole("button", { name: "Trajectories of step 30" }).click();
    await page.getByRole("heading", { name: "Step 30" }).waitFor();
  });

  it("offers what can be done in its state, and says why something was refused", async () => {
    const run = goodRun("/runs/a", 40);
    await open([run]);
    bench.handlers["run/pause"] = () => {
      throw new BenchRefusal("RUN_NOT_RUNNING", "The run has ended.", "Resume it first.");
    };
    await page.getByText("Pause", { exact: true }).click();
    await expect.poll(() => page.getByRole("alert").textContent()).toContain("The run has ended. Resume it first.");
    await page.getByText("Stop", { exact: true }).click();
    await expect.poll(() => asked("run/stop").at(-1)?.params).toEqual({ folder: "/runs/a", now: false });
    run.status = "crashed";
    run.crash = {
      exitCode: null,
      signal: "SIGKILL",
      stderrTail: "Killed",
      memory: { peak: 4e9, available: 1e8, killedForMemory: true },
      message: "The run was ended by the kernel for want of memory.",
      next: "Lower training.tokenBudget and resume.",
      at: 0,
    };
    bench.notify("runs/changed", { changed: [run.summary()], removed: [] });
    await expect.poll(() => page.locator(".run-header .banner").textContent()).toContain("Lower training.tokenBudget");
    await expect.poll(() => page.locator("[role=status]").textContent()).toContain("Crashed");
    await page.getByText("Resume", { exact: true }).click();
    await expect.poll(() => asked("run/resume").length).toBe(1);
  });
});

describe("what was chosen", () => {
  it("is there again after a reload", async () => {
    await open([goodRun("/runs/a", 60)]);
    await expect.poll(() => pixelsOf("Loss", blue)).toBeGreaterThan(100);
    await page.getByText("Log scale").click();
    await page.locator('input[type="range"]').fill("0.5");
    await chart("Loss").locator(".chart-plot").focus();
    await page.keyboard.press("+");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /^Step / }).waitFor();
    await expect.poll(() => bench.state.view["step"]).toEqual(expect.any(Number));
    await expect.poll(() => bench.state.view["range"]).toBeTruthy();
    const kept = JSON.stringify(bench.state);
    await page.reload();
    await page.getByRole("heading", { name: /^Step / }).waitFor();
    expect(await page.locator('input[type="range"]').inputValue()).toBe("0.5");
    await expect.poll(() => JSON.stringify(bench.state)).toBe(kept);
    expect(kept).toContain('"logarithmic":true');
    expect(JSON.parse(kept).view.range).not.toBeNull();
  });

  it("speaks the editor's language", async () => {
    await open([goodRun("/runs/a", 30)], { locale: "zh-cn" });
    await expect.poll(() => page.locator(".tabs").textContent()).toBe("图表检查点配置日志");
  });
});

describe("the connection", () => {
  it("comes back by itself, and what happened meanwhile is there once", async () => {
    const run = goodRun("/runs/a", 30);
    await open([run]);
    await expect.poll(() => pixelsOf("Loss", blue)).toBeGreaterThan(100);
    bench.loseConnections();
    await expect.poll(() => page.getByRole("alert").textContent()).toContain("was lost");
    expect(await pixelsOf("Loss", blue)).toBeGreaterThan(100);
    for (let step = 31; step <= 35; step++) run.step(step, { loss: step });
    bench.accept();
    await expect.poll(() => chart("Loss").locator(".chart-readout").textContent(), { timeout: 15_000 }).toBe("35");
    expect(asked("run/follow").map(({ params }) => (params as { cursor: number | null }).cursor)).toEqual([
      null,
      run.events.length - 5,
    ]);
    expect((await tableOf("Loss")).slice(0, 6).map(([step]) => step)).toEqual(["35", "34", "33", "32", "31", "30"]);
  });

  it("says what to do where a run has no step, or is not there", async () => {
    const run = new BenchRun("/runs/new");
    run.start(10);
    await open([run]);
    await page.getByText("The first point appears when the first step is committed.").waitFor();
    bench.notify("run/delta", {
      kind: "gone",
      folder: "/runs/new",
      error: { code: "RUN_NOT_FOUND", message: "Its folder was removed.", next: "Choose another run." },
    });
    await expect
      .poll(() => page.getByRole("alert").textContent())
      .toContain("Its folder was removed. Choose another run.");
  });
});

function advisory(sentence: string): Advisory {
  return {
    kind: "klSpike",
    severity: "warning",
    from: 28,
    to: 30,
    inForce: true,
    sentence,
    causes: ["The learning rate is high."],
    numbers: { kl: 0.04 },
    links: [
      { kind: "step", step: 30 },
      { kind: "metric", metric: "clip_fraction" },
      { kind: "recipeKey", key: "training.learningRate" },
    ],
  };
}
