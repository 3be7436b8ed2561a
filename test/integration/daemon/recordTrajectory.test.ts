// A record read piece by piece, as a view does, against the same record loaded whole: nothing is lost, nothing is made up.

import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { extremeOf, type OpenTrajectory } from "../../../agent-daemon/src/daemon/trajectories/openTrajectory.ts";
import { partingPlace } from "../../../agent-daemon/src/daemon/trajectories/parting.ts";
import { listRecords, recordsOfStep } from "../../../agent-daemon/src/daemon/trajectories/recordRows.ts";
import {
  openRecordTrajectory,
  type RecordSource,
} from "../../../agent-daemon/src/daemon/trajectories/recordTrajectory.ts";
import { loadModelText } from "../../../agent-daemon/src/engines/tokenizer/load.ts";
import { openFileBlobs } from "../../../agent-daemon/src/store/fileBlobs.ts";
import { textFinder } from "../../../agent-daemon/src/store/findText.ts";
import { type LoadedTrajectory, loadTrajectory } from "../../../agent-daemon/src/store/loadTrajectory.ts";
import { allDocuments } from "../../../agent-daemon/src/store/pages.ts";
import { openSqliteStore } from "../../../agent-daemon/src/store/sqliteStore.ts";
import {
  tokenColumnNames,
  trajectoryOutlineSchema,
  trajectoryRowSchema,
  turnViewSchema,
} from "../../../protocol/trajectoryView.ts";
import { attemptToyRun, newToyRun, toyFolder } from "../../support/toyRun.ts";

/** Three turns with a tool between them, then a rewritten history: two branches. */
const conversation = `
import { defineRecipe } from "rollscope/recipe";
export default defineRecipe({
  async rollout(task, agent) {
    const messages = [{ role: "user", content: task.payload.question }];
    for (let turn = 0; turn < 3; turn++) {
      const { message, text } = await agent.chat({ messages });
      const sum = await agent.tool("add", { text }, () => String(text.length));
      messages.push(message, { role: "user", content: sum });
    }
    agent.compact();
    await agent.chat({ messages: [{ role: "user", content: "1+1=" }] });
  },
  evaluate(record) {
    return { score: "13579".includes(record.text[0] ?? "x") ? 1 : 0, breakdown: { length: record.text.length } };
  },
});
`;

let source: RecordSource;
const opened: OpenTrajectory[] = [];
beforeEach(async () => {
  const run = await newToyRun(await toyFolder({ "recipe.ts": conversation }), ["--training.steps=2"]);
  const { end } = await attemptToyRun(run);
  expect(end.status).toBe("completed");
  const store = await openSqliteStore(run.folder.records, { readOnly: true });
  const text = loadModelText(join(run.recipeFolder, "model"));
  source = {
    folder: run.folder.path,
    run: run.folder.run,
    store,
    blobs: await openFileBlobs(run.folder.blobs),
    config: run.config,
    text: () => text,
  };
});
afterEach(async () => {
  for (const trajectory of opened.splice(0)) await trajectory.dispose();
  await source.store.dispose();
});

const list = (overrides: object = {}) =>
  listRecords(source, {
    folder: source.folder,
    filter: {},
    order: "created",
    descending: false,
    limit: 100,
    after: null,
    ...overrides,
  });

async function open(record: string): Promise<{ view: OpenTrajectory; whole: LoadedTrajectory }> {
  const view = await openRecordTrajectory(source, record, () => {});
  opened.push(view);
  return { view, whole: await loadTrajectory(source.store, source.blobs, record) };
}

describe("a record as a view reads it", () => {
  it("has the turns of every call in order, and a branch for each history", async () => {
    const [row] = await recordsOfStep(source, 1);
    const { view, whole } = await open(row!.id);
    const outline = trajectoryOutlineSchema.parse(view.outline());
    const calls = whole.calls.map(({ document }) => document);
    expect(outline).toMatchObject({
      complete: true,
      tokenCount: whole.calls.reduce((sum, { output }) => sum + output.length, 0),
    });
    const turns = await view.turns(0, outline.turnCount);
    for (const turn of turns) turnViewSchema.parse(turn);
    expect(turns.map(({ turn }) => turn)).toEqual(Array.from({ length: outline.turnCount }, (_, i) => i));
    expect(turns.filter(({ call }) => call !== null).map(({ call }) => call)).toEqual(calls.map(({ id }) => id));
    expect(outline.branches.length).toBe(2);
    // The first branch reads as what its last call was shown, with its answer.
    const first = whole.calls[2]!;
    const [from, to] = outline.branches[0]!.turns[0]!;
    const shown = turns
      .slice(from, to)
      .map(({ role, parts }) => [role, parts.map((part) => ("text" in part ? part.text : "")).join("")]);
    const expected = [...first.messages(), first.document.message!].map(({ role, content }) => [role, content]);
    expect(shown).toEqual(expected);
  });

  it("gives every token the numbers that are stored, whatever the range", async () => {
    const [row] = await recordsOfStep(source, 2);
    const { view, whole } = await open(row!.id);
    const outline = view.outline();
    const all = await view.tokens({ from: 0, to: 1e9, columns: tokenColumnNames, row: null });
    const flat = (pick: (call: LoadedTrajectory["calls"][number]) => ArrayLike<number>) =>
      whole.calls.flatMap((call) => Array.from(pick(call)));
    expect(Array.from(all.arrays.get("id")!)).toEqual(flat(({ output }) => output));
    expect(Array.from(all.arrays.get("logprob")!)).toEqual(flat(({ logprobs }) => logprobs));
    expect(Array.from(all.arrays.get("version")!)).toEqual(flat(({ versions }) => versions));
    const trained = outline.trained.at(-1)!;
    const advantages = flat((call) => {
      const values = new Float32Array(call.output.length).fill(Number.NaN);
      for (const span of call.training)
        if (span.row === trained.row) values.set(span.columns.advantage as Float32Array, span.from);
      return values;
    });
    expect(Array.from(all.arrays.get("advantage")!)).toEqual(advantages);
    const texts = source.text()!.tokenizer.decode(flat(({ output }) => output));
    expect(all.extra["text"]).toBe(texts);
    for (const [from, to] of [
      [1, 3],
      [2, 9],
      [5, 6],
    ] as const) {
      const part = await view.tokens({ from, to, columns: tokenColumnNames, row: null });
      for (const name of tokenColumnNames)
        expect(Array.from(part.arrays.get(name)!)).toEqual(
          Array.from(all.arrays.get(name)!).slice(from, Math.min(to, outline.tokenCount!)),
        );
    }
  });

  it("has the gradient of the step: against the advantage's sign for trained tokens, none for the others", async () => {
    for (const row of await recordsOfStep(source, 1)) {
      const { view } = await open(row.id);
      const { arrays } = await view.tokens({
        from: 0,
        to: 1e9,
        columns: ["gradient", "advantage", "mask", "ratio"],
        row: null,
      });
      for (const [token, mask] of arrays.get("mask")!.entries()) {
        const [gradient, advantage, ratio] = ["gradient", "advantage", "ratio"].map(
          (name) => arrays.get(name)![token]!,
        );
        if (mask === 0) expect(gradient).toBeNaN();
        else {
          expect(ratio).toBeCloseTo(1, 6);
          expect(Math.sign(gradient!)).toBe(-Math.sign(advantage!) + 0);
        }
      }
    }
  });

  it("shows the exact prompt and answer of a call as text with its special tokens", async () => {
    const [row] = await recordsOfStep(source, 1);
    const { view, whole } = await open(row!.id);
    const turns = await view.turns(0, 1e9);
    for (const call of whole.calls) {
      const turn = turns.find((each) => each.call === call.document.id)!;
      const tokens = [...call.promptTokens(), ...call.output];
      expect(await view.raw(turn.turn)).toBe(source.text()!.tokenizer.decode(tokens));
    }
  });

  it("finds the token with the extreme number, and every occurrence of a text from any turn on", async () => {
    const [row] = await recordsOfStep(source, 1);
    const { view, whole } = await open(row!.id);
    const logprobs = whole.calls.flatMap((call) => Array.from(call.logprobs));
    const least = Math.min(...logprobs);
    expect(await view.extreme("logprob", null, "least")).toEqual({ token: logprobs.indexOf(least), value: least });
    const { hits, next } = await view.search("1+1=", 0, 100);
    expect(next).toBeNull();
    const turns = await view.turns(0, 1e9);
    const expected = turns.filter(({ parts }) => parts.some((part) => "text" in part && part.text.includes("1+1=")));
    expect(hits.map(({ turn }) => turn)).toEqual(expected.map(({ turn }) => turn));
    const one = await view.search("=", 0, 1);
    expect(one.hits.length).toBe(1);
    expect((await view.search("=", one.next!, 100)).hits[0]!.turn).toBeGreaterThan(one.hits[0]!.turn);
  });

  it("says where each sibling of the group parts from it", async () => {
    const [row] = await recordsOfStep(source, 1);
    const { view, whole } = await open(row!.id);
    const own = whole.calls.flatMap(({ output }) => Array.from(output));
    const siblings = await view.siblings();
    expect(siblings.length).toBe(3);
    for (const sibling of siblings) {
      const beside = await open(sibling.id);
      const other = beside.whole.calls.flatMap(({ output }) => Array.from(output));
      const differs = own.findIndex((id, i) => id !== other[i]);
      const parts = await partingPlace(view, beside.view);
      expect(parts?.token ?? -1).toBe(differs < 0 && other.length > own.length ? own.length : differs);
    }
    expect(await partingPlace(view, view)).toBeNull();
  });

  it("refuses turns and records that are not there, by code", async () => {
    const [row] = await recordsOfStep(source, 1);
    const { view } = await open(row!.id);
    await expect(view.raw(999)).rejects.toMatchObject({ code: "TRAJECTORY_TURN_UNKNOWN" });
    await expect(openRecordTrajectory(source, "nobody", () => {})).rejects.toMatchObject({ code: "STORE_NOT_FOUND" });
  });
});

describe("the list of a run's trajectories", () => {
  it("comes in pages, in any order of the contract, with the total and the index that answered", async () => {
    const everything = await allDocuments(source.store.records, { run: source.run });
    const first = await list({ limit: 5 });
    for (const row of first.rows) trajectoryRowSchema.parse(row);
    expect(first).toMatchObject({ total: everything.length });
    const second = await list({ limit: 1000, after: first.next });
    expect([...first.rows, ...second.rows].map(({ id }) => id)).toEqual(everything.map(({ id }) => id));
    const scores = (await list({ order: "score", descending: true })).rows.map(({ score }) => score!);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
  });

  it("filters by step, split and score", async () => {
    const ofStep = await list({ filter: { step: 2 } });
    expect(ofStep.rows.map(({ id }) => id).sort()).toEqual((await recordsOfStep(source, 2)).map(({ id }) => id).sort());
    expect((await list({ filter: { split: "heldOut" } })).rows.every(({ split }) => split === "heldOut")).toBe(true);
    expect((await list({ filter: { score: { min: 1 } } })).rows.every(({ score }) => score === 1)).toBe(true);
    expect((await list({ filter: { step: 99 } })).total).toBe(0);
    expect(await recordsOfStep(source, 99)).toEqual([]);
  });
});

describe("small questions about numbers and text", () => {
  it("find extremes past NaN, and none where there is no number", () => {
    expect(extremeOf([Number.NaN, 2, -3], "absolute")).toEqual({ token: 2, value: -3 });
    expect(extremeOf([Number.NaN, 2, -3], "greatest")).toEqual({ token: 1, value: 2 });
    expect(extremeOf([Number.NaN], "least")).toBeNull();
  });

  it("take the searched text literally, in any case", () => {
    expect(textFinder("a.b")("a.b A.B axb").map(({ at }) => at)).toEqual([0, 4]);
  });
});
