import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

let folder = "";
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "rollscope-bundle-"));
  const script: string = new URL("../../../scripts/buildExtension.mjs", import.meta.url).href;
  const { bundleExtension } = (await import(script)) as { bundleExtension: (folder: string) => Promise<void> };
  await bundleExtension(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const size = (name: string) => statSync(join(folder, name)).size;

it("loads less than 150 KB at activation, and holds less than 1.5 MB in all", () => {
  expect(size("extension.cjs")).toBeLessThan(150_000);
  expect(size("extension.cjs") + size("extensionMain.cjs")).toBeLessThan(1_500_000);
});

it("reaches the second bundle by name only, and nothing but the editor besides", () => {
  const code = readFileSync(join(folder, "extension.cjs"), "utf8");
  const required = [...code.matchAll(/require\("([^"]+)"\)/g)].map((match) => match[1]);
  expect([...new Set(required)].sort()).toEqual(["./extensionMain.cjs", "vscode"]);
});
