// `rollscope query` and `rollscope explain` on a small run.
import { join } from "node:path";
import { expect, test } from "vitest";
import { command } from "../../support/commandLine.ts";
import { toyFolder } from "../../support/toyRun.ts";

interface Found {
  readonly rows: readonly { readonly id: string; readonly score: number; readonly split: string }[];
  readonly total: number;
  readonly next: string | null;
  readonly index: string;
}

test("trajectories are found by step, score and split, in pages, and the answer names its index", {
  timeout: 60_000,
}, async () => {
  const folder = await toyFolder();
  const runs = `--output-dir=${join(folder, "runs")}`;
  expect((await command(["run", folder, "--training.steps=2", runs])).exit).toBe("ok");
  const query = async (...more: string[]) =>
    (await command(["query", "latest", "--json", runs, ...more])).json() as Found;

  const ofStep = await query("--step", "2");
  expect(ofStep.rows.length).toBe(8);
  expect(ofStep.index).not.toBe("none");
  expect((await query("--score", "1", "--split", "train")).rows.every(({ score }) => score === 1)).toBe(true);
  expect((await query("--score", "..0.5")).rows.every(({ score }) => score <= 0.5)).toBe(true);
  expect((await query("--mismatch", "1e-3..")).rows).toEqual([]);
  const first = await query("--limit", "3", "--order", "score");
  const second = await query("--limit", "3", "--order", "score", "--after", first.next!);
  expect(new Set([...first.rows, ...second.rows].map(({ id }) => id)).size).toBe(6);

  const shown = await command(["query", "latest", "--step", "1", runs]);
  expect(shown.stdout).toMatch(/8 of 8 records, answered by the index \S+/);
  const refused = await command(["query", "latest", "--score", "a..b", runs]);
  expect(refused.stderr).toContain("COMMAND_INVALID");
  expect(refused.stderr).toContain("--score 0.5..1");

  const explained = await command(["explain", "latest", "--step", "1", runs]);
  expect(explained.exit).toBe("ok");
  expect(explained.stdout).toMatch(/step 1[\s\S]*sampled +\d+[\s\S]*contributing/);
  const json = (await command(["explain", "latest", "--json", runs])).json() as {
    waterfall: { run: { sampled: number } };
  };
  expect(json.waterfall.run.sampled).toBeGreaterThan(0);
  expect((await command(["explain", "latest", "--step", "9", runs])).stderr).toContain("has no step 9");
});
