// Reads a configuration of a seed stack as settings: a YAML or JSON mapping, or arguments as a launch script or an .args file has
// them. Knows no knob.
import { RollscopeError } from "../../../protocol/errors.ts";
import { isConfigMap, joinPath } from "./configLayer.ts";
import { readYamlLayer, readYamlValue } from "./configYaml.ts";

export interface SeedSetting {
  readonly path: readonly string[];
  readonly value: unknown;
  /** From 1. */
  readonly line: number;
}

/** @throws CONFIG_SYNTAX */
export function readSeedConfig(text: string, file: string): SeedSetting[] {
  if (/(^|\s)--[A-Za-z_]/.test(text) && !/^[A-Za-z_]\w*:(\s|$)/m.test(text)) return readArguments(text);
  const { layer, problems } = readYamlLayer(text, file);
  const first = problems[0];
  if (first !== undefined) {
    throw new RollscopeError("CONFIG_SYNTAX", `${file}:${first.origin?.line ?? 1}: ${first.sentence}`, {
      next: "Give a YAML or JSON mapping, or a text of `--key value` arguments.",
      at: { file },
    });
  }
  const settings: SeedSetting[] = [];
  const visit = (value: unknown, path: readonly string[]) => {
    const isListOfMaps = Array.isArray(value) && value.some((item) => isConfigMap(item));
    if (isConfigMap(value as never))
      for (const [key, inner] of Object.entries(value as object)) visit(inner, [...path, ...key.split(".")]);
    else if (isListOfMaps)
      for (const [index, item] of (value as unknown[]).entries()) visit(item, [...path, String(index)]);
    else settings.push({ path, value, line: layer.origins.get(joinPath(path))?.line ?? 1 });
  };
  visit(layer.tree, []);
  return settings;
}

/** `--key value`, `--key=value`, `--path.to.key=value`; a key followed by another key is a flag. */
function readArguments(text: string): SeedSetting[] {
  const words = [...text.matchAll(/'[^']*'|(?:[^\s\\"']|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/g)]
    .map((match) => ({ word: match[0], at: match.index }))
    .filter(({ word }) => word !== "\\");
  const lineOf = (at: number) => text.slice(0, at).split("\n").length;
  const bare = (word: string) => word.replace(/^(["'])([\s\S]*)\1$/, "$2").replace(/\\"/g, '"');
  const settings: SeedSetting[] = [];
  for (const [index, { word, at }] of words.entries()) {
    const match = /^--([A-Za-z_][\w.-]*)(=([\s\S]*))?$/.exec(word);
    if (match === null) continue;
    const path = match[1]!.replaceAll("-", "_").split(".");
    const next = words[index + 1]?.word;
    const given = match[3] ?? (next === undefined || next.startsWith("--") ? "true" : next);
    settings.push({ path, value: readYamlValue(bare(given)), line: lineOf(at) });
  }
  return settings;
}
