import { existsSync, readdirSync, readFileSync } from "node:fs";
import { watch } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { readJournal } from "../../../agent-daemon/src/runs/journal.ts";
import { runFolderAt } from "../../../agent-daemon/src/runs/runFolder.ts";
import type { JournalEvent } from "../../../protocol/journal.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { type Program, startProgram } from "../../support/program.ts";
import { toyFolder } from "../../support/toyRun.ts";

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
});
afterAll(() => remove());

interface Running {
  readonly program: Program;
  readonly run: string;
  readonly path: string;
  readonly runs: string;
  events(): readonly JournalEvent[];
  /** Resolves when an event like this is in the journal. */
  seen(test: (event: JournalEvent) => boolean): Promise<void>;
}

/** Starts a long run and waits until its folder is there. */
async function startRun(...more: string[]): Promise<Running> {
  const folder = await toyFolder();
  const runs = join(folder, "runs");
  const line = [
    "run",
    folder,
    `--output-dir=${runs}`,
    "--training.steps=20000",
    "--evaluation.everySteps=null",
    ...more,
  ];
  const program = startProgram(script, line);
  onTestFinished(() => void program.process.kill("SIGKILL"));
  program.process.stdin?.end();
  const name = () => (existsSync(runs) ? readdirSync(runs)[0] : undefined);
  await eventually(folder, program, () => existsSync(runs));
  await eventually(runs, program, () => name() !== undefined);
  const run = name() ?? "";
  const path = join(runs, run);
  const events = () => readJournal(join(path, "journal.jsonl")).events;
  return { program, run, path, runs, events, seen: (test) => eventually(path, program, () => events().some(test)) };
}

/** Looks again whenever something changes in the folder; fails when the program ends before it is so. */
async function eventually(folder: string, program: Program, isSo: () => boolean): Promise<void> {
  const stop = new AbortController();
  const changes = watch(folder, { signal: stop.signal })[Symbol.asyncIterator]();
  const over = program.ended.then(async ({ errors }) => {
    if (!isSo()) throw new Error(`the program ended: ${errors}${await program.output}`);
  });
  const looked = (async () => {
    for (;;) {
      // Asking for the next change is what begins the watching: a look before it would miss a change in between.
      const change = changes.next();
      change.catch(() => {});
      if (isSo() || (await change).done === true) return;
    }
  })();
  try {
    await Promise.race([over, looked]);
  } finally {
    stop.abort();
    await looked.catch(() => {});
  }
}

const isStep = (number: number) => (event: JournalEvent) => event.type === "step" && event.step >= number;

async function rollscope(...line: string[]): Promise<{ code: number | null; output: string }> {
  const program = startProgram(script, line);
  program.process.stdin?.end();
  const { code } = await program.ended;
  return { code, output: await program.output };
}

describe("a run in a process of its own", { timeout: 60_000 }, () => {
  test("stops at the next safe point on Ctrl-C, with a checkpoint, and says how to go on", async () => {
    const running = await startRun();
    await running.seen(isStep(2));
    running.program.process.kill("SIGINT");
    const { code, errors } = await running.program.ended;
    expect(code).toBe(130);
    expect(errors).toContain("Ctrl-C again: at once.");
    const output = await running.program.output;
    expect(output).toContain("stopped at step");
    expect(output).toMatch(/resume \S+/);
    const last = running.events().at(-1);
    expect(last).toMatchObject({ type: "ended", status: "stopped" });
    expect(readdirSync(join(running.path, "checkpoints"))).toContain(`step_${last?.type === "ended" ? last.step : ""}`);
    expect(existsSync(join(running.path, "control.json"))).toBe(false);
  });

  test("pauses, goes on and stops as another process tells it", async () => {
    const running = await startRun();
    await running.seen(isStep(1));
    const runs = `--output-dir=${running.runs}`;
    expect((await rollscope("pause", running.run, runs)).code).toBe(0);
    await running.seen((event) => event.type === "phase" && event.phase === "paused");
    expect((await rollscope("list", "--json", runs)).output).toContain('"status": "paused"');
    const before = running.events().length;
    const resumed = await rollscope("resume", running.run, runs);
    expect([resumed.code, resumed.output]).toEqual([0, expect.stringContaining("goes on from step")]);
    await eventually(running.path, running.program, () => running.events().slice(before).some(isStep(1)));
    expect((await rollscope("resume", running.run, runs)).code).toBe(5);
    expect((await rollscope("stop", running.run, runs)).code).toBe(0);
    expect((await running.program.ended).code).toBe(130);
    expect((await rollscope("stop", running.run, runs)).code).toBe(5);
  });

  test("ends although a rollout that was given up left a timer running", async () => {
    const folder = await toyFolder({
      "recipe.ts": `
        import { defineRecipe } from "rollscope/recipe";
        export default defineRecipe({
          async rollout(task, agent) {
            if (agent.record.endsWith("s0")) await new Promise((resolve) => setTimeout(resolve, 1e9));
            await agent.chat({ messages: [{ role: "user", content: "1+1=" }] });
          },
          evaluate: (record) => record.text.length,
        });
      `,
    });
    const overrides = [
      "--training.steps=1",
      "--sampling.rolloutTimeout=0.5",
      "--sampling.retries=0",
      "--evaluation.atStart=false",
      "--evaluation.atEnd=false",
    ];
    expect((await rollscope("run", folder, `--output-dir=${join(folder, "runs")}`, ...overrides)).code).toBe(0);
  });

  test("goes on although recipe code tries to end it or fails where nobody waits, and says so once", async () => {
    const folder = await toyFolder({
      "recipe.ts": `
        import { defineRecipe } from "rollscope/recipe";
        export default defineRecipe({
          async rollout(task, agent) {
            if (agent.record.endsWith("s0")) process.exit(0);
            Promise.reject(new Error("nobody awaits this"));
            setTimeout(() => { throw new Error("nobody catches this"); }, 0);
            await agent.chat({ messages: [{ role: "user", content: "1+1=" }] });
            agent.chat({ messages: [{ role: "user", content: "1+1=" }] });
          },
          evaluate: (record) => record.text.length,
        });
      `,
    });
    const runs = join(folder, "out");
    const line = ["--training.steps=1", "--evaluation.atStart=false", "--evaluation.atEnd=false"];
    expect((await rollscope("run", folder, `--output-dir=${runs}`, ...line)).code).toBe(0);
    const { events } = readJournal(join(runs, readdirSync(runs)[0] ?? "", "journal.jsonl"));
    const warnings = events.flatMap((event) => (event.type === "warning" ? [event.error] : []));
    expect(warnings.every(({ code }) => code === "RECIPE_CODE_FAILED")).toBe(true);
    const about = (text: string) => warnings.filter(({ message }) => message.includes(text)).length;
    expect([about("nobody awaits"), about("nobody catches")]).toEqual([1, 1]);
    expect(events.find((event) => event.type === "records")).toMatchObject({ counts: { failed: 2 } });
  });

  test("goes on to its end when the reader of its output is gone", async () => {
    const running = await startRun("--training.steps=3");
    running.program.process.stdout?.destroy();
    running.program.process.stderr?.destroy();
    expect((await running.program.ended).code).toBe(0);
    expect(running.events().at(-1)).toMatchObject({ type: "ended", status: "completed", step: 3 });
  });

  test("is resumed after kill -9: later rows void, the journal whole, the ledger proven", async () => {
    const running = await startRun("--training.checkpoint.every=2");
    await running.seen(isStep(5));
    running.program.process.kill("SIGKILL");
    await running.program.ended;
    const runs = `--output-dir=${running.runs}`;
    expect((await rollscope("list", "--json", runs)).output).toContain('"status": "crashed"');
    const before = running.events();
    const steps = before.flatMap((event) => (event.type === "step" ? [event.step] : []));

    const second = startProgram(script, ["resume", running.run, runs]);
    second.process.stdin?.end();
    onTestFinished(() => void second.process.kill("SIGKILL"));
    await eventually(running.path, second, () => running.events().slice(before.length).some(isStep(1)));
    second.process.kill("SIGINT");
    expect((await second.ended).code).toBe(130);

    const after = running.events().slice(before.length);
    const started = after.find((event) => event.type === "started");
    expect(started).toMatchObject({ attempt: 2, resumed: { step: expect.any(Number) } });
    const from = started?.type === "started" ? (started.resumed?.step ?? -1) : -1;
    expect(from % 2).toBe(0);
    expect(steps).toContain(from);
    const again = after.flatMap((event) => (event.type === "step" ? [event.step] : []));
    expect(again[0]).toBe(from + 1);
    expect(running.events().map((event) => event.n)).toEqual(running.events().map((_, index) => index + 1));
    const environment = JSON.parse(readFileSync(runFolderAt(running.path).environment, "utf8"));
    expect(environment.attempts.map((each: { attempt: number }) => each.attempt)).toEqual([1, 2]);
  });
});
