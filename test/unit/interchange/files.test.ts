// What editors, other systems and crashes leave in files: nothing is lost without a word, and what can be read is read.
import { describe, expect, it } from "vitest";
import { openTrajectoryFile } from "../../../agent-daemon/src/store/interchange/openTrajectoryFile.ts";
import { readTrajectories, temporaryFile, textOf } from "../../support/openedFiles.ts";

const row = (content: string, more = "") => `{"messages":[{"role":"user","content":"${content}"}]${more}}`;

describe("files of lines", () => {
  it("a byte order mark, CRLF, a blank line, no newline at the end and a row of 5 MB lose no row", async () => {
    const large = "z".repeat(5 << 20);
    const lines = [row("one"), "", row("two"), row(large), row("four")];
    const { all, problems } = await readTrajectories(temporaryFile(`\uFEFF${lines.join("\r\n")}`));
    expect(problems).toEqual([]);
    expect(all.map(({ turns }) => textOf(turns[0]!))).toEqual(["one", "two", large, "four"]);
    expect(all.map(({ about }) => about.source.line)).toEqual([1, 3, 4, 5]);
  });

  it("P20: integers beyond 2^53 stay two ids, and stay exact in everything that is kept", async () => {
    const ids = ["7205759403792793601", "7205759403792793602"];
    const text = ids.map((id) => row("hi", `,"id":${id},"seen":[${id}],"nested":{"n":-${id}}`)).join("\n");
    const { all } = await readTrajectories(temporaryFile(text));
    expect(all.map(({ about }) => about.id)).toEqual(ids);
    expect(all.map(({ about }) => about.metadata["seen"])).toEqual(ids.map((id) => [BigInt(id)]));
    expect(all[0]?.about.metadata["nested"]).toEqual({ n: -7205759403792793601n });
  });

  it("a long integer inside a text, or a fraction of many digits, changes nothing", async () => {
    const read = await readTrajectories(
      temporaryFile(row("n 72057594037927936011", ',"x":0.123456789012345,"y":1e400')),
    );
    expect(textOf(read.all[0]!.turns[0]!)).toBe("n 72057594037927936011");
    expect(read.all[0]?.about.metadata).toEqual({ x: 0.123456789012345, y: "Infinity" });
  });

  it("a broken row is reported with file and line, and the others are read", async () => {
    const path = temporaryFile([row("a"), '{"messages": [', "[1, 2]", '{"unheard": 1}', row("b"), "{}x"].join("\n"));
    const { all, problems } = await readTrajectories(path);
    expect(all.map(({ turns }) => textOf(turns[0]!))).toEqual(["a", "b"]);
    expect(problems.map(({ line }) => line)).toEqual([2, 3, 4, 6]);
    for (const { code, message, next } of problems) {
      expect(code).toBe("IMPORT_ROW_INVALID");
      expect(message).toContain(path);
      expect(next).not.toBe("");
    }
  });

  it("P31: a last line that a crash tore, also inside a character, loses that line only", async () => {
    const torn = Buffer.from(`${row("a")}\n${row("größer")}`);
    const cut = torn.subarray(0, torn.indexOf(0xc3) + 1);
    const { all, problems } = await readTrajectories(temporaryFile(cut));
    expect(all).toHaveLength(1);
    expect(problems).toMatchObject([{ line: 2 }]);
  });

  it("rows of several formats in one file are each read as what they are", async () => {
    const rows = [row("a"), '{"conversations":[{"from":"human","value":"b"}]}', '{"instruction":"c","output":"d"}'];
    const { all, problems } = await readTrajectories(temporaryFile(rows.join("\n")));
    expect(problems).toEqual([]);
    expect(all.map(({ about }) => about.format)).toEqual(["openai-chat", "sharegpt", "alpaca"]);
  });

  it("P35: NaN and Infinity, which Python writes, are rewards by their words", async () => {
    const { all } = await readTrajectories(
      temporaryFile('{"input":"NaN?","output":"NaN","score":NaN,"step":3,"loss":-Infinity,"acc":1.0}\n'),
    );
    expect(textOf(all[0]!.turns[1]!)).toBe("NaN");
    expect(all[0]!.about).toMatchObject({ score: Number.NaN, step: 3 });
    expect(all[0]!.about.reward).toEqual({ score: Number.NaN, loss: Number.NEGATIVE_INFINITY, acc: 1 });
  });

  it("two records of one id stay two", async () => {
    const { all } = await readTrajectories(temporaryFile(`${row("a", ',"id":"x"')}\n${row("b", ',"id":"x"')}`));
    expect(all.map(({ about }) => about.id)).toEqual(["x", "x~2"]);
  });

  it("a message of an unknown role is shown as it stands, and the others are read", async () => {
    const text =
      '{"messages":[{"role":"user","content":"a"},{"role":"oracle","content":"b"},7,{"role":"assistant","content":"c"}]}';
    const { all } = await readTrajectories(temporaryFile(text));
    const turns = all[0]!.turns;
    expect(turns.map((turn) => turn.problem !== null)).toEqual([false, true, true, false]);
    expect(textOf(turns[1]!)).toBe('{"role":"oracle","content":"b"}');
  });
});

describe("arguments of tool calls", () => {
  it("are the source's own text, spaces and number notation included", async () => {
    const call = '{"id":"1","function":"f","arguments":{ "a" : 1.0, "b":[1e2 ,"\\u00e9"] },"type":"function"}';
    const sample = `{"id":1,"epoch":1,"messages":[{"role":"assistant","content":"","tool_calls":[${call}]}]}`;
    const log = `{"version":2,"status":"success","eval":{"task":"t","model":"m"},"samples":[${sample}]}`;
    const { all } = await readTrajectories(temporaryFile(log));
    expect(all[0]?.turns[0]?.toolCalls[0]?.arguments).toBe('{ "a" : 1.0, "b":[1e2 ,"\\u00e9"] }');
  });
});

describe("documents that end early", () => {
  it("show what can be read of them, and say where they end", async () => {
    const text =
      '{"history": [{"role": "user", "content": "a"},\n {"role": "assistant", "content": "b"},\n {"role": "us';
    const { all, problems } = await readTrajectories(temporaryFile(text));
    expect(all[0]?.about).toMatchObject({ format: "swe-agent", complete: false });
    expect(all[0]?.turns.map(textOf)).toEqual(["a", "b"]);
    expect(problems).toHaveLength(1);
  });

  it("a list of records keeps those before its end", async () => {
    const text = '[{"task_id":1,"traj":[{"role":"user","content":"a"}]},\n{"task_id":2,"traj":[{"rol';
    const { all, problems } = await readTrajectories(temporaryFile(text));
    expect(all.map(({ about }) => about.id)).toEqual(["1"]);
    expect(problems).toMatchObject([{ code: "IMPORT_ROW_INVALID", byte: text.indexOf('{"task_id":2') }]);
  });
});

describe("files that are no trajectories", () => {
  it.each([
    ["nothing", ""],
    ["prose", "hello there"],
    ["a picture", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2])],
    ["another kind of JSON lines", '{"question":"1+1","answer":"2"}\n'],
    ["an empty object", "{}"],
    ["an empty list", "[]"],
    ["a number", "12"],
    ["gzip", Buffer.from([0x1f, 0x8b, 8, 0])],
    ["UTF-16", Buffer.from("\uFEFF{}", "utf16le")],
  ])("%s is refused with its name, what was looked for and what to do", async (_what, contents) => {
    const path = temporaryFile(contents);
    await expect(openTrajectoryFile(path)).rejects.toMatchObject({
      code: "IMPORT_FORMAT_UNKNOWN",
      message: expect.stringContaining(path),
      next: expect.stringMatching(/\w/),
    });
  });

  it("a missing file and a folder are refused by what they are", async () => {
    await expect(openTrajectoryFile("/nowhere/at/all")).rejects.toMatchObject({ code: "IMPORT_FILE_UNREADABLE" });
    await expect(openTrajectoryFile("/")).rejects.toMatchObject({ code: "IMPORT_FILE_UNREADABLE" });
  });
});

describe("session logs", () => {
  const event = (uuid: string, parent: string | null, message: object, more: object = {}) =>
    JSON.stringify({ uuid, parentUuid: parent, sessionId: "s", isSidechain: false, type: "user", message, ...more });
  const said = (content: unknown) => ({ role: "user", content });
  const answer = (id: string, content: unknown) => ({ role: "assistant", id, content });
  const a = { type: "assistant" };

  it("follow parents, join one answer on several lines, and keep answers to parallel calls on the line", async () => {
    const use = (id: string) => ({ type: "tool_use", id, name: `tool-${id}`, input: { of: id } });
    const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: `got ${id}` });
    const lines = [
      '{"type":"summary","summary":"A title","leafUuid":"6"}',
      event("1", null, said("go")),
      event("2", "1", answer("m", [{ type: "text", text: "both" }, use("x")]), a),
      event("3", "2", answer("m", [use("y")]), a),
      event("4", "2", said([result("x")])),
      event("5", "3", said([{ ...result("y"), is_error: true }])),
      event("6", "5", answer("n", [{ type: "text", text: "done" }]), a),
    ];
    // The order of lines means nothing to the tree.
    const { all } = await readTrajectories(temporaryFile(lines.join("\n")));
    expect(all).toHaveLength(1);
    const { turns, about } = all[0]!;
    expect(about.metadata["title"]).toBe("A title");
    expect(turns.map((turn) => turn.role)).toEqual(["user", "assistant", "tool", "tool", "assistant"]);
    expect(turns[1]?.toolCalls.map((call) => [call.id, call.name, call.arguments])).toEqual([
      ["x", "tool-x", '{"of":"x"}'],
      ["y", "tool-y", '{"of":"y"}'],
    ]);
    expect(turns[2]?.result).toEqual({ callId: "x", name: "tool-x", error: null });
    expect(turns[3]?.result).toEqual({ callId: "y", name: "tool-y", error: "got y" });
  });

  it("give each retried line and each side chain a trajectory of its own, the newest first", async () => {
    const lines = [
      event("1", null, said("go")),
      event("2", "1", answer("m", "old"), a),
      event("s1", null, said("sub"), { isSidechain: true }),
      event("s2", "s1", answer("k", "sub answer"), { ...a, isSidechain: true }),
      event("3", "1", answer("n", "new"), a),
    ];
    const { all } = await readTrajectories(temporaryFile(lines.join("\n")));
    expect(all.map(({ turns }) => turns.map(textOf))).toEqual([
      ["go", "new"],
      ["go", "old"],
      ["sub", "sub answer"],
    ]);
    expect(all.map(({ about }) => about.branch?.kind)).toEqual(["branch", "branch", "sidechain"]);
    expect(all[1]?.about.branch).toMatchObject({ parts: 1, of: 3 });
  });

  it("go on after a compaction", async () => {
    const lines = [
      event("1", null, said("go")),
      event("2", "1", answer("m", "long"), a),
      event("3", null, said(""), { type: "system", subtype: "compact_boundary", content: "Compacted" }),
      event("4", "3", said("In short: long"), { isCompactSummary: true }),
      event("5", "4", answer("n", "on"), a),
    ];
    const { all } = await readTrajectories(temporaryFile(lines.join("\n")));
    expect(all).toHaveLength(1);
    expect(all[0]?.turns.map((turn) => turn.kinds.join("+"))).toEqual([
      ..."user assistant".split(" "),
      "system:compact_boundary",
      "user+compact summary",
      "assistant",
    ]);
  });

  it("end where parents run in a circle", async () => {
    const lines = [event("1", "2", said("a")), event("2", "1", said("b")), event("3", "2", said("c"))];
    const { all } = await readTrajectories(temporaryFile(lines.join("\n")));
    expect(all[0]?.turns).toHaveLength(3);
  });
});

describe("traces", () => {
  const node = (content: string, parent: number | null, ids: number[], sampled: boolean) => ({
    ...(parent === null ? {} : { parent }),
    message: { role: sampled ? "assistant" : "user", content },
    sampled,
    token_ids: ids,
    mask: ids.map(() => sampled),
    logprobs: sampled ? ids.map(() => -0.5) : [],
  });
  const episode = (nodes: unknown[]) =>
    JSON.stringify({
      id: "e",
      ok: true,
      group: { id: "g" },
      traces: [{ id: "t", nodes, rewards: { a: { score: 1, weight: 0.5 }, b: null } }],
    });

  it("with two leaves are two trajectories of one record, the second one marked as drifted", async () => {
    const nodes = [
      node("q", null, [1, 2], false),
      node("a", 0, [3], true),
      node("q'", 0, [4], false),
      node("a'", 2, [5, 6], true),
    ];
    const { all } = await readTrajectories(temporaryFile(episode(nodes)));
    expect(all.map(({ about }) => about.record)).toEqual(["t", "t"]);
    expect(all.map(({ about }) => about.metadata["path"])).toEqual([
      [0, 1],
      [0, 2, 3],
    ]);
    expect(all.map(({ about }) => about.branch)).toEqual([
      { kind: "branch", index: 0, of: 2, parts: null, drifted: false },
      { kind: "branch", index: 1, of: 2, parts: 1, drifted: true },
    ]);
    expect(all[0]?.about).toMatchObject({ score: 0.5, reward: { a: 1, b: null } });
    expect(all[1]?.turns.map((turn) => turn.tokens?.ids)).toEqual([[1, 2], [4], [5, 6]]);
  });

  it("whose columns contradict each other say so at the turn", async () => {
    const broken = { ...node("a", 0, [3, 4], true), logprobs: [-1] };
    const { all } = await readTrajectories(temporaryFile(episode([node("q", null, [1], false), broken])));
    expect(all[0]?.turns[1]?.problem).toBe("it has 2 sampled tokens and 1 logprobs");
  });
});

describe("logs of samples", () => {
  it("put attachments back in their place", async () => {
    const hash = "0123456789abcdef0123456789abcdef";
    const log = {
      version: 2,
      status: "error",
      eval: { task: "t", model: "m" },
      samples: [
        {
          id: "s",
          epoch: 2,
          messages: [{ role: "user", content: [{ type: "text", text: `see attachment://${hash}` }] }],
          scores: { f1: { value: { precision: 0.5, word: "C" } } },
          attachments: { [hash]: "$& the long text" },
        },
      ],
    };
    const { all } = await readTrajectories(temporaryFile(JSON.stringify(log)));
    expect(textOf(all[0]!.turns[0]!)).toBe("see $& the long text");
    expect(all[0]?.about).toMatchObject({ id: "s_epoch_2", reward: { "f1.precision": 0.5, "f1.word": "C" } });
  });
});
