// docs/FAULTS.md and the tests say the same: each file that a fault names has a test with its number, and each number of a test is there.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Numbers of faults in the names of a file's tests: in a text at the beginning, or in brackets at the end. */
function numbersIn(text: string): string[] {
  const named = text.matchAll(/["'`](P\d\d)[:,]|\((P\d\d)\)["'`]/g);
  return [...new Set(Array.from(named, ([, first, last]) => (first ?? last)!))].sort();
}

it("names, for each fault, files with tests that carry its number", () => {
  const listed = readFileSync(join(root, "docs/FAULTS.md"), "utf8").matchAll(/^\| (P\d\d) \|.*\| ([^|]*) \|$/gm);
  const inDocument = Array.from(listed, ([, number, files]) =>
    Array.from(files!.matchAll(/`([^`]+)`/g), ([, file]) => `${number} ${file}`),
  ).flat();
  const inTests = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts"))
    .flatMap((name) =>
      numbersIn(readFileSync(join(root, "test", name), "utf8")).map((number) => `${number} test/${name}`),
    );
  expect(inTests.length).toBeGreaterThan(30);
  expect(inDocument.filter((named) => !inTests.includes(named))).toEqual([]);
  const known = new Set(inDocument.map((named) => named.slice(0, 3)));
  expect(inTests.filter((named) => !known.has(named.slice(0, 3)))).toEqual([]);
});
