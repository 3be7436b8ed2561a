// The inspector in a real browser: what a person reads, points at and types, over a host that this test plays.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { storedNumber } from "../../webview/inspector/tokenText.ts";
import { launchChromium } from "../support/chromium.ts";
import { chosenTurn, eventually, numberOf, type OpenArguments, openInspector } from "./inspectorPage.ts";
import {
  allColumns,
  type BenchTrajectory,
  longTrajectory,
  mathTrajectory,
  numbersOf,
  outlineOf,
  recordSource,
  toolTrajectory,
  turnOf,
} from "./trajectoryBench.ts";

let browser: Browser;

beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());

const open = (...given: OpenArguments) => openInspector(browser, ...given);

test("hovering over a token shows its stored numbers, and all their digits on request", async () => {
  const { page, faults } = await open(mathTrajectory(), { turn: 2 });
  await page.locator('[data-cell="5"]').hover();
  const stored = numbersOf(5);
  await eventually(() => numberOf(page, "logprob")).toBe(storedNumber(Math.fround(stored["logprob"]!), false));
  for (const name of allColumns) {
    const value = ["id", "version", "mask", "staleness"].includes(name) ? stored[name]! : Math.fround(stored[name]!);
    await eventually(() => numberOf(page, name)).toBe(storedNumber(value, false));
  }
  await page.getByText("All digits").click();
  await page.locator('[data-cell="5"]').hover();
  await eventually(() => numberOf(page, "logprob")).toBe(storedNumber(Math.fround(stored["logprob"]!), true));
  expect([...faults]).toEqual([]);
});

test("a trajectory that is opened from a list begins at what was sampled", async () => {
  const { page } = await open(mathTrajectory(), { sampled: true });
  await eventually(() => chosenTurn(page)).toBe("3 · assistant");
  await page.locator('[data-cell="0"]').waitFor();
});

test("every function is reached with the keyboard alone", async () => {
  const { page, bench, asked } = await open(mathTrajectory());
  await page.locator(".turn-facts").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await eventually(() => chosenTurn(page)).toBe("3 · assistant");
  await page.locator('[data-cell="0"]').waitFor();
  await page.keyboard.press("l");
  await page.keyboard.press("l");
  await page.keyboard.press("h");
  await eventually(() => page.locator('[data-cell="1"]').getAttribute("aria-current")).toBe("true");
  await page.locator('[data-cell="1"]').focus();
  await page.keyboard.press("ArrowRight");
  await eventually(() => page.evaluate(() => document.activeElement?.getAttribute("data-cell"))).toBe("2");
  await page.keyboard.press("End");
  await eventually(() => page.evaluate(() => document.activeElement?.getAttribute("data-cell"))).toBe("30");
  expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toContain("Token 30");

  await page.keyboard.press("2");
  await eventually(() => page.locator(".turn-pane .text").textContent()).toContain("<|im_start|>assistant");
  await page.keyboard.press("3");
  await page.getByText("72", { exact: false }).first().waitFor();
  expect(await page.locator(".details").textContent()).toContain("−0.125");
  await page.keyboard.press("1");

  await page.keyboard.press("g");
  await page.locator("dialog").waitFor();
  await page.keyboard.type("2");
  await page.keyboard.press("Enter");
  await eventually(() => chosenTurn(page)).toBe("2 · user");
  await page.keyboard.press("g");
  await page.locator("dialog").waitFor();
  await page.keyboard.type("t7");
  await page.keyboard.press("Enter");
  await eventually(() => chosenTurn(page)).toBe("3 · assistant");
  await eventually(() => page.locator('[data-cell="7"]').getAttribute("aria-current")).toBe("true");

  await page.keyboard.press("/");
  await page.keyboard.type("clips");
  await page.keyboard.press("Enter");
  await eventually(() => page.locator(".content mark").textContent()).toBe("clips");
  await page.keyboard.press("Enter");
  await eventually(() => page.locator(".hits-bar").textContent()).toContain("2 / ");
  await page.keyboard.press("Escape");
  await page.locator('[role="listbox"][aria-label="Turns"]').waitFor();
  await page.locator(".turn-list").focus();

  await page.keyboard.press("w");
  const worst = Math.min(...Array.from({ length: 31 }, (_, token) => numbersOf(token)["logprob"]!));
  await eventually(() => numberOf(page, "logprob")).toBe(storedNumber(Math.fround(worst), false));
  await page.keyboard.press("?");
  await eventually(() => page.locator("dialog").textContent()).toContain("next turn, turn before");
  // Its text is there a moment before it is open and takes keys.
  await page.locator("dialog").waitFor();
  await page.keyboard.press("Escape");
  await eventually(() => page.locator("dialog").count()).toBe(0);
  expect(asked("trajectory/search")).toHaveLength(1);
  await eventually(() => bench.state.view).toMatchObject({ turn: 2, mode: "chat" });
});

test("calls and results are paired, images are cells, and branches are tabs", async () => {
  const { page, faults } = await open(toolTrajectory(), { turn: 2 });
  const call = page.locator('section[aria-label="Call search"]');
  await eventually(() => call.textContent()).toContain("The index did not answer.");
  expect(await page.locator('section[aria-label="Call describe"]').textContent()).toContain("a bridge with two towers");
  await call.getByText("answered in turn 5").click();
  await eventually(() => chosenTurn(page)).toBe("5 · tool");
  await page.getByText("called in turn 3").click();
  await eventually(() => chosenTurn(page)).toBe("3 · assistant");
  await page.keyboard.press("k");
  await page.locator("img.image").waitFor();
  expect(await page.locator("[data-cell]").count()).toBe(1);
  await page.getByRole("button", { name: "Branch 2" }).click();
  await eventually(() => chosenTurn(page)).toBe("8 · assistant");
  expect(await page.locator(".turn-list .virtual-row").count()).toBe(7);
  expect([...faults]).toEqual([]);
});

test("escape codes of a tool are colours or nothing, and copying gives the original bytes", async () => {
  const { page, copied } = await open(toolTrajectory(), { turn: 3 });
  const text = page.locator(".turn-pane .text");
  // Lines of terminal output are elements: only what is laid out has them apart.
  // biome-ignore lint/performance/useDomNodeTextContent: see above
  await eventually(() => text.innerText()).toBe("ERR none\n30%\na bridge with two towers");
  await page.locator(".turn-pane .copy").click();
  await eventually(() => copied()).toEqual([toolTrajectory().text(3, 0)]);
});

test("model output is text wherever it stands", async () => {
  const hostile = '<img src=q onerror="window.__hit=1"> | a | b |\u202e<script>window.__hit=1</script>';
  const made: BenchTrajectory = {
    outline: outlineOf({ turnCount: 2, tokenCount: 1, columns: ["logprob"], reward: { [hostile]: hostile } }),
    turn: (turn) =>
      turn === 0
        ? turnOf({
            turn,
            role: "assistant",
            parts: [{ kind: "text", text: hostile }],
            toolCalls: [{ id: "a", name: hostile, arguments: hostile }],
            tokens: { first: 0, length: 1 },
          })
        : turnOf({
            turn,
            role: "tool",
            parts: [{ kind: "text", text: hostile }],
            result: { callId: "a", name: hostile, error: hostile, milliseconds: 1 },
          }),
    text: () => hostile,
    token: () => ({ text: hostile, numbers: { logprob: -1 } }),
  };
  made.outline.row.taskName = hostile;
  const { page, faults, copied } = await open(made);
  await eventually(() => page.locator(".turn-pane .text").first().textContent()).toBe(hostile);
  await page.locator(".turn-pane .copy").first().click();
  await eventually(() => copied()).toEqual([hostile]);
  for (const mode of ["2", "3", "4", "1"]) await page.keyboard.press(mode);
  await page.keyboard.press("j");
  await eventually(() => chosenTurn(page)).toBe("2 · tool");
  expect(await page.evaluate(() => (window as { __hit?: number }).__hit)).toBeUndefined();
  expect(await page.locator("img").count()).toBe(0);
  expect([...faults]).toEqual([]);
});

test("what was chosen comes back after a reload", async () => {
  const { page, bench } = await open(toolTrajectory());
  await page.locator(".turn-facts").waitFor();
  for (const key of ["j", "j", "l", "l", "l"]) await page.keyboard.press(key);
  await eventually(() => bench.state.view).toMatchObject({ turn: 2, cell: 3 });
  await page.reload();
  await eventually(() => chosenTurn(page)).toBe("3 · assistant");
  await eventually(() => page.locator('[data-cell="3"]').getAttribute("aria-current")).toBe("true");
});

test("the numbers of another step are read when it is chosen", async () => {
  const { page, asked } = await open(mathTrajectory(), { turn: 2 });
  await page.locator('[data-cell="0"]').waitFor();
  const step = page.getByRole("combobox", { name: "Numbers of" });
  await step.click();
  await page.getByRole("option", { name: "step 3" }).click();
  await eventually(() =>
    (asked("trajectory/tokens") as { row: string | null }[]).some(({ row }) => row === "row-3"),
  ).toBe(true);
});

test("siblings stand side by side from the token where they part", async () => {
  const { page, asked } = await open(mathTrajectory(), { mode: "siblings" });
  await eventually(() => page.locator(".sibling").count()).toBe(4);
  await eventually(() => page.locator(".sibling").nth(1).textContent()).toContain("parts at token 11, turn 2");
  await eventually(() => page.locator(".sibling .differs").nth(1).textContent()).toContain("72");
  await page.getByRole("button", { name: "Open beside" }).first().click();
  await eventually(() => asked("host/openTrajectory")).toEqual([
    { source: { ...recordSource, record: "record-2" }, beside: true },
  ]);
});

test("trajectories of other tasks stand beside it with what they were asked, and the group is a click away", async () => {
  const other = { kind: "file" as const, path: "/w/other.jsonl", index: 3 };
  const { page, asked } = await open(mathTrajectory(), { mode: "siblings", against: [other] });
  await eventually(() => page.locator(".sibling").count()).toBe(2);
  expect(asked("trajectory/diff")).toEqual([{ source: recordSource, others: [other] }]);
  await eventually(() => page.locator(".sibling").nth(1).textContent()).toContain("another");
  await page.getByRole("button", { name: "Compare with its group" }).click();
  await eventually(() => page.locator(".sibling").count()).toBe(4);
});

test("a file that is being read shows how far it is, and grows", async () => {
  const long = longTrajectory(120, 4, 88);
  const whole = long.outline;
  long.outline = { ...whole, turnCount: 40, complete: false, progress: { done: 10, total: 40 } };
  const { page, bench } = await open(long);
  await eventually(() => page.locator(".header").textContent()).toContain("25 %");
  await eventually(() => page.locator(".header").textContent()).toContain("40 turns");
  long.outline = whole;
  bench.notify("trajectory/changed", { source: recordSource, outline: whole });
  await eventually(() => page.locator(".header").textContent()).toContain("120 turns");
  await page.locator(".turn-list").focus();
  await page.keyboard.press("End");
  await eventually(() => chosenTurn(page)).toBe("120 · assistant");
});

test("a lost connection is told, what is here stays, and the page goes on when it is back", async () => {
  const { page, bench } = await open(mathTrajectory());
  await page.locator(".turn-pane .text").waitFor();
  bench.loseConnections();
  await page.getByText("The connection to the daemon is away").waitFor();
  expect(await page.locator(".turn-pane .text").count()).toBe(1);
  bench.accept();
  await eventually(() => page.locator(".banner").count()).toBe(0);
  await page.keyboard.press("2");
  await eventually(() => page.locator(".turn-pane .text").textContent()).toContain("<|im_start|>");
});
