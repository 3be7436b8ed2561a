// What is noticed about a run is told alike by the daemon to its clients, by the editor's status bar and by the terminal.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { createOutput } from "../../../agent-daemon/src/cli/output.ts";
import { createRunView } from "../../../agent-daemon/src/cli/runView.ts";
import { KnownRun } from "../../../agent-daemon/src/daemon/runs/knownRun.ts";
import { startOfProcess } from "../../../agent-daemon/src/daemon/server/processIdentity.ts";
import { statusText } from "../../../extension/runs/describeRun.ts";
import { advisoryKinds } from "../../../protocol/advisory.ts";
import { type JournalEvent, journalLine } from "../../../protocol/journal.ts";
import { type ManualClock, manualClock } from "../../support/manualClock.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { metricTroubles, troubledJournal } from "../../support/troubledRun.ts";

/** Each kind, with a journal that shows it, and how long after its last event it does. */
const planted = [
  ...metricTroubles.map(([kind, change]) => ({ kind, journal: troubledJournal(30, [change]), after: 0 })),
  { kind: "stalledPhase" as const, journal: troubledJournal(5, []), after: 200_000 },
];

async function runningFrom(journal: readonly JournalEvent[], clock: ManualClock): Promise<KnownRun> {
  const folder = join(await temporaryFolder(), "run");
  mkdirSync(folder);
  writeFileSync(join(folder, "journal.jsonl"), journal.map((event) => `${journalLine(event)}\n`).join(""));
  const run = new KnownRun(folder, clock);
  onTestFinished(() => run.dispose());
  // This process stands for the run's.
  run.begun(process.pid, startOfProcess(process.pid)!, 1);
  await run.refresh();
  return run;
}

function terminal(clock: ManualClock, json: boolean, size: { columns: number; rows: number } | null) {
  const written = { stdout: "", stderr: "" };
  const stream = (name: "stdout" | "stderr") => ({
    ...(size === null ? {} : { isTTY: true, ...size }),
    write: (text: string) => {
      written[name] += text;
    },
  });
  const streams = { stdout: stream("stdout"), stderr: stream("stderr"), environment: { NO_COLOR: "1" } };
  const view = createRunView(createOutput(streams, json), streams.stdout, clock, []);
  onTestFinished(() => view.dispose());
  return { view, written };
}

const linesAbout = (text: string, kind: string) => text.split("\n").filter((line) => line.endsWith(`[${kind}]`));

it("has trouble planted for every kind", () => {
  expect(planted.map(({ kind }) => kind).sort()).toEqual([...advisoryKinds].sort());
});

describe.each(planted)("$kind", ({ kind, journal, after }) => {
  const last = journal.at(-1)!.at;

  it("is told to clients, as soon as it is so, and by the status bar", async () => {
    const clock = manualClock(last);
    const run = await runningFrom(journal, clock);
    let told = 0;
    run.onChange(() => {
      told += 1;
    });
    await clock.advance(after);
    await run.refresh();
    expect(told).toBe(after === 0 ? 0 : 1);
    const found = run.summary().advisories.find((advisory) => advisory.kind === kind)!;
    expect(found).toMatchObject({ inForce: true, sentence: expect.stringMatching(/\d/) });
    expect(found.causes.length).toBeGreaterThan(0);
    const { text, tooltip } = statusText({ kind: "connected", runs: [run.summary()], version: "1" });
    expect(text).toContain("$(warning)");
    expect(tooltip).toContain(`⚠ ${found.sentence}`);
  });

  it("is in the live picture of a terminal, and leaves it when it is over", async () => {
    const clock = manualClock(journal[0]!.at);
    const { view, written } = terminal(clock, false, { columns: 300, rows: 40 });
    for (const event of journal) {
      await clock.advance(event.at - clock.now());
      view.event(event);
    }
    written.stdout = "";
    await clock.advance(after + 1000);
    const run = await runningFrom(journal, manualClock(clock.now()));
    const [worst] = run.summary().advisories;
    const shown = stripVTControlCharacters(written.stdout);
    // How long a phase has lasted is told to half a minute.
    expect(shown).toContain(`! ${worst!.sentence.replace(/ for \d+ s.*/, " for ")}`);
    expect(shown).toContain(`Perhaps: ${worst!.causes[0]}`);
    view.event({ n: 999, at: clock.now(), attempt: 1, type: "phase", step: 30, phase: "training" });
    for (let step = 31; step <= 40; step++) {
      const [, , , healthy] = troubledJournal(1, []);
      view.event({ ...healthy!, n: 969 + step, at: clock.now(), step } as JournalEvent);
    }
    written.stdout = "";
    await clock.advance(1000);
    expect(stripVTControlCharacters(written.stdout)).not.toContain("! ");
  });

  it.each([false, true])("is one plain line, told once (--json: %s)", async (json) => {
    const clock = manualClock(journal[0]!.at);
    const { view, written } = terminal(clock, json, null);
    for (const event of journal) {
      await clock.advance(event.at - clock.now());
      view.event(event);
    }
    await clock.advance(after + 120_000);
    const lines = linesAbout(json ? written.stderr : written.stdout, kind);
    expect(new Set(lines).size).toBe(lines.length);
    // Each step of a spike is one of its own.
    expect(lines).toHaveLength(kind === "klSpike" ? 3 : 1);
    expect(lines[0]).toMatch(/^advisory: .*\d.* Perhaps: .* Look at .*\. \[\w+\]$/);
    if (json) expect(written.stdout).toBe("");
  });
});
