import { join } from "node:path";
import fc from "fast-check";
import { stringify } from "lossless-json";
import { describe, expect, it } from "vitest";
import { loadTasks } from "../../../agent-daemon/src/recipes/loadTasks.ts";
import { readTaskFile, type TaskFileRow } from "../../../agent-daemon/src/recipes/taskFile.ts";
import { recipeSchema } from "../../../protocol/recipe.ts";
import type { FieldType } from "../../../protocol/recipePlace.ts";
import { dataPath } from "../../support/paths.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

async function collect(rows: AsyncIterable<TaskFileRow>): Promise<TaskFileRow[]> {
  const all: TaskFileRow[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

async function read(content: string | Uint8Array, fields: Record<string, FieldType> = {}): Promise<TaskFileRow[]> {
  const folder = await temporaryFolder({ "tasks.jsonl": content });
  return await collect(readTaskFile(join(folder, "tasks.jsonl"), fields));
}

function configured(data: object, taskSchema = {}) {
  return recipeSchema.parse({
    name: "x",
    model: { source: "./m" },
    data: { train: "tasks.jsonl", ...data },
    objective: { kind: "grpo", aggregation: "token-mean" },
    advantages: { estimator: "group_mean" },
    taskSchema,
  });
}

describe("a task file", () => {
  it("loses no row to a byte order mark, CRLF, blank lines, a missing last newline or a row of 5 MB", async () => {
    const long = "x".repeat(5_000_000);
    const rows = await read(
      `\uFEFF{"id":"a","n":1}\r\n{"id":"b"}\r\n\r\n{"id":"c","text":"${long}"}\r\n  \r\n{"id":"d"}`,
    );
    expect(rows.map(({ payload, index, line }) => [payload["id"], index, line])).toEqual([
      ["a", 0, 1],
      ["b", 1, 2],
      ["c", 2, 4],
      ["d", 3, 6],
    ]);
    expect(Object.keys(rows[0]!.payload)).toEqual(["id", "n"]);
    expect((rows[2]!.payload["text"] as string).length).toBe(5_000_000);
  });

  it("keeps large integers exact, and two ids that differ in the last digit apart", async () => {
    const text =
      '{"id":7205759403792793601,"list":[-7205759403792793602]}\n{"id":7205759403792793602,"x":1.5,"y":12}\n';
    const rows = await read(text);
    expect(rows.map(({ payload }) => payload["id"])).toEqual([7205759403792793601n, 7205759403792793602n]);
    expect(rows[0]!.payload["list"]).toEqual([-7205759403792793602n]);
    expect(rows[1]!.payload).toMatchObject({ x: 1.5, y: 12 });
    const folder = await temporaryFolder({ "tasks.jsonl": text });
    const { train } = await loadTasks(folder, configured({}));
    expect(train.map(({ id }) => id)).toEqual(["7205759403792793601", "7205759403792793602"]);
  });

  it("names file and line of a bad row", async () => {
    const good = '{"a":1}\n\n';
    const cases: [string | Uint8Array, number, RegExp][] = [
      [`${good}{"a":}\n`, 3, /not valid JSON/],
      [`${good}{"a":1\n`, 3, /not valid JSON/],
      [`${good}{"a":1} {"a":2}\n`, 3, /not valid JSON/],
      [`${good}{"a":1,"a":2}\n`, 3, /Duplicate key/],
      [`${good}{"a":1e999}\n`, 3, /too large/],
      [`${good}[1]\n`, 3, /a list/],
      [`${good}null\n`, 3, /not an object/],
      [`${good}${"[".repeat(100_000)}\n`, 3, /nested too deeply/],
      [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 1, /UTF-8/],
      [Buffer.from('\uFEFF{"a":1}\n', "utf16le"), 1, /UTF-8/],
    ];
    for (const [content, line, sentence] of cases) {
      await expect(read(content)).rejects.toMatchObject({
        code: "DATA_ROW_INVALID",
        at: { line, file: expect.stringMatching(/tasks\.jsonl$/) },
        message: expect.stringMatching(sentence),
      });
    }
    await expect(read('{"n":1}\n{"n":"1"}\n', { n: "integer" })).rejects.toMatchObject({ at: { line: 2 } });
    await expect(read('{"n":1}\n{"m":1}\n', { n: "integer" })).rejects.toMatchObject({ at: { line: 2 } });
  });

  it("keeps line separators of Unicode, half-open characters at buffer ends, and keys named __proto__", async () => {
    const rows = await read(
      `{"a":"x\u2028y\u2029z","__proto__":{"x":1}}\n${`{"a":"${"é温🧪".repeat(400_000)}"}\n`.repeat(2)}`,
    );
    expect(rows[0]!.payload["a"]).toBe("x\u2028y\u2029z");
    expect(Object.keys(rows[0]!.payload)).toEqual(["a", "__proto__"]);
    expect(({} as { x?: number }).x).toBeUndefined();
    expect(rows).toHaveLength(3);
    expect(rows[2]!.payload["a"]).toBe("é温🧪".repeat(400_000));
  });

  it("gives back whatever JSON stands in it", async () => {
    const object = fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ noUnicodeString: false }));
    await fc.assert(
      fc.asyncProperty(fc.array(object, { maxLength: 5 }), fc.constantFrom("\n", "\r\n", "\n\n"), async (list, end) => {
        const rows = await read(list.map((row) => JSON.stringify(row)).join(end));
        expect(rows.map(({ payload }) => stringify(payload))).toEqual(list.map((row) => JSON.stringify(row)));
      }),
      { numRuns: 50 },
    );
  });

  it("reads the rows of GSM8K", async () => {
    const rows = await collect(readTaskFile(dataPath("gsm8k", "train-512.jsonl"), { question: "string" }));
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.every(({ payload }) => typeof payload["answer"] === "string")).toBe(true);
  });

  it("is refused with a code when it is not there, is a folder, or is empty", async () => {
    const folder = await temporaryFolder({ "empty.jsonl": "\n\n" });
    await expect(loadTasks(folder, configured({}))).rejects.toMatchObject({ code: "DATA_FILE_NOT_FOUND" });
    await expect(loadTasks(folder, configured({ train: "." }))).rejects.toMatchObject({ code: "DATA_FILE_NOT_FOUND" });
    await expect(loadTasks(folder, configured({ train: "empty.jsonl" }))).rejects.toMatchObject({ code: "DATA_EMPTY" });
  });
});

describe("the splits", () => {
  const numbered = (count: number) => Array.from({ length: count }, (_, n) => `{"n":${n}}`).join("\n");

  it("take the held-out tasks from a file, or out of the training tasks, the same ones for one seed", async () => {
    const folder = await temporaryFolder({ "tasks.jsonl": numbered(50), "held.jsonl": numbered(3) });
    const fromFile = await loadTasks(folder, configured({ heldOut: "held.jsonl", limit: 10 }));
    expect([fromFile.train.length, fromFile.heldOut.length]).toEqual([10, 3]);
    expect(fromFile.heldOut.every(({ split }) => split === "heldOut")).toBe(true);

    const names = async (seed: number) => {
      const { train, heldOut } = await loadTasks(folder, configured({ heldOutCount: 12, seed }));
      expect(new Set([...train, ...heldOut].map(({ id }) => id)).size).toBe(50);
      expect(heldOut).toHaveLength(12);
      return heldOut.map(({ id }) => id).join();
    };
    expect(await names(1)).toBe(await names(1));
    expect(await names(1)).not.toBe(await names(2));
  });

  it("refuse two tasks of one name, and names that are none", async () => {
    const folder = await temporaryFolder({ "tasks.jsonl": '{"id":"a"}\n{"id":"b"}\n{"id":"a"}\n' });
    await expect(loadTasks(folder, configured({}))).rejects.toMatchObject({
      code: "DATA_ROW_INVALID",
      at: { line: 3 },
    });
    const odd = await temporaryFolder({ "tasks.jsonl": '{"id":[1]}\n' });
    await expect(loadTasks(odd, configured({}))).rejects.toMatchObject({ code: "DATA_ROW_INVALID", at: { line: 1 } });
  });

  it("refuse to hold out everything", async () => {
    const folder = await temporaryFolder({ "tasks.jsonl": numbered(5) });
    await expect(loadTasks(folder, configured({ heldOutCount: 5 }))).rejects.toMatchObject({ code: "DATA_EMPTY" });
  });
});
