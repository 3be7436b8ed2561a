import { execFile } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { bundleModule } from "../../support/moduleProgram.ts";
import { endLater, runDaemon, until } from "../../support/runningDaemon.ts";
import { toyFolder } from "../../support/toyRun.ts";

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
});
afterAll(() => remove());

async function debugged() {
  const recipe = await toyFolder();
  const client = await (await runDaemon(script)).connect();
  const { summary, debug } = await client.call("run/start", { recipe, debug: true });
  endLater(summary.folder);
  if (debug === null || summary.pid === null) throw new Error("the run does not wait for a debugger");
  const statusOf = async () => (await client.call("runs/watch", {})).runs.find((run) => run.folder === summary.folder);
  return { recipe, client, statusOf, folder: summary.folder, pid: summary.pid, target: debug };
}

/** What a stranger on the machine tries: each page of the inspector, and its socket without the secret. */
const stranger = `
const { request } = require("node:http");
const [port, ...paths] = process.argv.slice(1);
const ask = (path, headers) => new Promise((resolve) => {
  const asked = request({ host: "127.0.0.1", port, path, headers }, (answer) => {
    let text = "";
    answer.on("data", (chunk) => (text += chunk)).on("end", () => resolve({ path, status: answer.statusCode, text }));
  });
  asked.on("upgrade", (answer, socket) => { socket.destroy(); resolve({ path, status: answer.statusCode, text: "attached" }); });
  asked.on("error", (error) => resolve({ path, status: 0, text: String(error.code) }));
  asked.end();
});
const upgrade = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==" };
Promise.all(paths.flatMap((path) => [ask(path, {}), ask(path, upgrade)])).then((all) => console.log(JSON.stringify(all)));
`;

interface Tried {
  readonly path: string;
  readonly status: number;
  readonly text: string;
}

/** As another user where this one may change who it is. */
async function tryAsStranger(port: number, paths: readonly string[]): Promise<Tried[]> {
  const isRoot = process.getuid?.() === 0;
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", stranger, String(port), ...paths], {
    cwd: "/",
    ...(isRoot ? { uid: 65534, gid: 65534 } : {}),
  });
  return JSON.parse(stdout) as Tried[];
}

/** Every file below a folder, with its bytes as text. */
function textsBelow(folder: string): { readonly path: string; readonly text: string }[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => ({ path, text: readFileSync(path, "latin1") }));
}

/** Command lines of all processes: everybody may read them. */
function commandLines(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, "utf8")];
      } catch {
        return [];
      }
    });
}

test("no other user of the host can attach to a debugged run: the port tells nothing, and the secret is written nowhere", async () => {
  const { target, folder, recipe } = await debugged();
  const secret = new URL(target.url).pathname.slice(1);
  expect(secret).toMatch(/^[0-9a-f-]{36}$/);
  expect(target.host).toBe("127.0.0.1");
  const guess = secret.replaceAll(/[0-9a-f]/g, "0");
  const tried = await tryAsStranger(target.port, [
    "/",
    "/json",
    "/json/list",
    "/json/version",
    "/json/protocol",
    `/${guess}`,
  ]);
  expect(tried).toHaveLength(12);
  for (const { path, status, text } of tried) {
    expect.soft(text, path).not.toBe("attached");
    expect.soft(text, path).not.toContain(secret);
    expect.soft(status, path).not.toBe(101);
  }
  const found = [...textsBelow(dirname(folder)), ...textsBelow(recipe)].filter(({ text }) => text.includes(secret));
  expect(found.map(({ path }) => path)).toEqual([]);
  if (process.platform === "linux") expect(commandLines().filter((line) => line.includes(secret))).toEqual([]);

  // Who knows it gets in.
  const socket = new WebSocket(target.url);
  onTestFinished(() => socket.terminate());
  const answer = new Promise<string>((resolve, reject) => {
    socket.once("message", (data) => resolve(String(data)));
    socket.once("error", reject);
  });
  socket.once("open", () =>
    socket.send(JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression: "6 * 7" } })),
  );
  expect(JSON.parse(await answer)).toMatchObject({ id: 1, result: { result: { value: 42 } } });
});

test("a run that stands still says so when it is stopped, and is ended by stopping it at once", async () => {
  const { client, folder, statusOf, pid } = await debugged();
  await expect(client.call("run/stop", { folder, now: false })).rejects.toMatchObject({ code: "RUN_UNANSWERED" });
  expect((await statusOf())?.pid).toBe(pid);
  await client.call("run/stop", { folder, now: true });
  const ended = await until("its end", async () => {
    const now = await statusOf();
    return now?.pid === null ? now : null;
  });
  expect(ended.status).toBe("crashed");
  await client.call("run/remove", { folder, deleteFiles: true });
});
