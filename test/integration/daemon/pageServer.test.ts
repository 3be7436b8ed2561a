import { existsSync } from "node:fs";
import { request } from "node:http";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { pagesFolder } from "../../../agent-daemon/src/daemon/pages/pageServer.ts";
import { decodeBulkFrame } from "../../../protocol/bulkFrame.ts";
import { runSummarySchema } from "../../../protocol/runView.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { runDaemon } from "../../support/runningDaemon.ts";
import { attemptToyRun, newToyRun, toyFolder } from "../../support/toyRun.ts";

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
  expect(existsSync(pagesFolder() ?? ""), "npm run build makes the pages").toBe(true);
});
afterAll(() => remove());

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** A request as any program may make it: headers are as given. */
function get(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    asked.on("error", reject);
    asked.end();
  });
}

/** Resolves to the status of a refused upgrade, or to the open socket. */
function openSocket(url: string, headers: Record<string, string>): Promise<WebSocket | number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { headers });
    onTestFinished(() => socket.terminate());
    socket.on("open", () => resolve(socket));
    socket.on("unexpected-response", (_, response) => resolve(response.statusCode ?? 0));
    socket.on("error", reject);
  });
}

async function openedPage() {
  const run = await newToyRun(await toyFolder());
  await attemptToyRun(run);
  const folder = run.folder.path;
  const client = await (await runDaemon(script)).connect();
  await client.call("runs/look", { folders: [folder] });
  const { url } = await client.call("page/open", { state: { page: "dashboard", folders: [folder], view: {} } });
  const entered = await get(url);
  const origin = new URL(url).origin;
  const cookie = String(entered.headers["set-cookie"]).split(";")[0]!;
  return { folder, client, url, entered, origin, cookie, page: `${origin}${entered.headers["location"]}` };
}

test("a page opens once by its code, then by its cookie, and nothing in it may run but its bundle", async () => {
  const { url, entered, origin, cookie, page } = await openedPage();
  expect(entered.status).toBe(303);
  expect(String(entered.headers["set-cookie"])).toContain("HttpOnly");
  expect((await get(url)).status).toBe(403);
  expect((await get(page)).status).toBe(403);
  const shown = await get(page, { cookie });
  expect(shown.status).toBe(200);
  const nonce = /script-src &#39;nonce-|script-src 'nonce-([\w-]+)'/.exec(shown.text)?.[1];
  expect(shown.text).toContain(`nonce="${nonce}"`);
  expect(shown.text).toContain("default-src 'none'");
  expect((await get(page, { cookie })).text).not.toContain(nonce);
  expect((await get(`${origin}/assets/dashboard.js`, { cookie })).headers["content-type"]).toContain("javascript");
  expect((await get(`${origin}/assets/dashboard.js`)).status).toBe(403);
  for (const outside of ["/assets/..%2f..%2fpackage.json", "/assets/../cli.mjs", "/settings"])
    expect((await get(`${origin}${outside}`, { cookie })).status).toBe(404);
});

test("another site's name, another origin and a missing cookie are refused", async () => {
  const { origin, cookie, page } = await openedPage();
  expect((await get(page, { cookie, host: "rollscope.example:80" })).status).toBe(403);
  const socket = `${page.replace("http:", "ws:").replace("/dashboard", "/socket")}`;
  expect(await openSocket(socket, { cookie, origin: "http://rollscope.example" })).toBe(403);
  expect(await openSocket(socket, { cookie })).toBe(403);
  expect(await openSocket(socket, { origin })).toBe(403);
  expect(await openSocket(socket, { origin, cookie: `${cookie}x` })).toBe(403);
});

test("a page follows a run, gets its numbers as frames, keeps its state, and is refused what is not for pages", async () => {
  const { folder, origin, cookie, page } = await openedPage();
  const socket = await openSocket(page.replace("http:", "ws:").replace("/dashboard", "/socket"), { origin, cookie });
  if (typeof socket === "number") throw new Error(`refused with ${socket}`);
  const texts: {
    kind: string;
    id?: number;
    method?: string;
    result?: unknown;
    error?: { code: string };
    params?: unknown;
  }[] = [];
  const frames: Buffer[] = [];
  const waiting = new Set<() => void>();
  socket.on("message", (data: Buffer, isBinary: boolean) => {
    if (isBinary) frames.push(data);
    else texts.push(JSON.parse(data.toString()));
    for (const look of waiting) look();
  });
  const seen = <T>(find: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      const look = () => {
        const found = find();
        if (found === undefined) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  let id = 0;
  const ask = (method: string, params: unknown) => {
    id += 1;
    const own = id;
    socket.send(JSON.stringify({ kind: "request", id: own, method, params }));
    return seen(() => texts.find((text) => text.id === own));
  };
  expect((await ask("host/ready", {})).result).toMatchObject({ host: "browser", state: { folders: [folder] } });
  await ask("run/follow", { folder, cursor: null });
  const delta = await seen(() => texts.find(({ method }) => method === "run/delta"));
  const { snapshot } = delta.params as { snapshot: { summary: unknown } };
  expect(runSummarySchema.parse(snapshot.summary)).toMatchObject({ status: "completed", step: 4 });
  const answer = await ask("metrics/series", { folder, names: ["loss"], from: null, to: null, buckets: 100 });
  const frame = decodeBulkFrame(await seen(() => frames[0]));
  expect(answer.result).toEqual({ bulk: frame.id });
  expect([...(frame.arrays.get("0.step") ?? [])]).toEqual([1, 2, 3, 4]);
  const state = { page: "dashboard", folders: [folder], view: { smoothing: 0.5 } };
  await ask("host/keepState", { state });
  expect((await ask("host/ready", {})).result).toMatchObject({ state });
  await ask("host/openTrajectory", { source: { kind: "record", folder, record: "r1" }, beside: true });
  expect(texts.find(({ method }) => method === "host/navigate")?.params).toMatchObject({
    url: expect.stringMatching(/^\/inspector\?state=/),
    beside: true,
  });
  for (const method of ["shutdown", "run/start", "run/remove", "file/import"])
    expect((await ask(method, {})).error).toMatchObject({ code: "DAEMON_REQUEST_INVALID" });
  expect((await ask("host/saveText", { name: "a", text: "b" })).error).toMatchObject({ code: "PAGE_HOST_UNSUPPORTED" });
});
