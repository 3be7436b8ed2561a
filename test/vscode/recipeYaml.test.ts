// recipe.yaml in the real editor, with no extension beside this one: problems with their places, quick fixes, hover, completion,
// and the same problems from a task in the terminal.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ProductWindow, startProduct } from "../support/productWindow.ts";
import { tinyModelFiles } from "../support/tinyModelFolder.ts";
import type { VSCode } from "../support/vscode.ts";

let file = "";
let product: ProductWindow;
let vscode: VSCode;

const whole = `name: sums
model: { source: ./model }
data: { train: tasks.jsonl }
sampling:
  groupSize: 2
objective:
  kind: grpo
  aggregation: token-mean
advantages: { estimator: group_mean }
training:
  steps: 4
`;
const faulty = whole
  .replace("groupSize: 2", "groupSize: 2\n  minGroupSize: 3")
  .replace("kind: grpo", "kind: grpo\n  clipLo: 0.1")
  .replace("steps: 4", "steps: 4\n  schedule: { finalFraction: 0.1 }");

const code = `import { defineRecipe } from "rollscope/recipe";
export default defineRecipe({ rollout() {}, evaluate: () => 0 });
`;

beforeAll(async () => {
  const files = {
    ...tinyModelFiles(),
    "recipe.yaml": faulty,
    "recipe.ts": code,
    "tasks.jsonl": '{"id":"a","q":"1"}\n',
  };
  product = await startProduct({
    files: Object.fromEntries(Object.entries(files).map(([name, content]) => [`sums/${name}`, content])),
    settings: { "editor.stickyScroll.enabled": false, "files.autoSave": "off" },
  });
  vscode = product.vscode;
  file = join(product.folder, "sums", "recipe.yaml");
});
afterAll(() => product?.dispose());

const row = (text: string | RegExp) => vscode.page.locator(".markers-panel .monaco-list-row", { hasText: text });
const written = (text: string) => vscode.page.locator(".monaco-editor .view-line", { hasText: text }).first();

/** Puts the cursor there, both from 1. */
async function goTo(line: number, column: number): Promise<void> {
  await vscode.page.locator(".editor-instance .monaco-editor").first().click();
  await vscode.page.keyboard.press("Control+G");
  await vscode.answer(`:${line}:${column}`);
}

async function save(text: RegExp): Promise<void> {
  await vscode.page.keyboard.press("Control+S");
  await expect.poll(() => readFileSync(file, "utf8")).toMatch(text);
}

test("an unknown key, a knob that nothing reads and an impossible combination are marked where they stand", async () => {
  await vscode.openFile("recipe.yaml");
  await vscode.runCommand("Problems: Focus on Problems View");
  await row(/clipLo.*clipLow.*\[Ln 9, Col 3\]/s).waitFor();
  await row(/finalFraction.*\[Ln 14, Col 15\]/s).waitFor();
  await row(/minGroupSize.*\[Ln 6, Col 3\]/s).waitFor();
  expect(await row(/\[Ln/).count()).toBe(3);
  await written("clipLo").locator("..").waitFor();
  await vscode.screenshot("recipe-problems");
});

test("quick fixes mend the file until nothing is wrong with it", async () => {
  const fixes = [
    [9, "clipLo", "Rename to clipLow"],
    [14, "finalFraction", "Remove training.schedule.finalFraction"],
    [6, "minGroupSize", "Remove sampling.minGroupSize"],
  ] as const;
  for (const [line, key, title] of fixes) {
    await goTo(line, faulty.split("\n")[line - 1]!.indexOf(key) + 2);
    await vscode.page.keyboard.press("Control+.");
    const fix = vscode.page.locator(".action-widget .monaco-list-row", { hasText: title });
    await fix.waitFor();
    if (title.startsWith("Rename")) await vscode.screenshot("recipe-quick-fix");
    // By the keyboard: the list lies below a cover that takes clicks.
    await vscode.page.keyboard.press("Enter");
    await row(new RegExp(`${key}\\b.*\\[Ln`, "s")).waitFor({ state: "hidden" });
  }
  await save(/clipLow: 0\.1/);
  expect(readFileSync(file, "utf8")).toBe(whole.replace("kind: grpo", "kind: grpo\n  clipLow: 0.1"));
  await vscode.page.getByText("No problems have been detected in the workspace.").waitFor();
});

test("hover tells what a key means, its default, the layer that set it and what the seed stacks call it", async () => {
  await written("groupSize").getByText("groupSize").hover();
  const hover = vscode.page.locator(".monaco-hover:visible");
  for (const text of ["sampling.groupSize", "Default: 8", "In force: 2, from recipe.yaml:5", "num_generations"])
    await hover.getByText(text).first().waitFor();
  await vscode.screenshot("recipe-hover");
});

test("completion offers the keys of a section and the values of a key", async () => {
  await goTo(5, 99);
  await vscode.page.keyboard.press("Enter");
  await vscode.page.keyboard.type("maxNew");
  const suggestion = (label: string) =>
    vscode.page.locator(".suggest-widget.visible .monaco-list-row", { hasText: label });
  await suggestion("maxNewTokens").waitFor();
  await vscode.page.keyboard.press("Enter");
  await vscode.page.keyboard.type("12");
  await written("maxNewTokens: 12").waitFor();

  await goTo(10, "  aggregation: ".length + 1);
  await vscode.page.keyboard.press("Shift+End");
  await vscode.page.keyboard.press("Delete");
  await vscode.page.keyboard.type("seq");
  await suggestion("sequence-mean").first().waitFor();
  await vscode.screenshot("recipe-completion");
  await suggestion("sequence-mean").first().click();
  await save(/^ {2}maxNewTokens: 12\n/m);
  expect(readFileSync(file, "utf8")).toMatch(/^ {2}aggregation: sequence-mean\S*$/m);
});

test("a task checks the recipe in the terminal, and its problem is listed at its line", async () => {
  await vscode.runCommand("View: Close All Editors");
  writeFileSync(file, whole.replace("steps: 4", "stepz: 4"));
  await vscode.runCommand("Tasks: Run Task");
  // Their labels begin with an icon.
  const offered = (text: RegExp) =>
    vscode.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first();
  await offered(/^\s*rollscope/).click();
  await offered(/Rollscope: check sums/).click();
  await vscode.page
    .locator(".panel .single-terminal-tab, .panel .terminal-tabs-entry", { hasText: "check sums" })
    .first()
    .waitFor();
  await vscode.runCommand("Problems: Focus on Problems View");
  await row(/stepz.*\[Ln 11, Col 3\]/s).waitFor();
  expect(await row(/\[Ln/).count()).toBe(1);
  await row(/stepz/).dblclick();
  await vscode.tab("recipe.yaml").waitFor();
  await written("stepz").waitFor();
  // The editor's own check of the open file takes the task's place, and does not stand beside it.
  await vscode.page.locator(".monaco-editor .squiggly-error").first().waitFor();
  expect(await row(/\[Ln/).count()).toBe(1);
  await vscode.screenshot("recipe-task-problem");
});
