// The methods about trajectories as the daemon's table calls them: requests parsed, answers as the contract says, open ones closed
// with the client that looked at them.
import { expect, it, onTestFinished } from "vitest";
import { createMethodTable } from "../../../agent-daemon/src/daemon/methods/allMethods.ts";
import type {
  BulkContent,
  DaemonServices,
  MethodSession,
} from "../../../agent-daemon/src/daemon/methods/methodTypes.ts";
import { trajectoryMethods } from "../../../agent-daemon/src/daemon/methods/trajectoryMethods.ts";
import { runFolderAt } from "../../../agent-daemon/src/runs/runFolder.ts";
import { systemClock } from "../../../agent-daemon/src/sampling/clock.ts";
import {
  type DaemonMethod,
  type DaemonParams,
  type DaemonResult,
  daemonMethods,
} from "../../../protocol/daemonMethods.ts";
import { dataPath } from "../../support/paths.ts";
import { attemptToyRun, newToyRun, toyFolder } from "../../support/toyRun.ts";

async function client() {
  const run = await newToyRun(await toyFolder(), ["--training.steps=2"]);
  await attemptToyRun(run);
  const services = { runs: { folder: runFolderAt }, clock: systemClock } as unknown as DaemonServices;
  const table = createMethodTable(services, [trajectoryMethods]);
  onTestFinished(() => table.dispose());
  const frames: BulkContent[] = [];
  const ends: (() => void)[] = [];
  const session: MethodSession = {
    id: "1",
    notify: () => Promise.resolve(),
    bulk: (content) => ({ bulk: frames.push(content) - 1 }),
    onEnd: (end) => {
      ends.push(end);
      return () => {};
    },
  };
  const signal = new AbortController().signal;
  const call = async <M extends DaemonMethod>(method: M, params: DaemonParams<M>): Promise<DaemonResult<M>> =>
    daemonMethods[method].result.parse(await table.call(method, params, { session, signal })) as DaemonResult<M>;
  return { folder: run.folder.path, call, frames, end: () => ends.forEach((each) => void each()) };
}

it("opens a record of a step, and gives its turns and tokens", async () => {
  const { folder, call, frames, end } = await client();
  const { rows } = await call("trajectories/ofStep", { folder, step: 1 });
  expect(rows.length).toBe(8);
  const { source } = rows[0]!;
  const outline = await call("trajectory/open", { source });
  const { turns } = await call("trajectory/turns", { source, from: 0, to: outline.turnCount });
  expect(turns.map(({ role }) => role)).toEqual(["user", "assistant"]);
  const { bulk } = await call("trajectory/tokens", { source, from: 0, to: 100, columns: ["id", "logprob"], row: null });
  expect(frames[bulk]!.arrays.get("id")!.length).toBe(outline.tokenCount);
  expect((await call("trajectory/siblings", { source })).rows.length).toBe(3);
  end();
  expect((await call("trajectory/open", { source })).turnCount).toBe(2);
});

it("tells of a step's tokens and of its loss, and refuses steps and folders that are not there", async () => {
  const { folder, call } = await client();
  const run = await call("run/waterfall", { folder, step: null });
  const steps = [await call("run/waterfall", { folder, step: 1 }), await call("run/waterfall", { folder, step: 2 })];
  expect(run.sampled).toBe(steps[0]!.sampled + steps[1]!.sampled);
  expect((await call("run/explainZeroLoss", { folder, step: 1 })).answer).toContain("step 1");
  await expect(call("run/waterfall", { folder, step: 9 })).rejects.toMatchObject({ code: "STORE_NOT_FOUND" });
  await expect(call("trajectories/ofStep", { folder: `${folder}-none`, step: 1 })).rejects.toMatchObject({
    code: "RUN_FOLDER_INVALID",
  });
  await expect(call("trajectory/open", { source: { kind: "record", folder, record: "nobody" } })).rejects.toMatchObject(
    { code: "STORE_NOT_FOUND" },
  );
});

it("opens files of other tools like records: list, turns, tokens, search and siblings", async () => {
  const { call, frames } = await client();
  const path = dataPath("verifiers-v1", "traces.jsonl");
  const { rows, format } = await call("file/open", { path });
  expect(format).toBe("verifiers-v1");
  for (const { source } of rows) {
    const outline = await call("trajectory/open", { source });
    const { turns } = await call("trajectory/turns", { source, from: 0, to: outline.turnCount });
    expect(turns.length).toBe(outline.turnCount);
    const { bulk } = await call("trajectory/tokens", {
      source,
      from: 0,
      to: 1e6,
      columns: ["id", "logprob"],
      row: null,
    });
    expect(frames[bulk]!.arrays.get("id")!.length).toBe(outline.tokenCount);
    expect(turns.reduce((sum, { tokens }) => sum + (tokens?.length ?? 0), 0)).toBe(outline.tokenCount);
    const word = turns.flatMap(({ parts }) => parts).find((part) => part.kind === "text" && part.text.trim() !== "");
    const text = (word as { text: string }).text.trim().slice(0, 12);
    expect((await call("trajectory/search", { source, text, fromTurn: 0, limit: 10 })).hits.length).toBeGreaterThan(0);
    await call("trajectory/siblings", { source });
  }
  await expect(call("file/open", { path: `${path}.none` })).rejects.toMatchObject({ code: "IMPORT_FILE_UNREADABLE" });
});

it("compares any two trajectories: of two tasks from their question on, of a run and a file from the first turn", async () => {
  const { folder, call } = await client();
  const { rows } = await call("trajectories/ofStep", { folder, step: 1 });
  const mine = rows[0]!;
  const other = rows.find(({ task }) => task !== mine.task)!;
  const file = { kind: "file" as const, path: dataPath("verifiers-v1", "traces.jsonl"), index: 0 };
  const answer = await call("trajectory/diff", { source: mine.source, others: [other.source, file, mine.source] });
  expect(answer.rows.map(({ row }) => row.source)).toEqual([other.source, file, mine.source]);
  expect(answer.rows.map(({ parts }) => parts)).toEqual([{ turn: 0, token: 0 }, { turn: 0, token: 0 }, null]);
  const same = await call("trajectory/diff", { source: file, others: [file] });
  expect(same.rows[0]!.parts).toBeNull();
  const gone = { ...file, path: `${file.path}.none` };
  await expect(call("trajectory/diff", { source: mine.source, others: [gone] })).rejects.toMatchObject({
    code: "IMPORT_FILE_UNREADABLE",
  });
});
