// Chat templates against reference renderings: every record must match, or fail with the code of its kind of error.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { checkAppendOnly } from "../../agent-daemon/src/capture/appendOnly.ts";
import { ChatTemplate } from "../../agent-daemon/src/capture/chatTemplate.ts";
import { parseJson } from "../../agent-daemon/src/capture/template/pythonJson.ts";
import { type Dict, isDict, isList, type Value } from "../../agent-daemon/src/capture/template/values.ts";
import { oraclesPath } from "../support/paths.ts";

function read(name: string): string {
  return readFileSync(oraclesPath("chat", name), "utf8");
}

function dict(value: Value | undefined): Dict {
  if (value === undefined || !isDict(value)) throw new Error("an object was expected in the oracles");
  return value;
}

function list(value: Value | undefined): readonly Value[] {
  if (value === undefined || !isList(value)) throw new Error("a list was expected in the oracles");
  return value;
}

const expected = dict(parseJson(read("expected.json")));
const records = list(expected.get("records")).map(dict);
const templateInfo = dict(parseJson(read("templates.json")));
const conversations = new Map(
  list(parseJson(read("conversations.json"))).map((entry): [string, Dict] => [
    String(dict(entry).get("id")),
    dict(entry),
  ]),
);
const generationSpans = list(dict(parseJson(read("generation_spans.json"))).get("records")).map(dict);
const appendOnly = list(dict(parseJson(read("append_only.json"))).get("records")).map(dict);
const fixedNow = new Date(String(expected.get("fixed_now")));

const templates = new Map(
  Array.from(templateInfo, ([name, info]): [string, ChatTemplate] => {
    const tokens = Object.fromEntries(dict(dict(info).get("special_tokens")));
    const source = read(String(dict(info).get("file")));
    return [
      String(name),
      new ChatTemplate(source, { specialTokens: tokens as Record<string, string>, now: () => fixedNow }),
    ];
  }),
);

function render(record: Dict) {
  const conversation = dict(conversations.get(String(record.get("conversation"))));
  const tools = record.get("tools");
  return templates.get(String(record.get("template")))!.render({
    messages: list(conversation.get("messages")),
    tools: tools === true ? list(conversation.get("tools")) : tools === "empty_list" ? [] : null,
    variables: record.has("kwargs") ? dict(record.get("kwargs")) : {},
    addGenerationPrompt: record.get("add_generation_prompt") === true,
    nullPolicy: record.get("null_policy") === "keep" ? "keep" : "drop",
  });
}

function check(record: Dict): void {
  const name = ["conversation", "tools", "add_generation_prompt"].map((key) => String(record.get(key))).join(" ");
  if (record.has("rendered")) {
    expect(render(record).text, name).toBe(record.get("rendered"));
    return;
  }
  const code = record.get("error_kind") === "raised_by_template" ? "TEMPLATE_REFUSED" : "TEMPLATE_FAILED";
  expect(() => render(record), name).toThrow(
    expect.objectContaining({ code, at: { kind: String(record.get("error_kind")) } }),
  );
}

const names = [...templates.keys()];

describe.each(names)("the template %s", (name) => {
  const own = records.filter((record) => record.get("template") === name);
  test(`renders its ${own.length} conversations exactly, or fails where the reference fails`, () => {
    for (const record of own) check(record);
  });
});

const withSpans = names.filter((name) => generationSpans.some((record) => record.get("template") === name));

test.each(withSpans)("%s marks the stretches that the model generates", (name) => {
  for (const record of generationSpans.filter((entry) => entry.get("template") === name)) {
    if (!record.has("spans_utf16")) continue;
    const result = render(new Map([...record, ["add_generation_prompt", false] as const]));
    const spans = list(record.get("spans_utf16")).map((span) => list(span).map(Number));
    expect(result.generations, String(record.get("conversation"))).toEqual(spans);
    expect(result.generations.map(([start, end]) => result.text.slice(start, end))).toEqual([
      ...list(record.get("span_texts")),
    ] as unknown[]);
  }
});

describe.each(names)("the append-only check of %s", (name) => {
  const own = appendOnly.filter((record) => record.get("template") === name);
  test(`agrees with the reference on ${own.length} conversations`, () => {
    for (const record of own) checkDrift(record);
  });
});

function checkDrift(record: Dict): void {
  const conversation = dict(conversations.get(String(record.get("conversation"))));
  const template = templates.get(String(record.get("template")))!;
  const tools =
    record.get("tools") === "empty_list" ? [] : record.get("tools") === true ? list(conversation.get("tools")) : null;
  const run = () => checkAppendOnly(template, { messages: list(conversation.get("messages")), tools });
  const name = String(record.get("conversation"));
  if (record.get("status") === "error") {
    expect(run, name).toThrow(expect.objectContaining({ name: "RollscopeError" }));
    return;
  }
  const report = run();
  expect(report.turns, name).toEqual(list(record.get("assistant_turns")).map(Number));
  if (record.get("status") === "no_assistant_turn") return;
  const checks = { prompt: "prompt_append_only", turn: "turn_append_only", enter: "generation_prompt_matches_history" };
  for (const [check, verdict] of Object.entries(checks)) {
    const found = report.violations.filter((violation) => violation.check === check);
    expect(found.length === 0, `${name} ${check}`).toBe(record.get(verdict));
    if (found.length === 0) continue;
    const [first] = found;
    const turns = list(dict(record.get("violating_turns")).get(check)).map(Number);
    expect(
      found.map((violation) => violation.turn),
      `${name} ${check}`,
    ).toEqual(turns);
    const reference = dict(record.get(`first_${check}_violation`));
    const [turn, messageIndex, common] = ["turn", "message_index", "common_utf16"].map((key) =>
      Number(reference.get(key)),
    );
    expect(first, `${name} ${check}`).toMatchObject({
      turn,
      messageIndex,
      common,
      against: String(reference.get("against")),
    });
  }
}
