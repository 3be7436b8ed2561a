import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connectDaemon } from "../../../agent-daemon/src/daemon/client.ts";
import { serverMethods } from "../../../agent-daemon/src/daemon/methods/allMethods.ts";
import { readLock } from "../../../agent-daemon/src/daemon/server/daemonLock.ts";
import { openJournal } from "../../../agent-daemon/src/runs/journal.ts";
import { daemonMethods } from "../../../protocol/daemonMethods.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { startProgram } from "../../support/program.ts";
import { runDaemon, temporaryDaemonHome, until } from "../../support/runningDaemon.ts";
import { attemptToyRun, newToyRun, toyFolder } from "../../support/toyRun.ts";

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
});
afterAll(() => remove());

async function rollscope(home: string, ...line: string[]) {
  const program = startProgram(script, line, ["env", `ROLLSCOPE_HOME=${home}`]);
  program.process.stdin?.end();
  const { code } = await program.ended;
  return { code, output: await program.output };
}

/** A client that speaks raw frames. */
function rawClient(path: string) {
  const socket = connect(path);
  onTestFinished(() => void socket.destroy());
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  return {
    socket,
    send(message: object) {
      const body = JSON.stringify({ jsonrpc: "2.0", ...message });
      socket.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    },
    answer: (id: number) =>
      until(`answer ${id}`, () => {
        for (const part of text.split(/Content-Length: \d+\r\n\r\n/).slice(1)) {
          try {
            const parsed = JSON.parse(part) as { id?: number };
            if (parsed.id === id)
              return parsed as { result?: unknown; error?: { code: number; data: { code: string } } };
          } catch {
            // Not whole yet.
          }
        }
        return null;
      }),
  };
}

test("the socket and its folder are its user's alone; a second daemon is refused; stop, status and the bridge find it", async () => {
  const daemon = await runDaemon(script);
  const { home, folder } = daemon;
  expect(statSync(home.folder).mode & 0o777).toBe(0o700);
  expect(statSync(home.socket).mode & 0o777).toBe(0o600);
  const second = await rollscope(folder, "daemon", "--json");
  expect(JSON.parse(second.output)).toMatchObject({ error: { code: "DAEMON_RUNNING", at: { socket: home.socket } } });
  expect(JSON.parse((await rollscope(folder, "daemon", "status", "--json")).output)).toMatchObject({
    pid: daemon.program.process.pid,
    runs: 0,
  });
  const bridge = startProgram(script, ["daemon", "stdio"], ["env", `ROLLSCOPE_HOME=${folder}`]);
  const hello = { protocol: 1, client: { name: "bridged", version: "1" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "hello", params: hello });
  let answered = "";
  bridge.process.stdout?.on("data", (text: string) => {
    answered += text;
  });
  bridge.process.stdin?.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  await until("an answer over the bridge", () => answered.includes(`"pid":${daemon.program.process.pid}`));
  bridge.process.stdin?.end();
  expect((await bridge.ended).code).toBe(0);
  expect((await rollscope(folder, "daemon", "stop")).code).toBe(0);
  expect((await daemon.program.ended).code).toBe(0);
  expect(readLock(home.lock)).toBeNull();
  expect(readFileSync(home.log, "utf8")).toContain("stopping: a client asked for it");
  expect((await rollscope(folder, "daemon", "status")).code).toBe(1);
});

test("a bridge starts a daemon where none is, past an empty lock; two at once start one", async () => {
  const { folder, home } = temporaryDaemonHome();
  mkdirSync(home.folder, { recursive: true, mode: 0o700 });
  writeFileSync(home.lock, "");
  onTestFinished(async () => {
    await rollscope(folder, "daemon", "stop");
  });
  const both = await Promise.all([1, 2].map(() => rollscope(folder, "daemon", "--background", "--json")));
  for (const { code, output } of both) {
    expect(code).toBe(0);
    expect(JSON.parse(output)).toEqual({ socket: home.socket });
  }
});

test("requests are refused with codes: before hello, of another version, unknown, wrong; garbage ends its own connection only", async () => {
  const daemon = await runDaemon(script);
  const witness = await daemon.connect();
  const { socket } = daemon.home;
  const early = rawClient(socket);
  early.send({ id: 1, method: "runs/watch", params: {} });
  expect((await early.answer(1)).error?.data.code).toBe("DAEMON_REQUEST_INVALID");
  early.send({ id: 2, method: "hello", params: { protocol: 7, client: { name: "old", version: "0" } } });
  expect((await early.answer(2)).result).toMatchObject({ protocol: 1 });
  early.send({ id: 3, method: "runs/watch", params: {} });
  expect((await early.answer(3)).error?.data.code).toBe("DAEMON_VERSION_MISMATCH");
  const other = rawClient(socket);
  other.send({ id: 1, method: "hello", params: { protocol: 1, client: { name: "x", version: "0" } } });
  await other.answer(1);
  other.send({ id: 2, method: "no/such", params: {} });
  expect((await other.answer(2)).error).toMatchObject({ code: -32601, data: { code: "DAEMON_METHOD_UNKNOWN" } });
  other.send({ id: 3, method: "run/log", params: { folder: "x", bytes: -1 } });
  expect((await other.answer(3)).error).toMatchObject({ code: -32602, data: { code: "DAEMON_REQUEST_INVALID" } });
  other.send({ id: 4, method: "run/log", params: { folder: "/no/such", bytes: 1 } });
  expect((await other.answer(4)).error?.data.code).toBe("RUN_NOT_FOUND");
  const garbage = rawClient(socket);
  garbage.socket.write("GET / HTTP/1.1\r\n\r\n{]");
  const bulk = rawClient(socket);
  bulk.send({
    id: 1,
    method: "hello",
    params: { protocol: 1, client: { name: "x", version: "0" }, channel: "bulk", session: "no" },
  });
  expect((await bulk.answer(1)).error?.data.code).toBe("DAEMON_REQUEST_INVALID");
  expect(await witness.call("runs/watch", {})).toEqual({ runs: [] });
});

const memoryOf = (pid: number | undefined) =>
  1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);

test("a client that stops reading holds up nobody, is dropped to a snapshot, and misses and repeats nothing", async () => {
  const daemon = await runDaemon(script);
  const run = await newToyRun(await toyFolder());
  await attemptToyRun(run);
  const { path, journal } = run.folder;
  const [slow, quick] = [await daemon.connect("slow"), await daemon.connect("quick")];
  const kept = { slow: { cursor: 0, snapshots: 0, events: 0 }, quick: { cursor: 0, snapshots: 0, events: 0 } };
  for (const [name, client] of [
    ["slow", slow],
    ["quick", quick],
  ] as const) {
    const own = kept[name];
    client.on("run/delta", (delta) => {
      if (delta.kind === "snapshot") {
        expect(delta.snapshot.cursor).toBeGreaterThanOrEqual(own.cursor);
        own.cursor = delta.snapshot.cursor;
        own.snapshots += 1;
      } else if (delta.kind === "events") {
        expect(delta.events.map(({ n }) => n)).toEqual(delta.events.map((_, index) => own.cursor + index + 1));
        own.cursor = delta.cursor;
        own.events += delta.events.length;
      }
    });
    await client.call("run/follow", { folder: path, cursor: null });
  }
  await until("both first snapshots", () => kept.slow.snapshots === 1 && kept.quick.snapshots === 1);
  slow.pause();
  const writer = openJournal(journal, 2, Date.now);
  const resumed = { step: 4, checkpoint: null, voidedSteps: 0 };
  const started = { run: "r", recipe: "toy", model: "m", steps: 20_004, seed: 1, evaluations: [], resumed };
  let last = writer.append({ type: "started", ...started }).n;
  const metrics = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`number_${index}`, index / 7]));
  for (let step = 5; step <= 20_004; step++) {
    last = writer.append({ type: "step", step, weightVersion: step, skipped: null, metrics, timings: {} }).n;
    if (step % 500 === 4) await until("the quick client's newest event", () => kept.quick.cursor === last);
  }
  writer.dispose();
  expect(kept.quick.snapshots).toBe(1);
  expect(kept.slow.cursor).toBeLessThan(last);
  // The numbers of the run are held once for all; what one client has not taken is not.
  expect(memoryOf(daemon.program.process.pid)).toBeLessThan(300_000_000);
  slow.resume();
  await until("the slow client's last event", () => kept.slow.cursor === last);
  expect(kept.slow.snapshots).toBeGreaterThan(1);
  expect(kept.slow.events).toBeLessThan(kept.quick.events);
  const rows: number[] = [];
  for (let more = true; more; ) {
    const page = await slow.call("metrics/rows", { folder: path, from: (rows.at(-1) ?? 0) + 1, limit: 10_000 });
    rows.push(...page.rows.map(({ step }) => step));
    more = page.more;
  }
  expect(rows).toEqual(Array.from({ length: 20_004 }, (_, index) => index + 1));
});

test("a client that asks and never reads fills no memory, and is answered once it reads", async () => {
  const daemon = await runDaemon(script);
  const witness = await daemon.connect();
  const run = await newToyRun(await toyFolder());
  await attemptToyRun(run);
  const folder = run.folder.path;
  writeFileSync(join(folder, "run.log"), `${"x".repeat(99)}\n`.repeat(10_000));
  await witness.call("runs/look", { folders: [folder] });
  const greedy = rawClient(daemon.home.socket);
  greedy.send({ id: 1, method: "hello", params: { protocol: 1, client: { name: "greedy", version: "0" } } });
  await greedy.answer(1);
  greedy.socket.pause();
  // 800 MB of answers.
  const last = 4000;
  for (let id = 2; id <= last; id++) greedy.send({ id, method: "run/log", params: { folder, bytes: 200_000 } });
  for (let round = 0; round < 200; round++) expect((await witness.call("runs/watch", {})).runs).toHaveLength(1);
  expect(memoryOf(daemon.program.process.pid)).toBeLessThan(400_000_000);
  let read = 0;
  greedy.socket.removeAllListeners("data");
  greedy.socket.on("data", (text: string) => {
    read += text.length;
  });
  greedy.socket.resume();
  await until("all answers", () => read > (last - 1) * 200_000);
  expect(memoryOf(daemon.program.process.pid)).toBeLessThan(400_000_000);
});

test("frames that a client does not take are few, and asking for more is refused", async () => {
  const daemon = await runDaemon(script);
  const run = await newToyRun(await toyFolder());
  await attemptToyRun(run);
  const folder = run.folder.path;
  const client = rawClient(daemon.home.socket);
  client.send({ id: 1, method: "hello", params: { protocol: 1, client: { name: "x", version: "0" } } });
  await client.answer(1);
  const params = { folder, names: ["loss"], from: null, to: null, buckets: 2 };
  for (let id = 2; id < 40; id++) client.send({ id, method: "metrics/series", params });
  expect((await client.answer(2)).result).toEqual({ bulk: 1 });
  expect((await client.answer(39)).error?.data.code).toBe("DAEMON_BUSY");
});

test("numbers come as frames on the second connection, and rows with words for what JSON lacks", async () => {
  const daemon = await runDaemon(script);
  const run = await newToyRun(await toyFolder());
  await attemptToyRun(run);
  const client = await daemon.connect();
  const { runs } = await client.call("runs/look", { folders: [run.recipeFolder] });
  expect(runs).toMatchObject([{ folder: run.folder.path, status: "completed", step: 4, evaluation: { base: 0 } }]);
  const request = { folder: run.folder.path, names: ["loss", "time_step"], from: null, to: null, buckets: 2 };
  const frame = await client.callBulk("metrics/series", request);
  expect(frame.extra).toMatchObject({ width: 4, series: [{ name: "loss", attempt: 1 }, { name: "time_step" }] });
  expect([...frame.arrays.get("0.step")!]).toEqual([0, 4]);
  const rows = await client.call("metrics/rows", { folder: run.folder.path, from: 2, limit: 2 });
  expect(rows.rows.map(({ step }) => step)).toEqual([2, 3]);
  expect(rows.more).toBe(true);
  const state = await client.call("machine/state", {});
  expect(state.memory.available).toBeGreaterThan(0);
  expect(state.disk?.free).toBeGreaterThan(0);
  await client.call("run/remove", { folder: run.folder.path, deleteFiles: false });
  expect(await client.call("runs/watch", {})).toEqual({ runs: [] });
});

test("a run that appears in a folder that was looked at is told to who watches", async () => {
  const daemon = await runDaemon(script);
  const recipe = await toyFolder();
  mkdirSync(join(recipe, "runs"));
  const client = await daemon.connect();
  await client.call("runs/look", { folders: [recipe] });
  expect(await client.call("runs/watch", {})).toEqual({ runs: [] });
  const seen = new Set<string>();
  client.on("runs/changed", ({ changed }) => {
    for (const { folder, status } of changed) seen.add(`${folder} ${status}`);
  });
  const run = await newToyRun(recipe);
  await attemptToyRun(run);
  await until("the run's end", () => seen.has(`${run.folder.path} completed`));
});

test("a client of another version is refused everything but the end of the daemon, with what to do", async () => {
  const daemon = await runDaemon(script);
  const other = rawClient(daemon.home.socket);
  other.send({ id: 1, method: "hello", params: { protocol: 2, client: { name: "newer", version: "9" } } });
  await other.answer(1);
  other.send({ id: 2, method: "runs/watch", params: {} });
  const refused = (await other.answer(2)).error as unknown as { data: { code: string; next: string; message: string } };
  expect(refused.data.code).toBe("DAEMON_VERSION_MISMATCH");
  expect(refused.data.message).toContain("newer 9 speaks version 2 of the protocol, this daemon 1");
  expect(refused.data.next).toContain("rollscope daemon stop");
  other.send({ id: 3, method: "shutdown", params: {} });
  expect((await daemon.program.ended).code).toBe(0);
});

test("idle, it takes little memory and no processor", async () => {
  const { folder, home } = temporaryDaemonHome();
  onTestFinished(async () => {
    await rollscope(folder, "daemon", "stop");
  });
  // As clients start it.
  await rollscope(folder, "daemon", "--background");
  const client = await connectDaemon(home.socket, { name: "idle", version: "0" });
  onTestFinished(() => client.dispose());
  await client.call("runs/watch", {});
  const about = (file: string) => readFileSync(`/proc/${client.hello.pid}/${file}`, "utf8");
  const ticks = () => {
    const fields = about("stat")
      .slice(about("stat").lastIndexOf(")") + 2)
      .split(" ");
    return Number(fields[11]) + Number(fields[12]);
  };
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const before = ticks();
  const memory: number[] = [];
  for (let second = 0; second < 5; second++) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    memory.push(memoryOf(client.hello.pid));
  }
  expect(ticks() - before).toBeLessThanOrEqual(5);
  // In the middle of them, should one fall on a collection.
  expect(memory.sort((a, b) => a - b)[2]).toBeLessThan(110_000_000);
});

test("every method of the contract is there", async () => {
  const client = await (await runDaemon(script)).connect();
  const missing: string[] = [];
  for (const method of Object.keys(daemonMethods)) {
    if ((serverMethods as readonly string[]).includes(method)) continue;
    const probe = rawMethod(client.call, method);
    const code = await probe;
    if (code === "DAEMON_METHOD_UNAVAILABLE") missing.push(method);
  }
  expect(missing).toEqual([]);
});

/** Calls with parameters that fit no run; what matters is which code it answers. */
async function rawMethod(call: (method: never, params: never) => Promise<unknown>, method: string): Promise<string> {
  try {
    await call(method as never, {} as never);
    return "answered";
  } catch (error) {
    return (error as { code?: string }).code ?? "";
  }
}
