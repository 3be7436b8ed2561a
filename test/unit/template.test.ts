import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ChatTemplate } from "../../agent-daemon/src/capture/chatTemplate.ts";
import { parseJson, writeJson } from "../../agent-daemon/src/capture/template/pythonJson.ts";
import { isDict, type Value } from "../../agent-daemon/src/capture/template/values.ts";

interface Fixture {
  variables: string;
  cases: { template: string; text?: string; fails?: true }[];
}

const fixture = JSON.parse(readFileSync(new URL("../fixtures/jinja.json", import.meta.url), "utf8")) as Fixture;

function render(source: string, variables: Value | Record<string, unknown> = {}): string {
  const dict = variables as Record<string, unknown>;
  return new ChatTemplate(source).render({ messages: [], variables: dict, addGenerationPrompt: false }).text;
}

test("every expression and statement prints what Jinja on Python prints, and fails where it fails", () => {
  const variables = parseJson(fixture.variables);
  const differing = fixture.cases.flatMap(({ template, text, fails }) => {
    let got: string | undefined;
    let code: unknown;
    try {
      got = render(template, variables);
    } catch (error) {
      code = (error as { code?: unknown }).code;
    }
    const isRight = fails ? /^TEMPLATE_(FAILED|REFUSED)$/.test(String(code)) : got === text;
    return isRight ? [] : [{ template, text, got, code }];
  });
  expect(differing).toEqual([]);
  expect(fixture.cases.length).toBeGreaterThan(480);
});

describe("JSON read for a template", () => {
  test("keeps number text, key order and the last of two equal keys", () => {
    const text = '{"2": 1.0, "1": 1e-07, "big": 123456789012345678901, "z": -0.0, "e": 1E+16, "a": 1, "a": 2}';
    expect(writeJson(parseJson(text))).toBe(
      '{"2": 1.0, "1": 1e-07, "big": 123456789012345678901, "z": -0.0, "e": 1e+16, "a": 2}',
    );
  });

  test("is refused where it is not JSON", () => {
    for (const text of ["", "{", "[1,]", "{'a':1}", '"\n"', "01", "1.", "nul", "1 2", '"\\x41"', '{"a" 1}', "[1 2]"]) {
      expect(() => parseJson(text), text).toThrow(SyntaxError);
    }
    expect(() => parseJson("[".repeat(100_000))).toThrow(SyntaxError);
  });

  test("agrees with JSON.parse on ordinary texts", () => {
    const data = { a: [1, 2.5, 'x\u2028"\\', null, true, { b: {} }], c: "\ud83e\uddea" };
    expect(JSON.parse(writeJson(parseJson(JSON.stringify(data))))).toEqual(data);
  });
});

describe("a chat template", () => {
  test("that cannot be parsed is refused when it is read, not when it renders", () => {
    for (const source of [
      "{% if %}",
      "{{ x | nosuchfilter }}",
      "{{ x is nosuchtest }}",
      "{% for x in %}",
      "{{ 'a }}",
    ]) {
      expect(() => new ChatTemplate(source), source).toThrow(expect.objectContaining({ code: "TEMPLATE_INVALID" }));
    }
  });

  test("tells its own refusal from a failure", () => {
    expect(() => render("{{ raise_exception('roles must alternate') }}")).toThrow(
      expect.objectContaining({
        code: "TEMPLATE_REFUSED",
        message: expect.stringContaining("roles must alternate"),
        at: { kind: "raised_by_template" },
      }),
    );
    expect(() => render("{{ 'a' + none }}")).toThrow(
      expect.objectContaining({ code: "TEMPLATE_FAILED", at: { kind: "runtime_type" } }),
    );
    expect(() => render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")).toThrow(
      expect.objectContaining({ code: "TEMPLATE_FAILED", at: { kind: "recursion" } }),
    );
  });

  test("sees reasoning under both of its names and no keys that are null", () => {
    const template = new ChatTemplate("{{ messages[0] | tojson }}");
    const messages = [{ role: "assistant", content: null, reasoning_content: "hm" }];
    expect(template.render({ messages, addGenerationPrompt: false }).text).toBe(
      '{"role": "assistant", "reasoning_content": "hm", "thinking": "hm"}',
    );
    expect(template.render({ messages, addGenerationPrompt: false, nullPolicy: "keep" }).text).toContain(
      '"content": null',
    );
  });

  test("asks the clock it is given", () => {
    const now = () => new Date(2025, 2, 4, 15, 6, 7);
    const template = new ChatTemplate("{{ strftime_now('%d %b %Y %-d %I:%M:%S %p %A %j') }}", { now });
    expect(template.render({ messages: [], addGenerationPrompt: false }).text).toBe(
      "04 Mar 2025 4 03:06:07 PM Tuesday 063",
    );
  });

  test("cannot reach or change anything of the host", () => {
    const variables = parseJson('{"o": {"a": [1]}}');
    for (const source of ["{{ o.constructor }}", "{{ o.__proto__ }}", "{{ ''.constructor }}", "{{ o['__proto__'] }}"]) {
      expect(render(source, variables), source).toBe("");
    }
    for (const source of ["{{ o.update({}) }}", "{{ o.a.append(2) }}", "{% set o.b = 1 %}"]) {
      expect(() => render(source, variables), source).toThrow(expect.objectContaining({ code: "TEMPLATE_FAILED" }));
    }
    expect(isDict(variables) && writeJson(variables)).toBe('{"o": {"a": [1]}}');
  });
});
