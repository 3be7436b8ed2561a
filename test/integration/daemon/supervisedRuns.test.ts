import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { readJournal } from "../../../agent-daemon/src/runs/journal.ts";
import type { RunSummary } from "../../../protocol/runView.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { startProgram } from "../../support/program.ts";
import { endLater, runDaemon, until } from "../../support/runningDaemon.ts";
import { toyFolder } from "../../support/toyRun.ts";

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
});
afterAll(() => remove());

const long = { "training.steps": "20000", "evaluation.everySteps": "null" };

describe("a run that the daemon started", () => {
  test("goes to its end, is followed event by event, and shows how it ended", async () => {
    const recipe = await toyFolder();
    const client = await (await runDaemon(script)).connect();
    const { summary, debug } = await client.call("run/start", { recipe });
    endLater(summary.folder);
    expect(debug).toBeNull();
    expect(["starting", "running", "completed"]).toContain(summary.status);
    const numbers: number[] = [];
    let last: RunSummary = summary;
    client.on("run/delta", (delta) => {
      if (delta.kind === "snapshot") {
        numbers.push(...Array.from({ length: delta.snapshot.cursor }, (_, index) => index + 1));
        last = delta.snapshot.summary;
      } else if (delta.kind === "events") {
        numbers.push(...delta.events.map(({ n }) => n));
        last = delta.summary;
      }
    });
    await client.call("run/follow", { folder: summary.folder, cursor: null });
    await until("the end of the run", () => last.status === "completed" && last.pid === null);
    const { events } = readJournal(join(summary.folder, "journal.jsonl"));
    expect(numbers).toEqual(events.map(({ n }) => n));
    expect(last).toMatchObject({ step: 4, steps: 4, crash: null, error: null, recipe: "toy" });
    const log = await client.call("run/log", { folder: summary.folder, bytes: 100_000 });
    expect(log.text).toContain("completed at step 4/4");
    const config = await client.call("run/config", { folder: summary.folder });
    expect(config.values.find(({ key }) => key === "training.steps")).toMatchObject({ value: 4 });
    expect(config.environments).toHaveLength(1);
  });

  test("is refused with the recipe's problems, and leaves no folder behind", async () => {
    const recipe = await toyFolder({ "recipe.ts": "export default {};" });
    const client = await (await runDaemon(script)).connect();
    await expect(client.call("run/start", { recipe })).rejects.toMatchObject({ code: "RECIPE_INVALID" });
    await expect(client.call("run/start", { recipe, overrides: { "training.stepz": "3" } })).rejects.toMatchObject({
      code: "RECIPE_INVALID",
      message: expect.stringContaining("training.steps"),
    });
    expect(await client.call("runs/watch", {})).toEqual({ runs: [] });
  });

  test("is stopped, shown as stopped, and goes on from there", async () => {
    const recipe = await toyFolder();
    const client = await (await runDaemon(script)).connect();
    const { summary } = await client.call("run/start", { recipe, overrides: long });
    const { folder } = summary;
    endLater(folder);
    const statusOf = async () => (await client.call("runs/watch", {})).runs.find((run) => run.folder === folder);
    await until("a step", async () => ((await statusOf())?.step ?? 0) > 0);
    await client.call("run/pause", { folder });
    await until("a pause", async () => (await statusOf())?.status === "paused");
    await client.call("run/continue", { folder });
    await until("going on", async () => (await statusOf())?.status === "running");
    expect(["stopping", "stopped"]).toContain((await client.call("run/stop", { folder, now: false })).status);
    const stopped = await until("a stop", async () => {
      const now = await statusOf();
      return now?.status === "stopped" && now.pid === null ? now : null;
    });
    const again = await client.call("run/resume", { folder, debug: false });
    expect(again.summary).toMatchObject({ attempt: 2 });
    await until("a step more", async () => ((await statusOf())?.step ?? 0) > stopped.step);
    await expect(client.call("run/resume", { folder, debug: false })).rejects.toMatchObject({ code: "RUN_ACTIVE" });
    await expect(client.call("run/remove", { folder, deleteFiles: true })).rejects.toMatchObject({
      code: "RUN_ACTIVE",
    });
    await client.call("run/stop", { folder, now: true });
    await until("the end", async () => (await statusOf())?.pid === null);
    await client.call("run/remove", { folder, deleteFiles: true });
    expect(existsSync(folder)).toBe(false);
  });

  test("says where a debugger finds it, and keeps the address out of its log", async () => {
    const recipe = await toyFolder();
    const client = await (await runDaemon(script)).connect();
    const { summary, debug } = await client.call("run/start", { recipe, debug: true });
    endLater(summary.folder);
    expect(summary.status).toBe("starting");
    expect(debug).toMatchObject({
      host: "127.0.0.1",
      url: expect.stringMatching(/^ws:\/\/127\.0\.0\.1:\d+\/[0-9a-f-]{36}$/),
    });
    expect((await client.call("run/log", { folder: summary.folder, bytes: 10_000 })).text).not.toContain("ws://");
  });
});

describe("a daemon that is killed", () => {
  test("leaves its runs alone; the next one finds them and learns how they end", async () => {
    const recipe = await toyFolder();
    const daemon = await runDaemon(script);
    const client = await daemon.connect();
    const { summary } = await client.call("run/start", { recipe, overrides: { "training.steps": "400" } });
    const { folder } = summary;
    endLater(folder);
    const pid = await until("a step", async () => {
      const run = (await client.call("runs/watch", {})).runs[0];
      return run !== undefined && run.step > 0 ? run.pid : null;
    });
    daemon.program.process.kill("SIGKILL");
    await daemon.program.ended;
    const next = await (await daemon.again()).connect();
    const found = (await next.call("runs/watch", {})).runs;
    expect(found).toMatchObject([{ folder, pid, status: "running" }]);
    process.kill(pid, "SIGKILL");
    const crashed = await until("the crash", async () => {
      const run = (await next.call("runs/watch", {})).runs[0];
      return run?.status === "crashed" && run.crash?.signal === "SIGKILL" ? run : null;
    });
    expect(crashed.crash).toMatchObject({ exitCode: null, message: expect.stringContaining("SIGKILL") });
    expect(crashed.crash?.memory.peak).toBeGreaterThan(10_000_000);
  });
});

/** A rollout that leaves a server running in a grandchild which has a session of its own. */
const leavingRecipe = (port: number) => `
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { defineRecipe } from "rollscope/recipe";
const serve = "require('node:net').createServer().listen(${port}, '127.0.0.1', () => console.error('grandchild listens'))";
const child = "const { spawn } = require('node:child_process'); spawn(process.execPath, ['-e', " + JSON.stringify(serve) + "], { detached: true, stdio: 'inherit' }); setInterval(() => {}, 1000)";
let started = false;
export default defineRecipe({
  async rollout(task, agent) {
    if (!started) {
      started = true;
      spawn(process.execPath, ["-e", child], { stdio: "inherit" });
    }
    await agent.chat({ messages: [{ role: "user", content: task.payload.question }] });
  },
  evaluate: () => 1,
});
`;

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Numbers of processes in whose command the port stands. */
function processesAbout(port: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`listen(${port},`);
      } catch {
        // It has ended meanwhile.
        return false;
      }
    });
}

test("P32: kill -9 of a coordinator leaves none of its processes: ports are free within 10 s, others live, the next start works", async () => {
  const port = await freePort();
  const recipe = await toyFolder({ "recipe.ts": leavingRecipe(port) });
  const bystander = startProgram("-e", ["setInterval(() => {}, 1000)"]);
  onTestFinished(() => void bystander.process.kill("SIGKILL"));
  const client = await (await runDaemon(script)).connect();
  const { summary } = await client.call("run/start", { recipe, overrides: long });
  const { folder } = summary;
  endLater(folder);
  await until("the grandchild's server", async () => !(await canListen(port)));
  const { pid } = JSON.parse(readFileSync(join(folder, "process.json"), "utf8")) as { pid: number };
  // The child and the grandchild, who holds the port.
  expect(processesAbout(port)).toHaveLength(2);
  const killed = Date.now();
  process.kill(pid, "SIGKILL");
  await until("the free port", () => canListen(port), 10_000);
  const crashed = await until("the crash", async () => {
    const run = (await client.call("runs/watch", {})).runs[0];
    return run?.status === "crashed" ? run : null;
  });
  expect(Date.now() - killed).toBeLessThan(10_000);
  expect(crashed.crash).toMatchObject({ signal: "SIGKILL", stderrTail: expect.stringContaining("grandchild listens") });
  expect(crashed.crash?.next).toContain("resume");
  expect(processesAbout(port)).toEqual([]);
  expect(bystander.process.exitCode).toBeNull();
  expect(bystander.process.signalCode).toBeNull();
  const again = await client.call("run/resume", { folder, debug: false });
  expect(again.summary.attempt).toBe(2);
  await client.call("run/stop", { folder, now: true });
});
