// Files of other tools, and one that was exported here, in the editor's own trajectory editor: first turns, the other trajectories of the
// file, and Open Trajectory from the palette.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dataPath } from "../support/paths.ts";
import { type ProductWindow, startProduct } from "../support/productWindow.ts";

interface Conversation {
  readonly roles: string[];
  readonly tool_calls: string[];
}
const facts = JSON.parse(readFileSync(dataPath("facts.json"), "utf8")) as Record<string, unknown>;
/** The first data file whose name begins so. */
const dataFile = (folder: string) => Object.keys(facts).find((name) => name.startsWith(`${folder}/`))!;
const coding = dataFile("swe-agent");
const service = dataFile("tau-bench");
const chat = dataFile("openai-chat");

let product: ProductWindow;
beforeAll(async () => {
  product = await startProduct({
    files: {
      "coding.traj": readFileSync(dataPath(coding)),
      "service.traj.json": readFileSync(dataPath(service)),
      "chat.jsonl": readFileSync(dataPath(chat)),
    },
    before: async ({ folder, rollscope }) => {
      const outputDir = join(folder, "imported");
      const { path } = JSON.parse(
        await rollscope("import", join(folder, "chat.jsonl"), "--output-dir", outputDir, "--json"),
      ) as { path: string };
      await rollscope("export", path, "--format", "chat", "--out", join(folder, "chat.rollscope.jsonl"));
    },
  });
});
afterAll(() => product?.dispose());

/** What the file's editor shows; the frame of such an editor has no title of its own. */
async function shown(name: string) {
  const { page } = product.vscode;
  await page.locator(".tabs-container .tab.active", { hasText: name }).waitFor();
  const frame = page.locator("iframe.webview.ready:visible");
  await expect.poll(() => frame.count()).toBe(1);
  const editor = frame.contentFrame().locator("iframe#active-frame").contentFrame();
  await editor.locator(".turn-pane .text").first().waitFor();
  return editor;
}

test("a trajectory file opens in the trajectory editor and shows its turns", async () => {
  const { vscode } = product;
  const { roles } = facts[coding] as Conversation;
  await vscode.openFile("coding.traj");
  const editor = await shown("coding.traj");
  await editor.getByText(`${roles.length} turns`).waitFor();
  expect(await editor.locator(".turn-facts h2").textContent()).toBe(`1 · ${roles[0]}`);
  await vscode.screenshot("file");
});

test("a file with several trajectories lists them in the view, and a key goes from one to the next", async () => {
  const { vscode } = product;
  const runs = facts[service] as (Conversation & { task_id: number })[];
  await vscode.openFile("service.traj.json");
  const editor = await shown("service.traj.json");
  await editor.getByText(`1 of ${runs.length} in the file`).waitFor();
  await editor.locator(".turn-list").focus();
  await editor.locator(".turn-list").press("]");
  await editor.getByText(`2 of ${runs.length} in the file`).waitFor();
  await editor.getByText(`${runs[1]!.roles.length} turns`).waitFor();
  await product.openViews();
  await product.header("Trajectories").getByText("service.traj.json").waitFor();
  await expect
    .poll(() => vscode.page.locator(".sidebar .monaco-list-row", { hasText: /turns/ }).count())
    .toBe(runs.length);
  await vscode.screenshot("file-several");
});

test("Open Trajectory opens any file, and one that was exported opens by itself", async () => {
  const { vscode, folder } = product;
  const { items } = facts[chat] as { items: Conversation[] };
  await vscode.runCommand("Rollscope: Open Trajectory");
  await vscode.page.locator(".quick-input-list .monaco-list-row", { hasText: "A file…" }).first().click();
  const box = vscode.page.locator(".quick-input-widget:visible input");
  await expect.poll(() => box.inputValue()).toContain(folder);
  await vscode.answer(join(folder, "chat.jsonl"));
  for (const name of ["chat.jsonl", "chat.rollscope.jsonl"]) {
    if (name !== "chat.jsonl") await vscode.openFile(name);
    const editor = await shown(name);
    await editor.getByText(`1 of ${items.length} in the file`).waitFor();
    await editor.getByText(`${items[0]!.roles.length} turns`).waitFor();
  }
  await vscode.screenshot("file-exported");
});
