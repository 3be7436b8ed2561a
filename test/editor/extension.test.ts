// The extension in a real editor, as a person meets it: views, walkthrough, palette, checks, trust, a run from start to end.
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installPayload, productVsix } from "../support/installedProduct.ts";
import { startVSCode, type VSCode, type VSCodeOptions } from "../support/vscode.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const scratch = realpathSync(mkdtempSync(join(tmpdir(), "rollscope-editor-")));
const folder = join(scratch, "folder");

beforeAll(() => {
  mkdirSync(folder);
  cpSync(join(repository, "recipes", "arithmetic-grpo"), join(folder, "sums"), { recursive: true });
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const product = (): VSCodeOptions => ({ folder, extensions: [productVsix()] });
const withPayload = (): VSCodeOptions => ({ ...product(), prepare: (home) => void installPayload(home) });

/** Opens the container in the activity bar. */
async function openContainer(vscode: VSCode): Promise<void> {
  const icon = vscode.page.locator(".activitybar .action-item .action-label[aria-label='Rollscope']");
  await icon.click();
  await vscode.page.locator(".sidebar .pane-header", { hasText: "Trajectories" }).waitFor();
}

/** A line of a view. */
const row = (vscode: VSCode, text: string | RegExp) =>
  vscode.page.locator(".sidebar .monaco-list-row", { hasText: text }).first();

describe("with a payload", () => {
  let vscode: VSCode;
  beforeAll(async () => {
    vscode = await startVSCode(withPayload());
  });
  afterAll(async () => vscode?.dispose());

  test("the palette offers every command that stands in it, and none that needs a line of a view", async () => {
    for (const title of ["Run Recipe", "New Recipe", "Check Environment", "Compare Runs", "Explain Why Loss Is Zero"]) {
      expect(await vscode.offersCommand(`Rollscope: ${title}`)).toBe(true);
    }
    expect(await vscode.offersCommand("Rollscope: Sort Trajectories")).toBe(false);
  });

  test("the walkthrough opens with its four steps", async () => {
    await vscode.runCommand("Welcome: Open Walkthrough...");
    await vscode.pick("Get Started with Rollscope");
    await vscode.page.getByText("Read a trajectory token by token").first().waitFor();
    await vscode.screenshot("walkthrough");
  });

  test("activation takes less than 50 ms", async () => {
    await vscode.runCommand("Developer: Show Running Extensions");
    const line = vscode.page.locator(".runtime-extensions-editor .monaco-list-row", { hasText: "Rollscope" });
    const told = await line.locator(".activation-time").textContent();
    const milliseconds = Number(/(\d+)ms/.exec(told ?? "")?.[1]);
    expect(milliseconds).toBeLessThan(50);
  });

  test("four views show this machine, say what to do without runs, and list the recipes", async () => {
    await openContainer(vscode);
    await row(vscode, "This machine").waitFor();
    await vscode.page.getByText("No runs yet").first().waitFor();
    await vscode.screenshot("views");
  });
});

describe("without a payload", () => {
  test("the views name the code's next action, and Check Environment says where it looked", async () => {
    const vscode = await startVSCode(product());
    await openContainer(vscode);
    await vscode.runCommand("Rollscope: Check Environment");
    await vscode.page.getByText("PAYLOAD_NOT_FOUND").first().waitFor();
    await vscode.notification("Choose Payload").waitFor();
    await vscode.screenshot("no-payload");
    await vscode.dispose();
  });
});

describe("in an untrusted folder", () => {
  test("one can look, but not run", async () => {
    const vscode = await startVSCode({ ...withPayload(), trust: "asked" });
    await vscode.page.getByRole("button", { name: /No, I don't trust/ }).click();
    await openContainer(vscode);
    await row(vscode, "This machine").waitFor();
    await vscode.runCommand("Rollscope: Run Recipe");
    await vscode.notification("WORKSPACE_UNTRUSTED").waitFor();
    await vscode.screenshot("untrusted");
    await vscode.dispose();
  });
});
