// A window that is closed for the middle third of a run, one whose daemon is killed in it, and what they show afterwards: every metric
// row and every record once, as the store has them. Windows are the extension's connection, bridge and relay, and the dashboard's own
// model behind them; only the editor around them is missing.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { readLedger } from "../../../agent-daemon/src/store/ledger.ts";
import { allDocuments } from "../../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import { followOver } from "../../../extension/webviews/connectionFollowers.ts";
import { createPageRelay } from "../../../extension/webviews/pageRelay.ts";
import type { RunDelta } from "../../../protocol/runView.ts";
import type { TrajectoryRow } from "../../../protocol/trajectoryView.ts";
import { chunkBuckets, windowOf } from "../../../webview/dashboard/bucketStore.ts";
import { followRun, modelIn } from "../../../webview/dashboard/runStore.ts";
import { connectPage } from "../../../webview/shared/rpc.ts";
import type { Transport, TransportState } from "../../../webview/shared/transport.ts";
import {
  connectEditor,
  type EditorConnection,
  silentLog,
  temporaryEditorHome,
} from "../../support/editorConnection.ts";
import { bundleModule } from "../../support/moduleProgram.ts";
import { endLater, until } from "../../support/runningDaemon.ts";
import { toyFolder } from "../../support/toyRun.ts";

let script = "";
let remove = () => {};
beforeAll(async () => {
  ({ script, remove } = await bundleModule("integration/programs/toyRollscope.ts"));
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => setTimeout(draw, 0));
});
afterAll(() => {
  remove();
  vi.unstubAllGlobals();
});

const steps = 30;
/** Of the thirds; the base weights are evaluated with some of the rollouts. */
const [first, second] = [steps / 3 - 2, (2 * steps) / 3 - 2];
const rolloutsPerStep = 8;

/** A recipe whose rollouts wait until the file `allowed` beside it has a number that is large enough. */
const gated = `
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineRecipe } from "rollscope/recipe";
let begun = 0;
export default defineRecipe({
  async rollout(task, agent) {
    const own = ++begun;
    while (own > Number(readFileSync(process.env.ROLLSCOPE_TEST_ALLOWED, "utf8"))) await new Promise((resolve) => setTimeout(resolve, 20));
    await agent.chat({ messages: [{ role: "user", content: task.payload.question }] });
  },
  evaluate: ({ text }) => text.length % 2,
});
`;

/** One window with the dashboard of one run in it. */
function openWindow(editor: EditorConnection, folder: string) {
  const { connection } = editor;
  const deltas: RunDelta[] = [];
  const followers = followOver(connection);
  const relay = createPageRelay({
    connection,
    followers,
    log: silentLog,
    mayRun: () => true,
    answerHost: async () => ({}),
    // The editor posts as JSON, but for buffers.
    post: (message) => deliver(message.kind === "bulk" ? message : JSON.parse(JSON.stringify(message))),
  });
  let deliver: Parameters<Transport["onMessage"]>[0] = () => {};
  let tell: (state: TransportState) => void = () => {};
  const client = connectPage({
    post: (message) => relay.onMessage(structuredClone(message)),
    onMessage: (listener) => {
      deliver = listener;
    },
    onState: (listener) => {
      tell = listener;
    },
    readState: () => null,
    writeState: () => {},
    dispose: () => {},
  });
  client.on("run/delta", (delta) => deltas.push(delta));
  const run = followRun(client, folder);
  tell({ state: "open" });
  return {
    client,
    run,
    deltas,
    step: () => modelIn(run.state.peek())?.summary.step ?? 0,
    /** All that the page draws of a metric: by attempt, its steps and values. */
    async drawn(name: string) {
      const range = { from: 1, to: steps };
      const window = windowOf(range, range, chunkBuckets);
      expect(window.width).toBe(1);
      await run.buckets.want([name], window, steps);
      return run.buckets.read(name, window);
    },
    close() {
      run.dispose();
      relay.dispose();
      client.dispose();
      connection.disconnect();
    },
  };
}

type Shown = ReturnType<typeof openWindow>;

/** Each event once, none missing: a snapshot stands for all up to its cursor. */
function expectEveryEventOnce({ deltas }: Shown): void {
  let cursor: number | null = null;
  for (const delta of deltas) {
    if (delta.kind === "snapshot") {
      expect(delta.snapshot.cursor).toBeGreaterThanOrEqual(cursor ?? 0);
      cursor = delta.snapshot.cursor;
    } else if (delta.kind === "events") {
      expect(delta.events.map(({ n }) => n)).toEqual(delta.events.map((_, index) => cursor! + 1 + index));
      cursor = delta.cursor;
    }
  }
  expect(deltas.length).toBeGreaterThan(0);
}

async function storeOf(folder: string) {
  const store = await openSqliteStore(join(folder, "records.sqlite"), { readOnly: true });
  onTestFinished(() => store.dispose());
  const all = await allDocuments(store.steps, {}, { order: "step" });
  const documents = all.filter(({ step }) => step > 0);
  const records = await allDocuments(store.records, {});
  const ledgers = new Map<number, string[]>();
  for (const document of documents) {
    const ledger = await readLedger(await openFileBlobs(join(folder, "blobs")), document);
    ledgers.set(document.step, [...new Set(ledger.map(({ record }) => record))].sort());
  }
  return { documents, records, ledgers };
}

/** What the window shows is what the store has: rows, drawn points, records, the trajectories behind each point. */
async function expectAllOnce(shown: Shown, folder: string): Promise<void> {
  const { documents, records, ledgers } = await storeOf(folder);
  expect(documents.map(({ step }) => step)).toEqual(Array.from({ length: steps }, (_, index) => index + 1));
  const { rows } = await shown.client.call("metrics/rows", { folder, from: 0, limit: 10_000 });
  expect(rows.map(({ step }) => step)).toEqual(documents.map(({ step }) => step));
  const names = ["loss", "reward_mean", "grad_norm", "entropy"];
  for (const name of names) {
    const stored = documents.map(({ metrics }) => metrics[name]);
    expect(rows.map(({ metrics }) => metrics[name])).toEqual(stored);
    const drawn = await shown.drawn(name);
    expect([...drawn.keys()]).toEqual([1]);
    const { step, last, min, max, bad } = drawn.get(1)!;
    expect(step).toEqual(documents.map((document) => document.step));
    expect([...last]).toEqual(stored);
    expect([...min]).toEqual(stored);
    expect([...max]).toEqual(stored);
    expect(Math.max(...bad)).toBe(0);
  }
  const listed: string[] = [];
  for (let after: string | null = null; ; ) {
    const request = { folder, filter: {}, order: "created", descending: false, limit: 100, after } as const;
    const page: { rows: TrajectoryRow[]; next: string | null } = await shown.client.call("trajectories/list", request);
    listed.push(...page.rows.map(recordOf));
    after = page.next;
    if (after === null) break;
  }
  expect(listed.length).toBeGreaterThanOrEqual(steps * rolloutsPerStep);
  expect([...listed].sort()).toEqual(records.map(({ id }) => id).sort());
  for (const step of [1, steps / 2, steps]) {
    const behind = await shown.client.call("trajectories/ofStep", { folder, step });
    expect(behind.rows.map(recordOf).sort()).toEqual(ledgers.get(step));
  }
}

function lastStep(folder: string): number {
  const written = readFileSync(join(folder, "journal.jsonl"), "utf8").matchAll(/"type":"step","step":(\d+)/g);
  return Math.max(0, ...Array.from(written, ([, step]) => Number(step)));
}

const recordOf = (row: TrajectoryRow) => (row.source.kind === "record" ? row.source.record : row.id);

async function startGated(editor: EditorConnection) {
  const recipe = await toyFolder({ "recipe.ts": gated });
  const allowed = join(recipe, "allowed");
  const allow = (third: number) =>
    writeFileSync(allowed, String((third * steps * rolloutsPerStep) / 3 + rolloutsPerStep));
  allow(1);
  vi.stubEnv("ROLLSCOPE_TEST_ALLOWED", allowed);
  onTestFinished(() => void vi.unstubAllEnvs());
  const overrides = { "training.steps": String(steps), "evaluation.everySteps": "null" };
  const { summary } = await editor.connection.request("run/start", {
    recipe,
    outputDir: join(recipe, "runs"),
    overrides,
  });
  endLater(summary.folder);
  return {
    folder: summary.folder,
    allow: (third: number) => (third === 3 ? writeFileSync(allowed, "1e9") : allow(third)),
  };
}

describe("a run of which a window saw the first third", () => {
  it("is whole in a window that is opened after the middle one, and in one that stayed open", async () => {
    const home = temporaryEditorHome();
    const [editor, other] = [connectEditor(script, home), connectEditor(script, home)];
    const { folder, allow } = await startGated(editor);
    const closed = openWindow(editor, folder);
    const open = openWindow(other, folder);
    await until("the first third", () => closed.step() >= first);
    await closed.drawn("loss");
    closed.close();
    const seen = closed.deltas.length;
    allow(2);
    await until("the second third", () => lastStep(folder) >= second);
    expect(lastStep(folder)).toBeLessThan(second + 5);
    expect(closed.deltas).toHaveLength(seen);
    expectEveryEventOnce(closed);
    await until("the second third in the open window", () => open.step() >= second);
    const again = openWindow(editor, folder);
    allow(3);
    for (const window of [again, open]) {
      await until("the end", () => modelIn(window.run.state.peek())?.summary.status === "completed");
      expectEveryEventOnce(window);
      expect(modelIn(window.run.state.peek())).toMatchObject({ attempts: [{ attempt: 1, from: 0, to: steps }] });
      await expectAllOnce(window, folder);
    }
    expect(open.deltas.filter(({ kind }) => kind === "snapshot")).toHaveLength(1);
  });

  it("is whole in a window that lost its daemon to kill -9 for the middle one", async () => {
    const editor = connectEditor(script, temporaryEditorHome());
    const { folder, allow } = await startGated(editor);
    const window = openWindow(editor, folder);
    await until("the first third", () => window.step() >= first);
    await window.drawn("loss");
    const { pid } = await editor.connection.connect();
    process.kill(pid, "SIGKILL");
    await editor.reached("waiting");
    allow(2);
    await until("the second third", () => lastStep(folder) >= second);
    expect(window.step()).toBeLessThan(first + 5);
    editor.retry();
    await editor.reached("connected");
    expect((await editor.connection.connect()).pid).not.toBe(pid);
    await until("the second third in the window", () => window.step() >= second);
    allow(3);
    await until("the end", () => modelIn(window.run.state.peek())?.summary.status === "completed");
    expectEveryEventOnce(window);
    await expectAllOnce(window, folder);
  });
});
