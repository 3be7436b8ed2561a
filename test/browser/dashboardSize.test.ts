// The sizes that the dashboard is made for: a million points, twenty lines drawn, a thousand metrics to choose from.
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chunkBuckets } from "../../webview/dashboard/bucketStore.ts";
import { launchChromium } from "../support/chromium.ts";
import { tellFigures } from "../support/figures.ts";
import { openInTheme } from "./editorThemes.ts";
import { frameWork, percentile } from "./mainThread.ts";
import { watchPage } from "./pageBench.ts";
import { BenchRun, noise, startRunBench } from "./runBench.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());

const bundle = (name: string) => statSync(fileURLToPath(new URL(`../../dist/webview/${name}`, import.meta.url))).size;

describe("a million points", () => {
  it("pan smoothly, and nothing is read twice", async () => {
    const names = [
      ...["loss", "reward_mean", "kl_k3", "mismatch_k3", "entropy", "grad_norm", "tokens_sampled", "tokens_per_second"],
      ...Array.from({ length: 12 }, (_, index) => `probe/${index}`),
    ];
    const run = new BenchRun("/runs/long");
    const random = noise(5);
    run.start(50_000);
    for (let step = 1; step <= 50_000; step++) {
      run.step(
        step,
        Object.fromEntries(names.map((name, index) => [name, Math.sin(step / (900 + 50 * index)) + random()])),
      );
    }
    const bench = await startRunBench([run], { view: { picked: names.slice(8) } });
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const faults = watchPage(page);
    await openInTheme(page, "dark");
    await page.goto(bench.url);
    const over = page.locator(".u-over").first();
    await over.waitFor();
    const points = await page.evaluate(() => document.querySelectorAll("*").length);
    expect(points).toBeLessThan(1500);

    await page.locator(".chart-plot").first().focus();
    for (let press = 0; press < 6; press++) await page.keyboard.press("+");
    await expect.poll(() => bench.state.view["range"]).not.toBeNull();
    const box = (await over.boundingBox())!;
    // Three pans, and the middle one: another load on the machine spoils one of them now and then.
    const p95: number[] = [];
    for (let pan = 0; pan < 3; pan++) {
      const work = await frameWork(page, async () => {
        await page.keyboard.down("Shift");
        await page.mouse.move(box.x + box.width - 10, box.y + 60);
        await page.mouse.down();
        for (let move = 0; move < 100; move++) await page.mouse.move(box.x + box.width - 10 - move * 2, box.y + 60);
        await page.mouse.up();
        await page.keyboard.up("Shift");
      });
      expect(work.length).toBeGreaterThan(20);
      p95.push(percentile(work, 0.95));
    }
    tellFigures({ pan_frame_p95_ms: percentile(p95, 0.5) });
    // 8 ms are promised for a machine that does nothing else (npm run bench dashboard): caches that other work empties cost some.
    expect(Math.min(...p95)).toBeLessThan(24);
    const ranges = bench.asked
      .filter(({ method }) => method === "metrics/series")
      .map(({ params }) => params as { names: string[]; from: number; to: number; buckets: number });
    const chunks = ranges.flatMap(({ names: asked, from, to, buckets }) => {
      const width = (to - from + 1) / buckets;
      const first = from / (chunkBuckets * width);
      return asked.flatMap((name) =>
        Array.from({ length: buckets / chunkBuckets }, (_, index) => `${name} ${width} ${first + index}`),
      );
    });
    expect(new Set(chunks).size).toBe(chunks.length);
    expect(faults).toEqual([]);
    await page.close();
    await bench.close();
  });
});

describe("the bundle", () => {
  it("stays small", () => {
    expect(bundle("dashboard.js")).toBeLessThan(640_000);
    expect(bundle("dashboard.css")).toBeLessThan(40_000);
  });
});
