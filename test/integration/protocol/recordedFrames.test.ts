// What a client of an earlier version sent, byte for byte, is sent again; the answers must still say what they said then. A folder of
// test/fixtures/protocol holds one version: `sent.jsonl` (bodies of messages; @RUN@ is the run's folder), `received.jsonl` (answers and
// notifications in order, with @…@ for what differs each time), `bulk.hex` (the first frame of the bulk channel) and the run. Recorded files are never changed: a new version gets a new
// folder, whose answers ROLLSCOPE_RECORD=<folder> writes once. `received.jsonl` may lack keys that were added since.
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { decodeBulkFrame } from "../../../protocol/bulkFrame.ts";
import { createBulkReader } from "../../../protocol/bulkStream.ts";
import { type DaemonMethod, daemonMethods, daemonNotifications } from "../../../protocol/daemonMethods.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { runDaemon, until } from "../../support/runningDaemon.ts";

const versions = fileURLToPath(new URL("../../fixtures/protocol", import.meta.url));

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
});
afterAll(() => remove());

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Sends bodies one after the other, each after the answer to the one before; returns all that came, in order. */
async function replay(path: string, bodies: readonly string[]): Promise<Message[]> {
  const socket = connect(path);
  onTestFinished(() => void socket.destroy());
  const received: Message[] = [];
  let bytes = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    for (;;) {
      const head = /^Content-Length: (\d+)\r\n\r\n/.exec(bytes.toString("latin1", 0, 64));
      if (head === null || bytes.length < head[0].length + Number(head[1])) return;
      const end = head[0].length + Number(head[1]);
      received.push(JSON.parse(bytes.toString("utf8", head[0].length, end)) as Message);
      bytes = bytes.subarray(end);
    }
  });
  for (const body of bodies) {
    const { id, method } = JSON.parse(body) as Message;
    const before = received.length;
    socket.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    await until(`the answer to ${method}`, () => received.find((message) => message.id === id) !== undefined);
    // What following tells comes by itself.
    if (method === "run/follow")
      await until("a delta", () => received.slice(before).some((message) => message.method === "run/delta"));
  }
  return received;
}

/** Also texts for people, which clients never read, and advisories, whose rules may learn. */
const volatile = new Set(["version", "pid", "started", "session", "machine", "disk", "message", "next", "advisories"]);

/** The same text for what differs each time. */
function settled(value: unknown, folder: string, key = ""): unknown {
  if (volatile.has(key)) return `@${key}@`;
  if (typeof value === "string") return value.replaceAll(folder, "@RUN@");
  if (Array.isArray(value)) return value.map((each) => settled(each, folder));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, settled(each, folder, name)]));
}

/** The first frame of a session's bulk channel, byte for byte, opened as a client of the version does. */
function firstFrame(path: string, protocol: number, session: string): Promise<Uint8Array> {
  const socket = connect(path);
  onTestFinished(() => void socket.destroy());
  const params = { protocol, client: { name: "recorded", version: "0.1.0" }, channel: "bulk", session };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "hello", params });
  socket.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  return new Promise((resolve, reject) => {
    const reader = createBulkReader(() => {}, resolve);
    socket.on("data", (chunk) => reader.push(chunk));
    socket.on("error", reject);
  });
}

describe.each(readdirSync(versions))("frames of %s", (version) => {
  test("are answered as they were", async () => {
    const at = join(versions, version);
    const folder = join(await temporaryFolder(), "run");
    cpSync(join(at, "run"), folder, { recursive: true });
    const linesOf = (name: string) => readFileSync(join(at, name), "utf8").trim().split("\n");
    const sent = linesOf("sent.jsonl").map((line) => line.replaceAll("@RUN@", folder));
    const daemon = await runDaemon(script);
    const received = await replay(daemon.home.socket, sent);
    const hello = daemonMethods.hello.result.parse(received[0]!.result);
    const frame = await firstFrame(daemon.home.socket, hello.protocol, hello.session);
    const methods = new Map(
      sent.map((body) => [(JSON.parse(body) as Message).id, (JSON.parse(body) as Message).method]),
    );
    for (const { id, method, params, result, error } of received) {
      if (method !== undefined) daemonNotifications[method as keyof typeof daemonNotifications].parse(params);
      else if (error === undefined) daemonMethods[methods.get(id) as DaemonMethod].result.parse(result);
    }
    const answers = received.filter(({ method }) => method === undefined || method === "run/delta");
    const shown = answers.map((message) => settled(message, folder));
    if (process.env["ROLLSCOPE_RECORD"] === version) {
      writeFileSync(join(at, "received.jsonl"), shown.map((message) => `${JSON.stringify(message)}\n`).join(""));
      writeFileSync(join(at, "bulk.hex"), `${Buffer.from(frame).toString("hex")}\n`);
    }
    const recorded = linesOf("received.jsonl").map((line) => JSON.parse(line) as object);
    expect(shown).toHaveLength(recorded.length);
    for (const [index, message] of recorded.entries()) expect(shown[index]).toMatchObject(message);
    // What was recorded is read as it was, and is what is sent now.
    const recordedFrame = decodeBulkFrame(Buffer.from(linesOf("bulk.hex")[0]!, "hex"));
    const now = decodeBulkFrame(frame);
    expect(now.id).toBe(recordedFrame.id);
    expect([...now.arrays]).toEqual([...recordedFrame.arrays]);
    expect(now.extra).toMatchObject(recordedFrame.extra as object);
    expect([...recordedFrame.arrays.keys()]).toContain("0.step");
  });
});
