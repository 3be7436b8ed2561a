// A recipe as an editor sees it: the problems of a check with exact ranges in the text and edits that mend them, and the value in
// force of every key. Same rules as `rollscope check`; the recipe's code is compiled and never run, nothing is fetched.

import { readFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { DaemonRequest, DaemonResult, RecipeDiagnostic } from "../../../protocol/daemonMethods.ts";
import { recipeJsonSchema } from "../../../protocol/recipeJsonSchema.ts";
import type { SchemaNode } from "../../../protocol/recipeKeys.ts";
import { checkRecipe } from "./checkRecipe.ts";
import { type ConfigProblem, describeOrigin, type Origin } from "./configProblem.ts";
import { decodeConfig } from "./configYaml.ts";
import { findRecipe, loadConfig } from "./loadConfig.ts";
import { quickFixes } from "./quickFixes.ts";
import { type YamlPlace, type YamlPlaces, yamlPlaces } from "./yamlPlaces.ts";

const schema = recipeJsonSchema() as SchemaNode;

/** Problems that are about what stands behind a key, not about the key. */
const aboutTheValue = /^(CONFIG_VALUE|DATA_|MODEL_)/;

type Range = RecipeDiagnostic["range"];

function severity({ severity, code }: ConfigProblem): RecipeDiagnostic["severity"] {
  if (severity === "note") return "hint";
  // The file may be made, or fetched, before the run.
  return code === "MODEL_NOT_FOUND" ? "warning" : "error";
}

function placed(problem: ConfigProblem, places: YamlPlaces): { place: YamlPlace | null; range: Range } {
  const { origin, path } = problem;
  const inFile = origin !== null && (origin.layer === "recipe" || origin.layer === "profile");
  if (!inFile || origin.line === undefined) return { place: null, range: null };
  const found = places.from(origin.line, origin.column ?? 1);
  if (found !== null && "item" in found) return { place: null, range: places.range(found.item) };
  const written = found?.path.join(".") ?? "";
  const isMeant = found !== null && (path === written || written.endsWith(`.${path}`));
  const place = isMeant ? found : path === "" ? null : places.at(path.split("."));
  if (place !== null)
    return {
      place,
      range: places.range(aboutTheValue.test(problem.code) && place.value !== null ? place.value : place.key),
    };
  const around = found ?? places.nearest(path.split("."));
  return { place: null, range: around === null ? pointOf(origin) : places.range(around.key) };
}

/** A place where nothing is written yet, or where the text cannot be read. */
function pointOf({ line = 1, column = 1 }: Origin): Range {
  return { line: line - 1, column: column - 1, endLine: line - 1, endColumn: column - 1 };
}

/**
 * Problems as diagnostics of the files they lie in.
 *
 * @param file recipe.yaml, absolute; `text` is what stands in it
 */
export function diagnosticsOf(problems: readonly ConfigProblem[], file: string, text: string): RecipeDiagnostic[] {
  const places = yamlPlaces(text);
  const context = { schema, places, folderName: basename(join(file, "..")) };
  return problems.map((problem) => {
    const isCode = problem.code.startsWith("RECIPE_CODE") && problem.origin !== null;
    const { place, range } = isCode
      ? { place: null, range: pointOf(problem.origin as Origin) }
      : placed(problem, places);
    return {
      code: problem.code,
      severity: severity(problem),
      message: problem.sentence,
      next: problem.next,
      file: isCode ? resolve((problem.origin as Origin).source) : file,
      range,
      key: problem.path === "" ? null : problem.path,
      fixes: quickFixes(context, problem, place),
    };
  });
}

/** Answers recipe/check. @throws RECIPE_NOT_FOUND */
export async function checkEditedRecipe(request: DaemonRequest<"recipe/check">): Promise<DaemonResult<"recipe/check">> {
  const { folder, text, profile, overrides } = request;
  const { file } = await findRecipe(folder);
  const checked = await checkRecipe(folder, {
    text,
    profile,
    overrides: Object.entries(overrides).map(([key, value]) => `--${key}=${value}`),
    environment: process.env,
    importCode: false,
    modelFiles: true,
    network: false,
  });
  const shown = text ?? decodeConfig(await readFile(file)) ?? "";
  return { diagnostics: diagnosticsOf(checked.problems, file, shown) };
}

/** Answers recipe/values: nothing while the text has errors that leave no configuration. @throws RECIPE_NOT_FOUND */
export async function valuesInForce(request: DaemonRequest<"recipe/values">): Promise<DaemonResult<"recipe/values">> {
  const { effective, origins } = await loadConfig(request.folder, { text: request.text, environment: process.env });
  if (effective === null) return { values: [] };
  const values = [...origins].map(([key, origin]) => ({
    key,
    value: valueAt(effective, key.split(".")),
    origin: describeOrigin(origin),
  }));
  return { values };
}

function valueAt(tree: unknown, path: readonly string[]): unknown {
  return path.reduce((value, key) => (value as Record<string, unknown> | undefined)?.[key], tree);
}
