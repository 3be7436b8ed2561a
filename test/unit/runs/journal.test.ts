import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openJournal, readJournal } from "../../../agent-daemon/src/runs/journal.ts";
import type { JournalEventBody } from "../../../protocol/journal.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

const step = (number: number, loss: number): JournalEventBody => ({
  type: "step",
  step: number,
  weightVersion: number,
  skipped: null,
  metrics: { loss },
  timings: {},
});

async function journalFile(): Promise<string> {
  return join(await temporaryFolder(), "journal.jsonl");
}

describe("the journal", () => {
  test("numbers its events over all attempts", async () => {
    const file = await journalFile();
    const first = openJournal(file, 1, () => 5);
    first.append(step(1, 0.5));
    first.append(step(2, 0.25));
    first.dispose();
    const second = openJournal(file, 2, () => 6);
    second.append(step(2, 0.125));
    second.dispose();
    expect(readJournal(file).events.map(({ n, at, attempt }) => [n, at, attempt])).toEqual([
      [1, 5, 1],
      [2, 5, 1],
      [3, 6, 2],
    ]);
  });

  test("keeps NaN and the infinities", async () => {
    const file = await journalFile();
    const journal = openJournal(file, 1, () => 0);
    journal.append({
      ...step(1, Number.NaN),
      metrics: { a: Number.NaN, b: Number.POSITIVE_INFINITY, c: -Number.POSITIVE_INFINITY },
    } as JournalEventBody);
    journal.dispose();
    const [event] = readJournal(file).events;
    expect(event?.type === "step" && event.metrics).toEqual({
      a: Number.NaN,
      b: Number.POSITIVE_INFINITY,
      c: Number.NEGATIVE_INFINITY,
    });
  });

  test.each([
    ["in a number", Buffer.from('{"n":2,"at":0,"attempt":1,"type":"step","step":41,"loss":0.')],
    [
      "inside a character",
      Buffer.concat([Buffer.from('{"n":2,"at":0,"attempt":1,"type":"warning","message":"Gr'), Buffer.from([0xc3])]),
    ],
  ])("P31: loses only a last line that was torn %s, and says how much", async (_where, torn) => {
    const file = await journalFile();
    const first = openJournal(file, 1, () => 0);
    first.append(step(40, 1));
    first.dispose();
    appendFileSync(file, torn);
    expect(readJournal(file)).toMatchObject({ tornBytes: torn.length, unreadable: [] });
    expect(readJournal(file).events).toHaveLength(1);

    const second = openJournal(file, 2, () => 0);
    expect(second.tornBytes).toBe(torn.length);
    second.append(step(42, 2));
    second.append(step(43, 3));
    second.dispose();
    const { events, tornBytes } = readJournal(file);
    expect(tornBytes).toBe(0);
    expect(events.map((event) => event.type === "step" && [event.n, event.step])).toEqual([
      [1, 40],
      [2, 42],
      [3, 43],
    ]);
  });

  test("reads on behind a line that cannot be read, and names it", async () => {
    const file = await journalFile();
    const journal = openJournal(file, 1, () => 0);
    journal.append(step(1, 1));
    journal.append(step(2, 1));
    journal.dispose();
    const [first, second] = readFileSync(file, "utf8").split("\n");
    writeFileSync(file, `${first}\nnot json\n${second}\n`);
    const contents = readJournal(file);
    expect(contents.events.map((event) => event.n)).toEqual([1, 2]);
    expect(contents.unreadable.map((each) => each.line)).toEqual([2]);
  });

  test("has no events when the file is absent", async () => {
    expect(readJournal(await journalFile()).events).toEqual([]);
  });
});
