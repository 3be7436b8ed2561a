// `rollscope check --from STACK FILE`: a configuration of another stack as a recipe.yaml, with what has no counterpart and why as
// comments below it. Writes to stdout only: `> recipe.yaml` keeps it.
import { readFile } from "node:fs/promises";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { type SeedStack, seedStacks } from "../../../../protocol/seedKnobs.ts";
import { decodeConfig } from "../../recipes/configYaml.ts";
import { type TranslatedKnob, translateSeedConfig } from "../../recipes/translate.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";
import { harmless } from "../terminal/text.ts";

const titles: Readonly<Record<Exclude<TranslatedKnob["outcome"], "translated">, string>> = {
  refused: "No counterpart",
  later: "Not available yet",
  unread: "Left out",
  unknown: "Not known",
};

export async function translateCommand(path: string, stack: SeedStack, output: Output): Promise<ExitName> {
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw new RollscopeError("CONFIG_FILE_UNREADABLE", `${path} cannot be read.`, {
      next: "Name a configuration file of the other stack.",
      cause,
      at: { path },
    });
  });
  const text = decodeConfig(bytes);
  if (text === null)
    throw new RollscopeError("CONFIG_SYNTAX", `${path} is not UTF-8.`, { next: "Save it as UTF-8.", at: { path } });
  const { yaml, knobs, problems } = translateSeedConfig(stack, text, path);
  output.document({ from: stack, recipe: yaml, knobs, problems });
  if (output.json) return "ok";
  const shown = (knob: TranslatedKnob) => `${knob.knob} = ${short(knob.value)}`;
  const lines = [`# Translated from ${path} (${seedStacks[stack]}).`, ...yaml.trimEnd().split("\n")];
  for (const problem of problems) lines.push(`# To do: ${problem.sentence} ${problem.next}`);
  const noted = knobs.filter((knob) => knob.outcome === "translated" && knob.note !== null);
  if (noted.length > 0) lines.push("#", "# Translated, and not quite the same:");
  for (const knob of noted)
    lines.push(`#   ${shown(knob)} → ${Object.keys(knob.set).join(", ") || "nothing"}: ${knob.note}`);
  for (const [outcome, title] of Object.entries(titles)) {
    const these = knobs.filter((knob) => knob.outcome === outcome);
    if (these.length > 0) lines.push("#", `# ${title}:`);
    for (const knob of these) lines.push(`#   ${shown(knob)}: ${knob.note}`);
  }
  output.lines(lines.map((line) => harmless(line)));
  return "ok";
}

/** On one line, so that a comment stays one. */
function short(value: unknown): string {
  const text = JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? String(inner) : inner)) ?? "";
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
