// Every data file of another tool gives what facts.json says of it. Files and facts are found at run time: others of the same kinds
// pass the same tests.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { importedTrajectorySchema, importedTurnSchema } from "../../../protocol/importedTrajectory.ts";
import { callNames, conversationFacts, type ReadFile, readTrajectories } from "../../support/openedFiles.ts";
import { dataPath } from "../../support/paths.ts";

type Facts = Record<string, unknown>;
interface Conversation {
  readonly roles: string[];
  readonly tool_calls: string[];
  readonly first_text: string;
  readonly last_text: string;
  readonly chars: number;
}

const facts: Facts = JSON.parse(readFileSync(dataPath("facts.json"), "utf8"));
const conversationKeys = ["roles", "tool_calls", "first_text", "last_text", "chars"] as const;

function conversation(given: Conversation): Conversation {
  return Object.fromEntries(conversationKeys.map((key) => [key, given[key]])) as unknown as Conversation;
}

function filesOf(folder: string): string[] {
  return Object.keys(facts).filter((name) => name.startsWith(`${folder}/`));
}

async function read(name: string): Promise<ReadFile> {
  const file = await readTrajectories(dataPath(name));
  expect(file.problems).toEqual([]);
  for (const { about, turns } of file.all) {
    importedTrajectorySchema.parse(about);
    expect(turns).toHaveLength(about.turnCount);
    for (const turn of turns) {
      importedTurnSchema.parse(turn);
      expect(turn.problem).toBeNull();
    }
  }
  expect(new Set(file.all.map(({ about }) => about.id)).size).toBe(file.all.length);
  return file;
}

describe("data files of other tools", () => {
  it.each(filesOf("openai-chat"))("%s: messages and tool calls of each line", async (name) => {
    const expected = facts[name] as { records: number; items: Conversation[] };
    const { all, format } = await read(name);
    expect(format).toBe("openai-chat");
    expect(all).toHaveLength(expected.records);
    expect(all.map(({ turns }) => conversationFacts(turns))).toEqual(expected.items.map(conversation));
  });

  it.each(filesOf("swe-agent"))("%s: history, steps, exit status and demonstrations", async (name) => {
    const expected = facts[name] as Conversation & {
      trajectory_steps: number;
      exit_status: string | null;
      has_submission: boolean;
      demo_messages: number;
    };
    const { all, format } = await read(name);
    const { about, turns } = all[0]!;
    expect(format).toBe("swe-agent");
    expect(conversationFacts(turns)).toEqual(conversation(expected));
    expect(about.exitStatus).toBe(expected.exit_status);
    expect(about.metadata["steps"]).toBe(expected.trajectory_steps);
    const info = (about.metadata["info"] ?? {}) as Facts;
    expect(typeof info["submission"] === "string").toBe(expected.has_submission);
    expect(turns.filter((turn) => turn.demonstration)).toHaveLength(expected.demo_messages);
  });

  it.each(filesOf("mini-swe-agent"))("%s: a bare list of messages", async (name) => {
    const { all, format } = await read(name);
    expect(format).toBe("mini-swe-agent");
    expect(conversationFacts(all[0]!.turns)).toEqual(conversation(facts[name] as Conversation));
  });

  it.each(filesOf("inspect"))("%s: samples with their scores, in either container", async (name) => {
    const expected = facts[name] as {
      status: string;
      task: string;
      model: string;
      members?: string[];
      samples: (Conversation & {
        sample_id: number | string;
        epoch: number;
        target: unknown;
        scores: Facts;
        model_events: number;
      })[];
    };
    const { all, format, facts: about } = await read(name);
    expect(format).toBe("inspect");
    expect(all).toHaveLength(expected.samples.length);
    if (expected.members !== undefined) {
      expect(about["members"]).toEqual(expected.members);
      expect(about["task"]).toBe(expected.task);
    }
    for (const sample of expected.samples) {
      const found = all.find(({ about }) => about.id === `${sample.sample_id}_epoch_${sample.epoch}`)!;
      expect(conversationFacts(found.turns)).toEqual(conversation(sample));
      expect(found.about.reward).toEqual(sample.scores);
      expect(found.about.model).toBe(expected.model);
      expect(found.about.exitStatus).toBe(expected.status);
      expect(found.about.metadata).toMatchObject({ target: sample.target, task: expected.task });
      expect((found.about.metadata["events"] as Facts)["model"] ?? 0).toBe(sample.model_events);
    }
  });

  it.each(filesOf("claude-code"))("%s: events and their blocks in the order of the tree", async (name) => {
    const expected = facts[name] as {
      lines: number;
      types: string[];
      blocks: (string | string[])[];
      sidechain: boolean[];
      tool_uses: string[];
    };
    const { all, format } = await read(name);
    expect(format).toBe("claude-code");
    const turns = all.flatMap(({ turns, about }) =>
      turns.map((turn) => ({ turn, side: about.branch?.kind === "sidechain" })),
    );
    const lines = new Map(turns.map(({ turn, side }) => [turn.source!.line!, { turn, side }]));
    expect(lines.size).toBe(expected.lines);
    const ordered = [...lines].sort(([a], [b]) => a - b).map(([, entry]) => entry);
    expect(ordered.map(({ turn }) => turn.kinds[0])).toEqual(expected.types);
    expect(ordered.map(({ side }) => side)).toEqual(expected.sidechain);
    const blocks = ordered.map(({ turn }) => [
      ...(turn.result === null
        ? turn.parts.map((part) => (part.kind === "reasoning" ? "thinking" : part.kind))
        : ["tool_result"]),
      ...turn.toolCalls.map(() => "tool_use"),
    ]);
    // A message whose content is plain text is one text block.
    expect(blocks).toEqual(expected.blocks.map((each) => (typeof each === "string" ? [each] : each)));
    expect(callNames(turns.map(({ turn }) => turn))).toEqual(expected.tool_uses);
  });

  it.each(filesOf("nemo-gym"))("%s: items of request and response, and rewards", async (name) => {
    const expected = facts[name] as {
      input_items: string[];
      output_items: string[];
      calls: string[];
      reward: number;
    }[];
    const { all, format } = await read(name);
    expect(format).toBe("nemo-gym");
    expect(all).toHaveLength(expected.length);
    for (const [index, { turns, about }] of all.entries()) {
      const { input_items, output_items, calls, reward } = expected[index]!;
      expect(turns.slice(0, input_items.length).map((turn) => turn.role)).toEqual(input_items);
      expect(turns.slice(input_items.length).map((turn) => turn.kinds[0])).toEqual(output_items);
      expect(callNames(turns)).toEqual(calls);
      expect(about.score).toBe(reward);
    }
  });

  it.each(filesOf("sharegpt"))("%s: speakers of each conversation", async (name) => {
    const expected = facts[name] as { records: number; items: { keys: string[]; froms?: string[] }[] };
    const { all } = await read(name);
    const records = [...new Set(all.map(({ about }) => about.record))];
    expect(records).toHaveLength(expected.records);
    for (const [index, record] of records.entries()) {
      const { keys, froms } = expected.items[index]!;
      const of = all.filter(({ about }) => about.record === record);
      expect(of).toHaveLength(keys.includes("chosen") ? 2 : 1);
      const spoken = of[0]!.turns.map((turn) => turn.kinds[0]);
      if (froms !== undefined) expect(spoken.filter((kind) => kind !== "key:system")).toEqual(froms);
      if (keys.includes("system")) expect(of[0]!.turns[0]!.role).toBe("system");
      if (keys.includes("tools")) expect(Array.isArray(of[0]!.about.tools)).toBe(true);
      for (const { turns } of of) expect(turns.at(-1)!.role).toBe("assistant");
    }
  });

  it.each(filesOf("tau-bench"))("%s: runs with task, trial and reward", async (name) => {
    const expected = facts[name] as (Conversation & { task_id: number; trial: number; reward: number })[];
    const { all, format } = await read(name);
    expect(format).toBe("tau-bench");
    expect(all.map(({ turns }) => conversationFacts(turns))).toEqual(expected.map(conversation));
    expect(all.map(({ about }) => about.score)).toEqual(expected.map(({ reward }) => reward));
    expect(all.map(({ about }) => about.task)).toEqual(expected.map(({ task_id }) => String(task_id)));
    expect(all.map(({ about }) => about.metadata["trial"])).toEqual(expected.map(({ trial }) => trial));
  });

  it.each(filesOf("openhands"))("%s: events of either form and tool calls", async (name) => {
    const expected = facts[name] as {
      events: number;
      kinds: Record<string, number>;
      id: string | number;
      error: string | null;
      tool_call_names: string[];
    }[];
    const { all, format } = await read(name);
    expect(format).toBe("openhands");
    for (const [index, { turns, about }] of all.entries()) {
      const { events, kinds, id, error, tool_call_names } = expected[index]!;
      expect(turns).toHaveLength(events);
      const counted: Record<string, number> = {};
      for (const turn of turns) counted[turn.kinds[0]!] = (counted[turn.kinds[0]!] ?? 0) + 1;
      expect(counted).toEqual(kinds);
      expect(about.task).toBe(String(id));
      expect(about.error).toBe(error);
      expect(callNames(turns)).toEqual(tool_call_names);
      for (const turn of turns) for (const call of turn.toolCalls) JSON.parse(call.arguments);
    }
  });

  it.each(filesOf("verifiers-v1"))("%s: branches with token columns and weighted rewards", async (name) => {
    const expected = facts[name] as {
      episode: string;
      trace: string;
      reward: number;
      unscored: string[];
      branches: { path: number[]; roles: string[]; tokens: number; sampled: number; logprob_sum: number }[];
    }[];
    const { all, format } = await read(name);
    expect(format).toBe("verifiers-v1");
    expect(all).toHaveLength(expected.reduce((sum, { branches }) => sum + branches.length, 0));
    for (const { trace, episode, reward, unscored, branches } of expected) {
      const of = all.filter(({ about }) => about.metadata["id"] === trace);
      expect(of.map(({ about }) => about.metadata["path"])).toEqual(branches.map(({ path }) => path));
      for (const [index, { about, turns }] of of.entries()) {
        const { roles, tokens, sampled, logprob_sum } = branches[index]!;
        expect((about.metadata["episode"] as Facts)["id"]).toBe(episode);
        expect(about.score).toBeCloseTo(reward, 9);
        expect(Object.keys(about.reward).filter((part) => about.reward[part] === null)).toEqual(unscored);
        expect(turns.map((turn) => turn.role)).toEqual(roles);
        const columns = turns.map((turn) => turn.tokens!);
        const count = (of: (columns: (typeof turns)[0]["tokens"]) => number) =>
          columns.reduce((sum, each) => sum + of(each), 0);
        expect(count((each) => each!.ids.length)).toBe(tokens);
        expect(count((each) => each!.sampled.filter((mark) => mark === 1).length)).toBe(sampled);
        expect(count((each) => (each!.logprobs ?? []).reduce((sum, value) => sum + value, 0))).toBeCloseTo(
          logprob_sum,
          6,
        );
      }
    }
  });

  it.each(filesOf("verifiers-legacy"))("%s: completions and rewards by example", async (name) => {
    const expected = facts[name] as { example_id: number; reward: number; completion: Conversation; error: boolean }[];
    const { all, format } = await read(name);
    expect(format).toBe("verifiers-legacy");
    expect(all.map(({ about }) => about.group)).toEqual(expected.map(({ example_id }) => String(example_id)));
    expect(all.map(({ about }) => about.score)).toEqual(expected.map(({ reward }) => reward));
    expect(all.map(({ about }) => about.error !== null)).toEqual(expected.map(({ error }) => error));
    const completions = all.map(({ turns }) => turns.filter((turn) => turn.kinds[0] === "completion"));
    expect(completions.map(conversationFacts)).toEqual(expected.map(({ completion }) => conversation(completion)));
  });

  it.each(filesOf("trl"))("%s: rows, columns and rewards that did not apply", async (name) => {
    const expected = facts[name] as {
      rows: number;
      columns: string[];
      first: Record<string, unknown>;
      nulls: Record<string, number>;
    };
    const { all, format, facts: about } = await read(name);
    expect(format).toBe("trl-completions");
    expect(all).toHaveLength(expected.rows);
    expect(about).toMatchObject({ rows: expected.rows, columns: expected.columns });
    const { prompt, completion, step, advantage, ...rest } = expected.first;
    expect(all[0]!.about).toMatchObject({ step });
    expect(all[0]!.about.metadata["advantage"]).toBe(advantage);
    for (const [column, value] of Object.entries(rest))
      expect(all[0]!.about.reward[column] ?? all[0]!.about.metadata[column] ?? null).toBe(value);
    for (const [column, count] of Object.entries(expected.nulls))
      expect(all.filter(({ about }) => about.reward[column] === null)).toHaveLength(count);
    // Only the marks of the template are gone from the text.
    const shown = all[0]!.turns.flatMap(({ parts }) => parts.map((part) => (part.kind === "text" ? part.text : "")));
    for (const text of shown) expect(`${String(prompt)}${String(completion)}`).toContain(text);
  });

  it.each(filesOf("verl"))("%s: rows with score, step and further rewards", async (name) => {
    const expected = facts[name] as { rows: number; keys: string[]; scores: number[] };
    const { all, format } = await read(name);
    expect(format).toBe("verl");
    expect(all).toHaveLength(expected.rows);
    expect(all.map(({ about }) => about.score)).toEqual(expected.scores);
    const extra = expected.keys.filter((key) => !["input", "output", "gts", "step"].includes(key));
    for (const { about } of all)
      for (const key of extra) expect({ ...about.metadata, ...about.reward }).toHaveProperty(key);
    expect(all.every(({ about }) => about.step !== null)).toBe(true);
  });

  it("every file that facts.json tells of has a test, but for task files", () => {
    const folders = new Set(Object.keys(facts).map((name) => name.split("/")[0]));
    const tested = [
      ...["openai-chat", "swe-agent", "mini-swe-agent", "inspect", "claude-code", "nemo-gym", "sharegpt", "tau-bench"],
      ...["openhands", "verifiers-v1", "verifiers-legacy", "trl", "verl"],
    ];
    expect([...folders].filter((folder) => folder !== "gsm8k").sort()).toEqual(tested.sort());
  });
});
