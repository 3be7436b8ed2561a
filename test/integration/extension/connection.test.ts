import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createRunsModel } from "../../../extension/runs/runsModel.ts";
import { followOver } from "../../../extension/webviews/connectionFollowers.ts";
import { createPageRelay } from "../../../extension/webviews/pageRelay.ts";
import { decodeBulkFrame } from "../../../protocol/bulkFrame.ts";
import type { PageMessage } from "../../../protocol/pageHost.ts";
import { connectEditor, silentLog, temporaryEditorHome } from "../../support/editorConnection.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { toyFolder } from "../../support/toyRun.ts";

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
});
afterAll(() => remove());

let home = "";
beforeEach(() => {
  home = temporaryEditorHome();
});
const connectionTo = (file: string) => connectEditor(file, home);

const machine = { hostname: "h", platform: "linux", cpus: 1, cpuModel: "m", memory: 1, node: "v20.0.0" };

describe("the connection to the daemon", () => {
  test("starts the daemon on demand, and finds a new one after it was killed", async () => {
    const { connection, reached, retry } = connectionTo(script);
    const first = await connection.connect();
    expect(await connection.request("runs/watch", {})).toEqual({ runs: [] });
    process.kill(first.pid, "SIGKILL");
    const waiting = await reached("waiting");
    expect(waiting).toMatchObject({ fault: { code: "DAEMON_UNREACHABLE", retryable: true }, retryInMilliseconds: 250 });
    retry();
    await reached("connected");
    expect((await connection.connect()).pid).not.toBe(first.pid);
  });

  test("says what the program wrote when it cannot bring a daemon, and waits longer each time", async () => {
    const { connection, retry } = connectionTo(join(home, "missing.mjs"));
    await expect(connection.connect()).rejects.toMatchObject({ code: "DAEMON_UNREACHABLE" });
    const pauses: number[] = [];
    for (let again = 0; again < 3; again++) {
      if (connection.state.kind === "waiting") pauses.push(connection.state.retryInMilliseconds);
      const next = new Promise<void>((resolve) => {
        const off = connection.onState(({ kind }) => {
          if (kind !== "waiting") return;
          off();
          resolve();
        });
      });
      retry();
      await next;
    }
    expect(pauses).toEqual([250, 1000, 2000]);
  });

  test("refuses a daemon of another version and says what to do, without trying for ever", async () => {
    const hello = { protocol: 2, version: "9.0.0", pid: 1, started: 1, session: "s", machine };
    const answer = JSON.stringify({ jsonrpc: "2.0", id: 0, result: hello });
    const file = join(home, "future.mjs");
    writeFileSync(
      file,
      `process.stdin.once("data", (text) => {
        const id = JSON.parse(String(text).split("\\r\\n\\r\\n")[1]).id;
        const body = JSON.stringify({ ...${answer}, id });
        process.stdout.write("Content-Length: " + Buffer.byteLength(body) + "\\r\\n\\r\\n" + body);
      });`,
    );
    const { connection, reached } = connectionTo(file);
    await expect(connection.connect()).rejects.toMatchObject({
      code: "DAEMON_VERSION_MISMATCH",
      message: "The daemon 9.0.0 speaks protocol 2; this extension speaks 1.",
      next: expect.stringContaining("rollscope daemon stop"),
    });
    expect(await reached("failed")).toMatchObject({ fault: { code: "DAEMON_VERSION_MISMATCH", retryable: false } });
  });

  test("hands a refusal on with its code and its next action", async () => {
    const { connection } = connectionTo(script);
    const refused = connection.request("run/stop", { folder: join(home, "no-run"), now: false });
    await expect(refused).rejects.toMatchObject({ data: { code: "RUN_NOT_FOUND", next: expect.any(String) } });
  });
});

describe("a run over the connection", () => {
  test("is started, followed by a page, drawn from bulk frames, and known to the list", async () => {
    const { connection } = connectionTo(script);
    const recipe = await toyFolder();
    const outputDir = join(recipe, "runs");
    const runs = createRunsModel(connection, async () => [recipe]);
    onTestFinished(() => runs.dispose());
    await runs.ready();

    const { summary } = await connection.request("run/start", {
      recipe,
      outputDir,
      overrides: { "training.steps": "3" },
    });
    const completed = new Promise<void>((resolve) => {
      const off = runs.onChange(() => {
        if (runs.get(summary.folder)?.status !== "completed") return;
        off();
        resolve();
      });
    });

    const posted: PageMessage[] = [];
    let wake = () => {};
    const followers = followOver(connection);
    const relay = createPageRelay({
      connection,
      followers,
      log: silentLog,
      mayRun: () => true,
      answerHost: async () => ({}),
      post: (message) => {
        posted.push(message);
        wake();
      },
    });
    onTestFinished(() => relay.dispose());
    const seen = async (fits: (message: PageMessage) => boolean): Promise<PageMessage> => {
      for (;;) {
        const found = posted.find(fits);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    };

    const { folder } = summary;
    relay.onMessage({ kind: "request", id: 1, method: "run/follow", params: { folder, cursor: null } });
    await seen((message) => message.kind === "result" && message.id === 1);
    await seen((message) => message.kind === "notification" && message.method === "run/delta");
    await completed;
    expect(runs.get(folder)).toMatchObject({ status: "completed", step: 3, steps: 3 });

    const params = { folder, names: ["reward_mean"], from: null, to: null, buckets: 10 };
    relay.onMessage({ kind: "request", id: 2, method: "metrics/series", params });
    const answer = await seen((message) => message.kind === "result" && message.id === 2);
    const bulk = await seen(({ kind }) => kind === "bulk");
    const frame = decodeBulkFrame(new Uint8Array((bulk as { bytes: ArrayBuffer }).bytes));
    expect((answer as { result: unknown }).result).toEqual({ bulk: frame.id });
    expect([...frame.arrays.get("0.step")!]).toEqual([1, 2, 3]);

    relay.onMessage({ kind: "request", id: 3, method: "shutdown", params: {} });
    expect(await seen((message) => message.kind === "error")).toMatchObject({
      id: 3,
      error: { code: "DAEMON_REQUEST_INVALID" },
    });
  });
});
