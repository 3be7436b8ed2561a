// Known faults around the daemon's processes: locks of processes that are gone, and logs with what programs write to terminals.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { readLock } from "../../../agent-daemon/src/daemon/server/daemonLock.ts";
import { crashReportOf, exitReportFile } from "../../../agent-daemon/src/daemon/supervisor/crashReport.ts";
import { runFolderAt } from "../../../agent-daemon/src/runs/runFolder.ts";
import { plainTerminalText } from "../../../protocol/plainTerminalText.ts";
import type { RunSummary } from "../../../protocol/runView.ts";
import { ansiReader, plainText } from "../../../webview/shared/ansi.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { startProgram } from "../../support/program.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { endLater, runDaemon, temporaryDaemonHome, until } from "../../support/runningDaemon.ts";
import { toyFolder } from "../../support/toyRun.ts";

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
});
afterAll(() => remove());

async function sleeper(): Promise<{ readonly pid: number; isUntouched(): boolean }> {
  const child = spawn("sleep", ["600"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await new Promise((resolve) => child.once("spawn", resolve));
  return { pid: child.pid!, isUntouched: () => child.exitCode === null && child.signalCode === null };
}

test("P30: a lock that names a living stranger, an empty and a half-written one do not stop a daemon; a real one does", async () => {
  const at = temporaryDaemonHome();
  const { home, folder } = at;
  mkdirSync(home.folder, { recursive: true, mode: 0o700 });
  const stranger = await sleeper();
  writeFileSync(
    home.lock,
    JSON.stringify({ pid: stranger.pid, start: "an-earlier-boot:12", socket: home.socket, version: "0", since: 1 }),
  );
  for (const bytes of [null, 0, 20]) {
    // What the daemon before left when it was killed, whole or not.
    if (bytes !== null) truncateSync(home.lock, bytes);
    const daemon = await runDaemon(script, at);
    expect(readLock(home.lock)?.pid).toBe(daemon.program.process.pid);
    const second = startProgram(script, ["daemon", "--json"], ["env", `ROLLSCOPE_HOME=${folder}`]);
    second.process.stdin?.end();
    expect((await second.ended).code).not.toBe(0);
    expect(JSON.parse(await second.output).error.code).toBe("DAEMON_RUNNING");
    expect((await (await daemon.connect()).call("runs/watch", {})).runs).toEqual([]);
    daemon.program.process.kill("SIGKILL");
    await daemon.program.ended;
    expect(readFileSync(home.lock, "utf8")).toContain(`"pid":${daemon.program.process.pid}`);
  }
  expect(stranger.isUntouched()).toBe(true);
});

/** Writes what programs write to terminals, one escape code in two writes. */
const noisyRecipe = `
import { writeSync } from "node:fs";
import { defineRecipe } from "rollscope/recipe";
let said = false;
export default defineRecipe({
  async rollout(task, agent) {
    if (!said) {
      said = true;
      writeSync(2, "\\x1b[31mERR\\x1b[0m\\n10%\\r20%\\r30%\\n\\x1b[2Jkept \\x1b]0;t\\x07here\\n\\x1b[3");
      await new Promise((resolve) => setTimeout(resolve, 200));
      writeSync(2, "2mgreen\\x1b[0m\\n");
    }
    await agent.chat({ messages: [{ role: "user", content: task.payload.question }] });
  },
  evaluate: () => 1,
});
`;

test("P39: a run's log has its colours and no litter, also a part of it", async () => {
  const recipe = await toyFolder({ "recipe.ts": noisyRecipe });
  const client = await (await runDaemon(script)).connect();
  const { summary } = await client.call("run/start", { recipe, overrides: { "evaluation.everySteps": "null" } });
  endLater(summary.folder);
  const statusOf = async (): Promise<RunSummary | undefined> =>
    (await client.call("runs/watch", {})).runs.find((run) => run.folder === summary.folder);
  await until("the end", async () => (await statusOf())?.status === "completed");
  // Written once the log is whole.
  await until("the report", () => existsSync(exitReportFile({ path: summary.folder })));
  const { text: log } = await client.call("run/log", { folder: summary.folder, bytes: 100_000 });
  const wanted = ["ERR", "30%", "kept here", "green"];
  // As the editor's text and as the dashboard's lines show it.
  expect(
    plainTerminalText(log)
      .split("\n")
      .filter((line) => wanted.includes(line)),
  ).toEqual(wanted);
  const reader = ansiReader();
  reader.write(log);
  const lines = reader.lines.filter((line) => wanted.includes(plainText(line)));
  expect(lines.map(plainText)).toEqual(wanted);
  expect([lines[0]![0]!.style.foreground, lines[3]![0]!.style.foreground]).toEqual([1, 2]);
  // A part of it begins with a line, not within a code.
  for (let bytes = 1; bytes < Buffer.byteLength(log); bytes += 7) {
    const part = await client.call("run/log", { folder: summary.folder, bytes });
    expect(part.truncated).toBe(true);
    if (part.text.slice(0, -1).includes("\n")) expect(log.split("\n")).toContain(part.text.split("\n")[0]);
  }
});

test("P39: the last words of a crashed run are clean text, from their first whole line on", async () => {
  const folder = runFolderAt(await temporaryFolder());
  const report = (stderrTail: string) => {
    const memory = { peak: null, available: null, killedForMemory: null };
    writeFileSync(
      exitReportFile(folder),
      JSON.stringify({ pid: 1, exitCode: 1, signal: null, stderrTail, memory, ended: 0, at: 2 }),
    );
    return crashReportOf(folder, 1)?.stderrTail;
  };
  expect(report("\x1b[31mERR\x1b[0m\n10%\r20%\n")).toBe("ERR\n20%\n");
  // The helper keeps the end: it may begin within a code.
  expect(report(`31mfirst\n${"\x1b[2Jwords\n".repeat(2000)}`.slice(0, 16_384))).toMatch(/^words\nwords\n/);
});
