// Extension and payload as they are handed out, installed into an empty home; nothing of the checkout takes part.
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { installPayload, productVsix } from "../support/installedProduct.ts";
import { startVSCode } from "../support/vscode.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "installed-")));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the daemon starts from the installed payload, and Check Environment finds that a run would work", async () => {
  let payload = "";
  const vscode = await startVSCode({
    folder,
    extensions: [productVsix()],
    prepare: (home) => {
      payload = installPayload(home);
    },
  });
  await vscode.runCommand("Rollscope: Check Environment");
  await vscode.page.getByText("a gradient").first().waitFor();
  await vscode.screenshot("installed");
  const daemons = vscode.home.processes().filter(({ command }) => command.includes("daemon"));
  expect(daemons.length).toBeGreaterThan(0);
  for (const { command } of daemons) expect(command.join(" ")).toContain(payload);
  await vscode.dispose();
});
