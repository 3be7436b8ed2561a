import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { recipeJsonSchema } from "../../../protocol/recipeJsonSchema.ts";
import { recipeKey, type SchemaNode } from "../../../protocol/recipeKeys.ts";
import { type SeedStack, seedKnob, seedKnobs } from "../../../protocol/seedKnobs.ts";
import { referencePath } from "../../support/paths.ts";

const schema = recipeJsonSchema() as SchemaNode;
const section = (file: string, from: string, to: string) => {
  const text = readFileSync(referencePath(file), "utf8");
  const start = text.indexOf(from);
  expect(start).toBeGreaterThan(-1);
  return text.slice(start, text.indexOf(to, start));
};
const withoutAsides = (text: string) => {
  let plain = text;
  for (let before = ""; before !== plain; ) {
    before = plain;
    plain = plain.replace(/\([^()]*\)/g, "");
  }
  return plain;
};

/** A list at depth 0 of brackets. */
function split(text: string, separators: RegExp): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const character of text) {
    if ("{[".includes(character)) depth++;
    if ("}]".includes(character)) depth--;
    if (depth === 0 && separators.test(character)) {
      parts.push(part);
      part = "";
    } else part += character;
  }
  return [...parts, part].map((each) => each.trim()).filter((each) => each !== "");
}

/** Readings of a name such as tp/pp_size, start_wd/end_wd or masking_low/high: one list of candidates a knob. */
function readings(name: string): string[][] {
  const parts = name.split("/").map((part) => part.trim());
  const head = parts[0]!;
  const tail = parts.at(-1)!;
  return parts.map((part) => [
    part,
    head.slice(0, head.indexOf("_") + 1) + part,
    head.slice(0, head.lastIndexOf("_") + 1) + part,
    part + tail.slice(tail.indexOf("_")),
  ]);
}

function knobsOfList(list: string, prefix: string): string[][] {
  return split(list, /[;,]/).flatMap((entry) => {
    const name = /^[\w./]+?(?=\.?\s*(=|∈|\{|$|\|))/.exec(entry.replace(/\.$/, ""))?.[0];
    if (name === undefined) throw new Error(`cannot read ${entry}`);
    const nested = /(\.|\|)\s*\{(.*)\}$/s.exec(entry.replace(/\.$/, ""))?.[2];
    if (nested !== undefined) return knobsOfList(nested, `${prefix}${name}.`);
    return readings(name).map((candidates) => candidates.map((each) => prefix + each));
  });
}

function agentrlKnobs(): string[][] {
  const text = section("agentrl.md", "## 2. Configuration", "## 3.");
  const rows = text.match(/^\| ([^|]+) \|/gm) ?? [];
  const cells = rows.map((row) => row.slice(1, -1).trim()).filter((cell) => cell !== "Key" && !cell.startsWith("-"));
  const trainer = withoutAsides(/HF keys that matter: ([^\n]*)/.exec(text)![1]!).replace(/\.$/, "");
  const agents = [...text.matchAll(/`(\w+_agent)` \{/g)].map((match) => match[1]!);
  return [...cells.flatMap((cell) => cell.split(/[,/]/)), ...trainer.split(","), ...agents].map((name) => [
    name.trim(),
  ]);
}

function axisrlKnobs(): string[][] {
  const text = withoutAsides(section("axisrl.md", "## 2. Config tree", "**Overrides**")).replace(/∈\{[^}]*\}/g, "");
  const body = text.slice(text.indexOf("**controller**"), text.indexOf("Cross-checks"));
  const sections = body.split(/\*\*(?=[\w/]+\*\*)/).slice(1);
  return sections.flatMap((part) => {
    const [, names = "", rest = ""] = /^([\w/]+)\*\*\s*[:.]?\s*(.*)$/s.exec(part) ?? [];
    // Prose may follow a list: it begins with a capital letter after the last knob.
    const list = rest.replace(/^list\|None of \{(.*)\}\.?\s*$/s, "$1").split(/\n[A-Z]/)[0]!;
    const roots = names.endsWith("_sampling_config")
      ? ["train_sampling_config", "eval_sampling_config"]
      : names.split("/");
    return roots.flatMap((root) => knobsOfList(list.trim().replace(/\.$/, ""), `${root}.`));
  });
}

function axisrlVariables(): string[][] {
  const text = section("axisrl.md", "Directory env:", "## 3.");
  return (text.match(/\b[A-Z]+(_[A-Z]+)+\b/g) ?? []).map((name) => [name]);
}

describe("the table of the seed stacks' knobs", () => {
  const missing = (stack: SeedStack, knobs: readonly string[][]) =>
    knobs
      .filter((candidates) => candidates.every((each) => seedKnob(stack, each.split(".")) === null))
      .map(([name]) => name);

  it("has every knob of AgentRL", () => {
    const knobs = agentrlKnobs();
    expect(knobs.length).toBeGreaterThan(80);
    expect(missing("agentrl", knobs)).toEqual([]);
  });

  it("has every knob of AxisRL", () => {
    const knobs = [...axisrlKnobs(), ...axisrlVariables()];
    expect(knobs.length).toBeGreaterThan(180);
    expect(missing("axisrl", knobs)).toEqual([]);
  });

  it("names only keys that a recipe has", () => {
    const unknown = seedKnobs.flatMap(({ counterpart }) =>
      counterpart.kind === "key" && recipeKey(schema, counterpart.key.split(".")) === null ? [counterpart.key] : [],
    );
    expect(unknown).toEqual([]);
  });

  it("names no knob twice", () => {
    const names = seedKnobs.map(({ stack, path }) => `${stack} ${path}`);
    expect(names).toEqual([...new Set(names)]);
  });
});
