// The editor's own Node debugger works in the bench: Debug Recipe stands on it.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startVSCode } from "../support/vscode.ts";

const scratch = realpathSync(mkdtempSync(join(tmpdir(), "debugger-")));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("a Node program stops at a breakpoint, shows its variables and goes on to its end", async () => {
  writeFileSync(join(scratch, "program.js"), 'const answer = 6 * 7;\nconsole.log("the answer is", answer);\n');
  mkdirSync(join(scratch, ".vscode"));
  const launch = { type: "node", request: "launch", name: "Program", program: join(scratch, "program.js") };
  writeFileSync(
    join(scratch, ".vscode", "launch.json"),
    JSON.stringify({ version: "0.2.0", configurations: [launch] }),
  );
  const vscode = await startVSCode({ folder: scratch });

  await vscode.openFile("program.js");
  await vscode.page.locator(".monaco-editor .view-line", { hasText: "the answer is" }).click();
  await vscode.runCommand("Debug: Toggle Breakpoint");
  await vscode.page.locator(".codicon-debug-breakpoint").first().waitFor();
  await vscode.runCommand("Debug: Start Debugging");
  await vscode.page.locator(".debug-top-stack-frame-line").first().waitFor();
  await vscode.runCommand("View: Show Run and Debug");
  const variable = vscode.page.locator(".debug-variables .monaco-list-row", { hasText: "answer" });
  await variable.waitFor();
  expect(await variable.textContent()).toContain("42");
  await vscode.screenshot("node-debugger");

  await vscode.runCommand("Debug: Continue");
  await vscode.page.locator(".debug-toolbar").waitFor({ state: "hidden" });
  await vscode.runCommand("Debug Console: Focus on Debug Console View");
  await vscode.page.locator(".repl .monaco-list-row", { hasText: "the answer is 42" }).first().waitFor();
  await vscode.dispose();
});
