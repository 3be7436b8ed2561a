// Files of other tools in the inspector, through the daemon's page server: what facts.json says of them is what a person sees.
// Files and facts are found at run time: others of the same kinds pass the same tests.
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launchChromium } from "../support/chromium.ts";
import { temporaryFile } from "../support/openedFiles.ts";
import { dataPath } from "../support/paths.ts";
import { daemonPages, eventually, toyProgram } from "./daemonPages.ts";
import type { WatchedPage } from "./watchedPage.ts";

let script = "";
let remove = () => {};
let browser: Browser;
beforeAll(async () => {
  ({ script, remove } = await toyProgram());
  browser = await launchChromium();
});
afterAll(async () => {
  remove();
  await browser.close();
});

interface Conversation {
  readonly roles: string[];
  readonly tool_calls: string[];
  readonly first_text: string;
  readonly last_text: string;
}
const facts = JSON.parse(readFileSync(dataPath("facts.json"), "utf8")) as Record<string, unknown>;

/** The conversations that a fact tells of, in the order of the file; none where it tells of something else. */
function conversations(fact: unknown): Conversation[] {
  const { items, samples } = fact as { items?: unknown[]; samples?: unknown[] };
  const all = Array.isArray(fact) ? fact : (items ?? samples ?? [fact]);
  return all.filter((one): one is Conversation => Array.isArray((one as Partial<Conversation>).roles));
}
const files = Object.keys(facts).filter((name) => conversations(facts[name]).length > 0);

const heading = (page: Page) => page.locator(".turn-facts h2").textContent();
const short = (text: string) => [...text].slice(0, 80).join("");

/** Text parts of the chosen turn as they are copied, without its reasoning and its calls: terminal output is shown without its codes. */
async function textOfTurn({ page, copied }: WatchedPage): Promise<string> {
  const before = (await copied()).length;
  const buttons = page.locator(".turn-pane > .long-text > .copy");
  const count = await buttons.count();
  for (let part = 0; part < count; part++) {
    await buttons.nth(part).click();
    await eventually(async () => (await copied()).length).toBe(before + part + 1);
  }
  return (await copied()).slice(before).join("");
}

test("the facts tell of conversations", () => expect(files.length).toBeGreaterThan(3));

test("each file's first conversation shows its roles, its calls, its first and its last text", async () => {
  const { inspect } = await daemonPages(script, browser);
  const viewport = { width: 1280, height: 2400 };
  let opened: WatchedPage | null = null;
  for (const name of files) {
    const [expected] = conversations(facts[name]);
    opened = await inspect(
      { kind: "file", path: dataPath(name), index: 0 },
      {},
      opened === null ? { viewport } : { in: opened },
    );
    const { page } = opened;
    const count = expected!.roles.length;
    await eventually(() => page.locator(".header").textContent()).toContain(`${count} turn`);
    await eventually(() => heading(page)).toBe(`1 · ${expected!.roles[0]}`);
    expect(short(await textOfTurn(opened))).toBe(expected!.first_text);
    const roles: string[] = [];
    const calls: string[] = [];
    for (let turn = 1; turn <= count; turn++) {
      await eventually(() => heading(page)).toContain(`${turn} · `);
      roles.push((await heading(page))!.split(" · ")[1]!);
      calls.push(...(await page.locator(".tool-call > .pairing:first-child b").allTextContents()));
      if (turn < count) await page.keyboard.press("j");
    }
    expect(roles).toEqual(expected!.roles);
    expect(calls).toEqual(expected!.tool_calls);
    expect(short(await textOfTurn(opened))).toBe(expected!.last_text);
  }
  expect(opened!.faults).toEqual([]);
}, 180_000);

test("tokens of a file have its log-probabilities, and its other trajectories are a key away", async () => {
  const name = Object.keys(facts).find((each) => each.startsWith("verifiers-v1/"))!;
  const expected = (facts[name] as { reward: number; branches: { sampled: number; roles: string[] }[] }[]).flatMap(
    ({ reward, branches }) => branches.map(({ sampled, roles }) => ({ reward, sampled, roles })),
  );
  const { inspect, client } = await daemonPages(script, browser);
  const { page } = await inspect({ kind: "file", path: dataPath(name), index: 0 });
  for (const [index, { reward, sampled, roles }] of expected.entries()) {
    await eventually(() => page.locator(".in-file").textContent()).toContain(`${index + 1} of ${expected.length}`);
    await eventually(() => page.locator(".header").textContent()).toContain(`${sampled} tokens`);
    expect(await page.locator(".header").textContent()).toContain(`Score ${reward}`);
    expect(await page.locator(".turn-list .turn-role").count()).toBe(roles.length);
    await page.keyboard.press("]");
  }
  const { rows } = await client.call("file/open", { path: dataPath(name) });
  expect(rows).toHaveLength(expected.length);
  await page.keyboard.press("[");
  await eventually(() => page.locator(".in-file").textContent()).toContain(
    `${expected.length - 1} of ${expected.length}`,
  );
});

test("P20: two rows whose ids a JSON.parse makes equal are two trajectories, each with its own id", async () => {
  const ids = ["7205759403792793601", "7205759403792793602"];
  const line = (id: string) =>
    `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "task_id": ${id}}`;
  const path = temporaryFile(`${ids.map(line).join("\n")}\n`, "ids.jsonl");
  const { inspect, client } = await daemonPages(script, browser);
  const { rows } = await client.call("file/open", { path });
  expect(new Set(rows.map(({ id }) => id)).size).toBe(2);
  const { page, ...opened } = await inspect({ kind: "file", path, index: 0 }, { mode: "details" });
  for (const id of ids) {
    await eventually(() => page.locator(".details").textContent()).toContain(`"task_id": ${id}`);
    await page.keyboard.press("]");
  }
  expect(opened.faults).toEqual([]);
});

test("P37: HTML is text wherever a file may hold it, and copying gives the original bytes", async () => {
  const hostile = '<img src=q onerror="window.__hit=1"> | a | b |';
  const call = { id: "a", type: "function", function: { name: hostile, arguments: JSON.stringify({ a: hostile }) } };
  const messages = [
    { role: "user", content: hostile },
    { role: "assistant", content: hostile, reasoning_content: hostile, tool_calls: [call] },
    { role: "tool", tool_call_id: "a", content: `${hostile}\u001b[31m` },
  ];
  const path = temporaryFile(`${JSON.stringify({ messages, id: hostile, [hostile]: hostile })}\n`, "hostile.jsonl");
  const { inspect } = await daemonPages(script, browser);
  const { page, ...opened } = await inspect({ kind: "file", path, index: 0 });
  await eventually(() => page.locator(".turn-pane .text").first().textContent()).toBe(hostile);
  await page.locator(".turn-pane .copy").first().click();
  for (const key of ["j", "2", "3", "4", "1", "j"]) await page.keyboard.press(key);
  await eventually(() => heading(page)).toBe("3 · tool");
  await page.locator(".turn-pane .copy").first().click();
  await eventually(() => opened.copied()).toEqual([hostile, `${hostile}\u001b[31m`]);
  expect(await page.evaluate(() => (window as { __hit?: number }).__hit)).toBeUndefined();
  expect(await page.locator("img").count()).toBe(0);
  expect(opened.faults).toEqual([]);
});

test("P38: a line of 2 MB and a trajectory of 5,000 messages paint at once, stay small, and are searched whole", async () => {
  const line = `${"x".repeat(1_500_000)}needle${"y".repeat(500_000)}`;
  const message = (turn: number) => ({ role: turn % 2 === 0 ? "user" : "assistant", content: `message ${turn + 1}.` });
  const messages = Array.from({ length: 5000 }, (_, turn) => message(turn));
  messages[1]!.content = line;
  const path = temporaryFile(`${JSON.stringify({ messages })}\n`, "long.jsonl");
  const { inspect } = await daemonPages(script, browser);
  const { page, ...opened } = await inspect({ kind: "file", path, index: 0 }, { turn: 1 });
  await page.locator('[role="note"]').waitFor();
  const painted = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]!.startTime);
  // Two seconds are promised for a machine that does nothing else.
  expect(painted).toBeLessThan(6000);
  expect(await page.locator('[role="note"]').textContent()).toContain(
    `1–20,000 of ${(2_000_006).toLocaleString("en")}`,
  );
  const nodes = () => page.evaluate(() => document.querySelectorAll("*").length);
  expect(await nodes()).toBeLessThan(500);
  await page.keyboard.press("/");
  await page.keyboard.type("needle");
  await page.keyboard.press("Enter");
  await eventually(() => page.locator(".content mark").textContent()).toBe("needle");
  await page.locator(".turn-pane .copy").click();
  await eventually(async () => (await opened.copied()).map((text) => text === line)).toEqual([true]);

  await page.keyboard.press("/");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("message 4999.");
  await page.keyboard.press("Enter");
  await eventually(() => heading(page)).toBe("4,999 · user");
  await page.keyboard.press("Escape");
  await page.locator(".turn-list").focus();
  await page.keyboard.press("End");
  await eventually(() => heading(page)).toBe("5,000 · assistant");
  expect(await nodes()).toBeLessThan(500);
  expect(opened.faults).toEqual([]);
});
