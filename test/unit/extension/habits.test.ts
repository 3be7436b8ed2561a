// Habits that the source of the extension shows by itself: where it may speak up, and how much of the status bar it takes.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const folder = fileURLToPath(new URL("../../../extension", import.meta.url));
const sources = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ name, code: readFileSync(join(folder, name), "utf8") }));

it("shows notifications in one place only, where each has an action; elsewhere it may only ask, in a dialog", () => {
  for (const { name, code } of sources) {
    const spoken = code.split(/\.show(?:Information|Warning|Error)Message\(/).slice(1);
    if (name === "notify.ts") expect(spoken).toHaveLength(2);
    else
      for (const call of spoken)
        expect([name, call.slice(0, 200)]).toEqual([name, expect.stringContaining("modal: true")]);
  }
});

it("has one item in the status bar", () => {
  const made = sources.flatMap(({ name, code }) =>
    code
      .split("createStatusBarItem(")
      .slice(1)
      .map(() => name),
  );
  expect(made).toEqual(["statusBar.ts"]);
});
