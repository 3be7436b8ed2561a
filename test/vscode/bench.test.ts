// The bench itself: an extension made here is packed, installed, run and seen, so that a failure elsewhere is the
// product's.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startVSCode, type ThemeName, themes, type VSCode } from "../support/vscode.ts";
import { packVsix } from "../support/vsix.ts";

const scratch = realpathSync(mkdtempSync(join(tmpdir(), "bench-")));
let vscode: VSCode;

beforeAll(async () => {
  const folder = join(scratch, "folder");
  mkdirSync(folder);
  writeFileSync(join(folder, "note.txt"), "one line\n");
  vscode = await startVSCode({ folder, extensions: [packVsix(tinyExtension(), join(scratch, "tiny.vsix"))] });
});

afterAll(async () => {
  await vscode?.dispose();
  rmSync(scratch, { recursive: true, force: true });
});

test("a command of an installed extension runs from the palette and says so", async () => {
  await vscode.runCommand("Tiny: Greet");
  await vscode.pick("Loudly");
  await vscode.notification("HELLO").waitFor();
  expect(await vscode.notifications()).toEqual(["HELLO"]);
  expect(await vscode.offersCommand("Tiny: Leave")).toBe(false);
});

test("a file of the folder opens in an editor", async () => {
  await vscode.openFile("note.txt");
  await vscode.page.locator(".monaco-editor .view-line", { hasText: "one line" }).waitFor();
});

test("the page in a webview is seen and can be clicked in every theme", async () => {
  await vscode.runCommand("Tiny: Show Page");
  const page = await vscode.webview("Tiny Page");
  await page.getByRole("button", { name: "count" }).click();
  await page.getByText("clicked 1").waitFor();
  const frame = await vscode.webviewFrame("Tiny Page");
  const colours = new Set<string>();
  for (const theme of Object.keys(themes) as ThemeName[]) {
    await vscode.useTheme(theme);
    await page.locator(`body[data-vscode-theme-kind]`).waitFor();
    await vscode.screenshot(`bench-${theme}`);
    colours.add(await frame.evaluate(`document.body.dataset.vscodeThemeKind`));
  }
  expect([...colours].sort()).toEqual([
    "vscode-dark",
    "vscode-high-contrast",
    "vscode-high-contrast-light",
    "vscode-light",
  ]);
});

test("a reloaded window has its extensions again", async () => {
  await vscode.reload();
  await vscode.runCommand("Tiny: Greet");
  await vscode.pick("Quietly");
  await vscode.notification("hello").waitFor();
});

test("a window that was closed can be opened again, on the same server", async () => {
  await vscode.closeWindow();
  expect(vscode.home.processes().some(({ command }) => command.join(" ").includes("code-server"))).toBe(true);
  await vscode.openWindow();
  await vscode.runCommand("Tiny: Greet");
  await vscode.page.keyboard.press("Escape");
});

test("after the end no process of the home is left", async () => {
  await vscode.dispose();
  expect(vscode.home.processes()).toEqual([]);
});

/** An extension with two commands: one answers in a notification, one opens a page with a button that counts. */
function tinyExtension(): string {
  const folder = join(scratch, "tiny");
  mkdirSync(folder);
  const command = (command: string, title: string) => ({ command, title, category: "Tiny" });
  const manifest = {
    name: "tiny",
    publisher: "bench",
    version: "0.0.1",
    engines: { vscode: "^1.95.0" },
    main: "./main.js",
    contributes: { commands: [command("tiny.greet", "Greet"), command("tiny.show", "Show Page")] },
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(
    join(folder, "main.js"),
    `const vscode = require("vscode");
const html = \`<!doctype html><meta charset="utf-8"><button>count</button><p></p><script>
  let clicks = 0;
  document.querySelector("button").onclick = () => { document.querySelector("p").textContent = "clicked " + ++clicks; };
</script>\`;
exports.activate = (context) => context.subscriptions.push(
  vscode.commands.registerCommand("tiny.greet", async () => {
    const how = await vscode.window.showQuickPick(["Quietly", "Loudly"]);
    if (how) vscode.window.showInformationMessage(how === "Loudly" ? "HELLO" : "hello");
  }),
  vscode.commands.registerCommand("tiny.show", () => {
    vscode.window.createWebviewPanel("tiny", "Tiny Page", vscode.ViewColumn.One, { enableScripts: true }).webview.html = html;
  }),
);
`,
  );
  return folder;
}
