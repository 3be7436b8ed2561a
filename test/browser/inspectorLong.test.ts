// Long lines, many turns and many tokens in the inspector: nothing is cut without a word, nothing grows with them.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { PageState } from "../../protocol/pageHost.ts";
import { launchChromium } from "../support/chromium.ts";
import { chosenTurn, eventually, type OpenArguments, openInspector } from "./inspectorPage.ts";
import {
  type BenchTrajectory,
  handlersOf,
  longTrajectory,
  mathTrajectory,
  outlineOf,
  recordSource,
  turnOf,
} from "./trajectoryBench.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await launchChromium({ flags: ["--js-flags=--expose-gc", "--enable-precise-memory-info"] });
});
afterAll(() => browser.close());

const open = (...given: OpenArguments) => openInspector(browser, ...given);

test("a line of 2 MB is cut with notice, read piece by piece, searched, and copied whole", async () => {
  const line = `${"x".repeat(1_500_000)}needle${"y".repeat(500_000)}`;
  const made: BenchTrajectory = {
    outline: outlineOf({ turnCount: 1 }),
    turn: (turn) =>
      turnOf({
        turn,
        role: "tool",
        parts: [
          { kind: "text", text: line.slice(0, 20_000) },
          { kind: "cut", characters: line.length - 20_000, part: 0 },
        ],
      }),
    text: () => line,
    token: () => ({ text: "", numbers: {} }),
  };
  const { page, copied } = await open(made);
  await page.locator(".turn-pane .text").waitFor();
  const painted = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]!.startTime);
  // Two seconds are promised for a machine that does nothing else.
  expect(painted).toBeLessThan(6000);
  expect(await page.locator('[role="note"]').textContent()).toContain("1–20,000 of 2,000,006");
  await page.getByRole("button", { name: "Later" }).click();
  await eventually(() => page.locator('[role="note"]').textContent()).toContain("20,001–40,000");
  await page.keyboard.press("/");
  await page.keyboard.type("needle");
  await page.keyboard.press("Enter");
  await eventually(() => page.locator(".content mark").textContent()).toBe("needle");
  expect((await page.locator(".turn-pane .text").textContent())!.length).toBeLessThanOrEqual(20_000);
  await page.locator(".turn-pane .copy").click();
  await eventually(async () => (await copied()).map((text) => text === line)).toEqual([true]);
});

test("10,000 turns and 128K tokens take under 500 nodes and 256 MB, and turns that are here are not read again", async () => {
  const { page, asked, faults } = await open(longTrajectory(10_000, 26, 12_700));
  await page.locator(".turn-pane .text").waitFor();
  const session = await page.context().newCDPSession(page);
  const nodes = () => page.evaluate(() => document.querySelectorAll("*").length);
  expect(await nodes()).toBeLessThan(500);
  const list = page.locator(".turn-list");
  await list.focus();
  await page.keyboard.press("End");
  await eventually(() => chosenTurn(page)).toBe("10,000 · assistant");
  await page.locator('[data-cell="25"]').waitFor();
  expect(await nodes()).toBeLessThan(500);
  const before = asked("trajectory/turns").length;
  await list.press("Home");
  await eventually(() => chosenTurn(page)).toBe("1 · user");
  await list.press("End");
  await eventually(() => chosenTurn(page)).toBe("10,000 · assistant");
  expect(asked("trajectory/turns")).toHaveLength(before);
  for (let at = 0; at <= 20; at++) {
    await list.evaluate((element, share) => {
      element.scrollTop = share * element.scrollHeight;
    }, at / 20);
    await page.waitForFunction(() =>
      [...document.querySelectorAll(".turn-role")].every((line) => !line.textContent?.endsWith("…")),
    );
  }
  expect(await nodes()).toBeLessThan(500);
  const ranges = asked("trajectory/turns").map((params) => (params as { from: number }).from);
  expect(ranges.length).toBeLessThan(60);
  await session.send("HeapProfiler.collectGarbage");
  const heap = await page.evaluate(
    () => (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize,
  );
  expect(heap).toBeLessThan(256 * 1024 * 1024);
  expect([...faults]).toEqual([]);
});

test("another trajectory shows its first turns at once, and a turn of 128K tokens scrolls to its end", async () => {
  const { page, bench } = await open(mathTrajectory());
  await page.locator(".turn-pane .text").waitFor();
  const long = longTrajectory(2, 128_000, 600);
  Object.assign(bench.handlers, handlersOf(long));
  const state: PageState = { page: "inspector", source: { ...recordSource, record: "record-9" }, view: { turn: 0 } };
  await page.evaluate(() => {
    const watched = window as { __shown?: number };
    new MutationObserver(() => {
      if (document.querySelector(".turn-list")?.textContent?.includes("Question 1:") === true)
        watched.__shown ??= Date.now();
    }).observe(document, { childList: true, subtree: true, characterData: true });
  });
  const begun = Date.now();
  bench.notify("host/show", { state });
  await page.getByText("Question 1:").first().waitFor();
  const shown = await page.evaluate(() => (window as { __shown?: number }).__shown!);
  // 300 ms are promised for a machine that does nothing else.
  expect(shown - begun).toBeLessThan(1500);
  await page.keyboard.press("j");
  await page.locator('[data-cell="0"]').focus();
  await page.keyboard.press("End");
  await eventually(() => page.locator('[data-cell="127999"]').getAttribute("aria-label")).toContain("w127999");
  expect(await page.evaluate(() => document.querySelectorAll("*").length)).toBeLessThan(500);
});
