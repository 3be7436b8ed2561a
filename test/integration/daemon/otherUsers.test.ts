// Other users of the host reach nothing of the daemon: neither its socket and files, nor a run's, nor its pages without a token.
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { daemonHome } from "../../../agent-daemon/src/daemon/server/daemonHome.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { isOpenToOthers, runAsOther } from "../../support/otherUser.ts";
import { endLater, type RunningDaemon, runDaemon, until } from "../../support/runningDaemon.ts";
import { toyFolder } from "../../support/toyRun.ts";

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
});
afterAll(() => remove());

/** A daemon whose home lies in a folder that anybody may enter and look into. */
async function daemonAmongOthers(): Promise<RunningDaemon> {
  const folder = mkdtempSync(join(tmpdir(), "rollscope-home-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  return await runDaemon(script, { folder, home: daemonHome({ ROLLSCOPE_HOME: folder }) });
}

/** Prints, for each path, the code with which opening it fails, or "open". */
const openEach = `
const { openSync } = require("node:fs");
const told = process.argv.slice(1).map((path) => { try { openSync(path, "r"); return "open"; } catch (error) { return error.code; } });
console.log(JSON.stringify(told));
`;

const connectTo = `
const socket = require("node:net").connect(process.argv[1]);
socket.on("connect", () => { console.log("connected"); socket.destroy(); });
socket.on("error", (error) => console.log(error.code));
`;

/** Asks a page server for everything that it has, without a cookie, with a wrong one, and with a guessed code. */
const askPages = `
const { get } = require("node:http");
const [origin, ...paths] = process.argv.slice(1);
const ask = (path, headers) => new Promise((resolve) => get(origin + path, { headers }, (answer) => { answer.resume(); resolve(answer.statusCode); }).on("error", () => resolve(0)));
(async () => {
  const told = [];
  for (const path of paths) for (const headers of [{}, { cookie: "rollscope=" + "0".repeat(64) }]) told.push(await ask(path, headers));
  console.log(JSON.stringify(told));
})();
`;

test("the daemon's socket, lock, log and list are closed to other users, whatever the folder above them is", async () => {
  const { home } = await daemonAmongOthers();
  expect(statSync(home.folder).mode & 0o777).toBe(0o700);
  expect(statSync(home.socket).mode & 0o777).toBe(0o600);
  const files = readdirSync(home.folder).map((name) => join(home.folder, name));
  expect(files.length).toBeGreaterThan(2);
  for (const file of files) {
    expect(isOpenToOthers(file), file).toBe(false);
    // Each by itself, should the folder be opened one day.
    expect(statSync(file).mode & 0o077, file).toBe(0);
  }
  const { isOther, told } = runAsOther(connectTo, [home.socket]);
  expect(told.trim()).toBe(isOther ? "EACCES" : "connected");
});

test("a run's files are closed to other users, and its control port answers nobody without the token in them", async () => {
  const client = await (await daemonAmongOthers()).connect();
  const recipe = await toyFolder();
  chmodSync(recipe, 0o755);
  const overrides = { "training.steps": "20000", "evaluation.everySteps": "null" };
  const { summary } = await client.call("run/start", { recipe, overrides });
  const { folder } = summary;
  endLater(folder);
  const control = join(folder, "control.json");
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const files = ["control.json", "journal.jsonl", "records.sqlite", "environment.json", "run.log"].map((name) =>
    join(folder, name),
  );
  await until("all files", () => files.every((file) => existsSync(file)));
  for (const file of files) expect(isOpenToOthers(file), file).toBe(false);
  const opened = runAsOther(openEach, files);
  expect(JSON.parse(opened.told)).toEqual(files.map(() => (opened.isOther ? "EACCES" : "open")));
  const { port } = JSON.parse(readFileSync(control, "utf8")) as { port: number };
  const ask = `
    const socket = require("node:net").connect(Number(process.argv[1]), "127.0.0.1");
    socket.on("data", (text) => console.log(String(text).trim()));
    socket.write(JSON.stringify({ token: "0".repeat(64), command: "stop-now" }) + "\\n");
  `;
  expect(JSON.parse(runAsOther(ask, [String(port)]).told)).toMatchObject({ ok: false, code: "RUN_CONTROL_REFUSED" });
  await client.call("run/stop", { folder, now: true });
});

test("pages are closed to other users: no path answers without the cookie, and the code is in no file and no command", async () => {
  const daemon = await daemonAmongOthers();
  const client = await daemon.connect();
  const state = { page: "dashboard", folders: ["/nowhere"], view: {} } as const;
  const { url } = await client.call("page/open", { state: { ...state, folders: [...state.folders] } });
  const { origin, pathname, search } = new URL(url);
  const code = /[\w-]{20,}/.exec(`${pathname}${search}`)?.[0] ?? "";
  expect(code.length).toBeGreaterThanOrEqual(20);
  const guessed = `${pathname}${search}`.replace(code, "A".repeat(code.length));
  const paths = ["/", "/dashboard", "/inspector", "/assets/dashboard.js", "/socket", guessed];
  const { told } = runAsOther(askPages, [origin, ...paths]);
  for (const status of JSON.parse(told) as number[]) expect([403, 404]).toContain(status);
  for (const name of readdirSync(daemon.home.folder)) {
    const file = join(daemon.home.folder, name);
    if (statSync(file).isFile()) expect(readFileSync(file, "utf8"), name).not.toContain(code);
  }
  const { pid } = daemon.program.process;
  expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).not.toContain(code);
  // The guess has not used it up.
  expect(runAsOther(askPages, [origin, `${pathname}${search}`]).told.trim()).toBe("[303,403]");
});
