import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openJournal } from "../../../agent-daemon/src/runs/journal.ts";
import { command } from "../../support/commandLine.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

/** A run's journal with a begin, one step and, if wanted, its end. */
async function runsWith(end: "completed" | null): Promise<{ runs: string; journal: string }> {
  const runs = await temporaryFolder();
  mkdirSync(join(runs, "toy-1"));
  const file = join(runs, "toy-1", "journal.jsonl");
  const journal = openJournal(file, 1, () => 5);
  journal.append({
    type: "started",
    run: "toy-1",
    recipe: "toy",
    model: "./model",
    steps: 1,
    seed: 0,
    evaluations: [],
    resumed: null,
  });
  const step = { type: "step", step: 1, weightVersion: 1, skipped: null, metrics: {}, timings: {} } as const;
  journal.append(step);
  if (end !== null) {
    journal.append({ type: "ended", status: end, step: 1, error: null, peakMemory: 1e6, record: null });
  }
  journal.dispose();
  return { runs, journal: file };
}

async function statusIn(runs: string): Promise<string | undefined> {
  const listed = (await command(["list", "--json", `--output-dir=${runs}`])).json() as { runs: { status: string }[] };
  return listed.runs[0]?.status;
}

test("a run that wrote its end is listed with it, one that did not as crashed", async () => {
  expect(await statusIn((await runsWith("completed")).runs)).toBe("completed");
  expect(await statusIn((await runsWith(null)).runs)).toBe("crashed");
});

test("a run whose end does not tell its peak memory is listed as completed all the same", async () => {
  const { runs, journal } = await runsWith("completed");
  const text = readFileSync(journal, "utf8");
  expect(text).toContain(',"peakMemory":1000000');
  writeFileSync(journal, text.replace(',"peakMemory":1000000', ""));
  expect(await statusIn(runs)).toBe("completed");
});

test("a journal that ends with an event of another version is not taken for a crash", async () => {
  const { runs, journal } = await runsWith(null);
  appendFileSync(journal, '{"n":3,"at":6,"attempt":1,"type":"finished","status":"completed"}\n');
  expect(await statusIn(runs)).toBe("unknown");
});

test("a line that a crash tore leaves a crash", async () => {
  const { runs, journal } = await runsWith(null);
  appendFileSync(journal, '{"n":3,"at":6,"attempt":1,"type":"end');
  expect(await statusIn(runs)).toBe("crashed");
});
