// For every file of test/vscode: a picture of each window when a test failed, and nothing left running after the last.
import { afterAll, afterEach } from "vitest";
import { openEditors } from "./vscode.ts";

afterEach(async ({ task }) => {
  if (task.result?.state !== "fail") return;
  for (const [index, editor] of openEditors().entries()) {
    const name = task.name.replaceAll(/\W+/g, "-").slice(0, 80);
    await editor.screenshot(`failed-${name}${index === 0 ? "" : `-${index}`}`).catch(() => {});
  }
});

afterAll(async () => {
  for (const editor of openEditors()) await editor.dispose();
});
