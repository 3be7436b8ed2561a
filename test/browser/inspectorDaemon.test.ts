// The inspector as `rollscope open` serves it, over the record of a run that really ran: what it shows is what the store holds.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadModelText } from "../../agent-daemon/src/engines/tokenizer/load.ts";
import { openFileBlobs } from "../../agent-daemon/src/store/fileBlobs.ts";
import { type LoadedTrajectory, loadTrajectory } from "../../agent-daemon/src/store/loadTrajectory.ts";
import { openSqliteStore } from "../../agent-daemon/src/store/sqliteStore.ts";
import type { RecordDataColumnName } from "../../protocol/recordData.ts";
import { storedNumber } from "../../webview/inspector/tokenText.ts";
import { launchChromium } from "../support/chromium.ts";
import { attemptToyRun, newToyRun, type ToyRun, toyFolder } from "../support/toyRun.ts";
import { type DaemonPages, daemonPages, eventually, toyProgram } from "./daemonPages.ts";

/** Two turns with a tool between them. */
const conversation = `
import { defineRecipe } from "rollscope/recipe";
export default defineRecipe({
  async rollout(task, agent) {
    const messages = [{ role: "user", content: task.payload.question }];
    for (let turn = 0; turn < 2; turn++) {
      const { message, text } = await agent.chat({ messages });
      const sum = await agent.tool("add", { text }, () => String(text.length));
      messages.push(message, { role: "user", content: sum });
    }
  },
  evaluate(record) {
    const first = record.text[0] ?? "";
    return { score: "13579".includes(first) && first !== "" ? 1 : 0, breakdown: { digit: 0.25 } };
  },
});
`;

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

interface Setup extends DaemonPages {
  readonly run: ToyRun;
  readonly folder: string;
  readonly record: string;
  readonly stored: LoadedTrajectory;
}

/** A run, and the record of its last step whose sampled tokens are the most. */
async function setUp(): Promise<Setup> {
  const run = await newToyRun(await toyFolder({ "recipe.ts": conversation }), ["--training.steps=2"]);
  expect((await attemptToyRun(run)).end.status).toBe("completed");
  const pages = await daemonPages(script, browser);
  const folder = run.folder.path;
  const { rows } = await pages.client.call("trajectories/ofStep", { folder, step: 2 });
  const [row] = rows.sort((a, b) => b.outputTokens! - a.outputTokens!);
  const store = await openSqliteStore(run.folder.records, { readOnly: true });
  try {
    const stored = await loadTrajectory(store, await openFileBlobs(run.folder.blobs), row!.id);
    return { ...pages, run, folder, record: row!.id, stored };
  } finally {
    await store.dispose();
  }
}

const numberOf = (page: Page, column: string) => page.locator(`[data-column="${column}"]`).textContent();
const chosenTurn = (page: Page) => page.locator(".turn-facts h2").textContent();

test("a record of a run shows its turns, and the stored numbers of the token under the pointer", async () => {
  const { inspect, folder, record, stored } = await setUp();
  const [first, second] = stored.calls;
  const { page, ...opened } = await inspect({ kind: "record", folder, record }, { turn: 1 });
  await eventually(() => chosenTurn(page)).toBe("2 · assistant");
  expect(await page.locator(".header").textContent()).toContain(
    `${first!.output.length + second!.output.length} tokens`,
  );
  expect(await page.locator(".turn-list .turn-role").allTextContents()).toEqual([
    "1 user",
    "2 assistant",
    "3 user",
    "4 assistant",
  ]);
  await eventually(() => page.locator(".turn-pane .text").textContent()).toBe(first!.document.message!.content);

  const token = first!.output.length - 1;
  await page.locator(`[data-cell="${token}"]`).hover();
  await page.getByText(`Token ${token}`).first().waitFor();
  const training = first!.training.at(-1)!;
  const trained = (column: RecordDataColumnName) => training.columns[column]![token - training.from]!;
  const expected: Record<string, number> = {
    id: first!.output[token]!,
    logprob: first!.logprobs[token]!,
    version: first!.versions[token]!,
    old: trained("old"),
    advantage: trained("advantage"),
    ratio: Math.fround(Math.exp(trained("new") - trained("old"))),
    mismatch: Math.fround(trained("old") - first!.logprobs[token]!),
  };
  for (const [column, value] of Object.entries(expected))
    await eventually(() => numberOf(page, column)).toBe(storedNumber(value, false));
  await eventually(() => numberOf(page, "gradient")).not.toBe("…");
  expect(await page.getByRole("combobox", { name: "Numbers of" }).textContent()).toContain("step 2");
  expect(opened.faults).toEqual([]);
});

test("raw shows the exact prompt and answer, special tokens included", async () => {
  const { inspect, folder, record, stored, run } = await setUp();
  const { page } = await inspect({ kind: "record", folder, record }, { turn: 3, mode: "raw" });
  const call = stored.calls[1]!;
  const { tokenizer } = loadModelText(`${run.recipeFolder}/model`);
  const text = tokenizer.decode([...call.promptTokens(), ...call.output]);
  expect(text).toContain("<end>");
  await eventually(() => page.locator(".turn-pane .text").textContent()).toBe(text);
});

test("the worst token is the stored column's extreme, and search finds what the model said", async () => {
  const { inspect, folder, record, stored } = await setUp();
  const { page } = await inspect({ kind: "record", folder, record }, { turn: 0 });
  await page.locator(".turn-facts").waitFor();
  await page.keyboard.press("w");
  const logprobs = stored.calls.flatMap((call) => [...call.logprobs]);
  const worst = logprobs.indexOf(Math.min(...logprobs));
  await page.locator(".numbers-title", { hasText: `Token ${worst}` }).waitFor();
  await eventually(() => numberOf(page, "logprob")).toBe(storedNumber(logprobs[worst]!, false));

  const said = String(stored.calls[1]!.document.message!.content);
  await page.keyboard.press("/");
  await page.keyboard.type(said);
  await page.keyboard.press("Enter");
  await eventually(() => page.locator(".content mark").textContent()).toBe(said);
  await page.keyboard.press("Escape");
  await page.locator('[role="listbox"][aria-label="Turns"]').waitFor();
});

test("siblings of the group stand side by side, each from its first other token", async () => {
  const { inspect, client, folder, record } = await setUp();
  const { rows } = await client.call("trajectory/siblings", { source: { kind: "record", folder, record } });
  expect(rows).toHaveLength(3);
  const { page } = await inspect({ kind: "record", folder, record }, { mode: "siblings" });
  await eventually(() => page.locator(".sibling").count()).toBe(4);
  for (const [index, { row, parts }] of rows.entries()) {
    const column = page.locator(".sibling").nth(index + 1);
    const where = parts === null ? "the same tokens" : `parts at token ${parts.token}, turn ${parts.turn + 1}`;
    await eventually(() => column.textContent()).toContain(where);
    expect(await column.textContent()).toContain(`Sample ${row.sample}`);
    expect(await column.textContent()).toContain(`score ${row.score}`);
  }
  const beside = page.waitForEvent("popup");
  await page.getByRole("button", { name: "Open beside" }).first().click();
  const other = await beside;
  await other.locator(".turn-facts").waitFor();
  expect(decodeURIComponent(other.url())).toContain(rows[0]!.row.id);
});

test("P20: ids beyond 2^53 are shown with every digit, as the numbers that they are", async () => {
  const { inspect, folder, record, stored } = await setUp();
  const id = stored.task!.payload["id"];
  expect(typeof id).toBe("bigint");
  const { page, ...opened } = await inspect({ kind: "record", folder, record }, { mode: "details" });
  await page.getByText("Task", { exact: true }).waitFor();
  await eventually(() => page.locator(".details").textContent()).toContain(`"id": ${id},`);
  await page.locator(".details .copy").first().click();
  expect((await opened.copied())[0]).toContain(`"id": ${id},`);
  expect(opened.faults).toEqual([]);
});
