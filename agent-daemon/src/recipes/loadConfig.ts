// Reads the configuration of a recipe folder: defaults < recipe < profile < environment < command line. Collects every
// problem instead of stopping at the first, and never loads the recipe's code or data.
import { readFile, stat } from "node:fs/promises";
import { basename, join, relative, resolve } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";
import { type RecipeConfig, recipeSchema } from "../../../protocol/recipe.ts";
import { nearestName } from "./configKeys.ts";
import { type ConfigLayer, createLayer, isConfigMap, joinPath } from "./configLayer.ts";
import { readArgumentLayer, readEnvironmentLayer } from "./configOverrides.ts";
import type { ConfigProblem, Origin } from "./configProblem.ts";
import { originOf, resolveLayers } from "./configResolve.ts";
import { checkRules, type RuleFinding } from "./configRules.ts";
import { decodeConfig, readYamlLayer } from "./configYaml.ts";
import { checkObjectiveRules } from "./objectiveRules.ts";

export interface ConfigOptions {
  readonly profile?: string | null;
  /** Arguments of the form --path.to.key=value, in order. */
  readonly overrides?: readonly string[];
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Folder that run folders are made in, as an argument gave it. */
  readonly outputDir?: string | null;
  /** Text of recipe.yaml as an editor holds it; null or absent: the file is read. */
  readonly text?: string | null;
}

export interface LoadedConfig {
  /** Absolute path of the recipe's folder. */
  readonly folder: string;
  /** Path of recipe.yaml, as it is shown. */
  readonly file: string;
  /** null when a problem of severity error is listed. */
  readonly config: RecipeConfig | null;
  /** What the schema accepted, also when rules between keys are broken or keys are unknown. */
  readonly effective: RecipeConfig | null;
  /** Of every leaf, by dotted path. */
  readonly origins: ReadonlyMap<string, Origin>;
  readonly problems: readonly ConfigProblem[];
  readonly profiles: readonly string[];
  /** Absolute path of the folder that run folders are made in. */
  readonly outputDir: string;
  readonly outputDirOrigin: Origin;
}

/** The folder of a recipe, from a path to it or to its recipe.yaml. */
export async function findRecipe(path: string): Promise<{ folder: string; file: string }> {
  const absolute = resolve(path);
  const found = await stat(absolute).catch(() => null);
  const isFile = found?.isFile() === true;
  const folder = isFile ? resolve(absolute, "..") : absolute;
  const file = isFile ? absolute : join(absolute, "recipe.yaml");
  if (isFile ? basename(absolute) !== "recipe.yaml" : !(await stat(file).catch(() => null))?.isFile()) {
    throw new RollscopeError("RECIPE_NOT_FOUND", `There is no recipe.yaml at ${path}.`, {
      next: "Name a folder that holds recipe.yaml, such as recipes/arithmetic-grpo.",
      at: { path },
    });
  }
  return { folder, file };
}

function shown(file: string): string {
  const inside = relative(process.cwd(), file);
  return inside.startsWith("..") ? file : inside;
}

/** The part of the recipe's layer below profiles.<name>, as a layer of its own. */
function profileLayer(recipe: ConfigLayer, name: string): ConfigLayer {
  const layer = createLayer("profile");
  const profiles = recipe.tree["profiles"];
  const tree = isConfigMap(profiles) ? profiles[name] : undefined;
  if (isConfigMap(tree)) Object.assign(layer.tree, tree);
  const prefix = joinPath(["profiles", name, ""]);
  for (const [path, origin] of recipe.origins)
    if (path.startsWith(prefix))
      layer.origins.set(path.slice(prefix.length), { ...origin, layer: "profile", profile: name });
  return layer;
}

function readRecipe(bytes: Uint8Array, file: string): ReturnType<typeof readYamlLayer> {
  const text = decodeConfig(bytes);
  if (text !== null) return readYamlLayer(text, file);
  // What can be read is read, so that the line can be named.
  const before = new TextDecoder().decode(bytes).split("\uFFFD")[0] ?? "";
  const lines = before.split("\n");
  const origin: Origin = {
    layer: "recipe",
    source: file,
    line: lines.length,
    column: (lines.at(-1)?.length ?? 0) + 1,
  };
  const sentence = "The file is not UTF-8: the bytes here are no character.";
  const next = "Save it as UTF-8.";
  return {
    layer: createLayer("recipe"),
    problems: [{ code: "CONFIG_SYNTAX", severity: "error", path: "", sentence, next, origin }],
  };
}

function outputDirOf(options: ConfigOptions): { outputDir: string; outputDirOrigin: Origin } {
  const variable = options.environment?.["ROLLSCOPE_OUTPUT_DIR"];
  if (options.outputDir) {
    const outputDirOrigin: Origin = { layer: "command line", source: `--output-dir=${options.outputDir}` };
    return { outputDir: resolve(options.outputDir), outputDirOrigin };
  }
  if (variable) {
    return { outputDir: resolve(variable), outputDirOrigin: { layer: "environment", source: "ROLLSCOPE_OUTPUT_DIR" } };
  }
  return { outputDir: resolve("runs"), outputDirOrigin: { layer: "default", source: "" } };
}

/**
 * Resolves the configuration of a recipe.
 *
 * @param path the recipe's folder, or its recipe.yaml
 * @throws RECIPE_NOT_FOUND; everything else is listed in `problems`
 */
export async function loadConfig(path: string, options: ConfigOptions = {}): Promise<LoadedConfig> {
  const { folder, file: absoluteFile } = await findRecipe(path);
  const file = shown(absoluteFile);
  const recipe =
    options.text == null ? readRecipe(await readFile(absoluteFile), file) : readYamlLayer(options.text, file);
  const environment = readEnvironmentLayer(options.environment ?? {});
  const commandLine = readArgumentLayer(options.overrides ?? []);
  const problems: ConfigProblem[] = [...recipe.problems, ...environment.problems, ...commandLine.problems];

  const declared = recipe.layer.tree["profiles"];
  const profiles = isConfigMap(declared) ? Object.keys(declared) : [];
  const layers = [recipe.layer];
  if (options.profile != null) {
    if (profiles.includes(options.profile)) layers.push(profileLayer(recipe.layer, options.profile));
    else problems.push(unknownProfile(options.profile, profiles));
  }
  layers.push(environment.layer, commandLine.layer);

  const resolved = resolveLayers(recipeSchema, layers, file);
  // After a syntax error the rest of the file may be missing; what follows from that would only mislead.
  if (recipe.problems.length === 0) problems.push(...resolved.problems);
  for (const name of profiles) {
    if (name === options.profile) continue;
    const other = resolveLayers(recipeSchema, [recipe.layer, profileLayer(recipe.layer, name)], file);
    problems.push(...other.problems.filter((problem) => problem.origin?.layer === "profile"));
  }
  if (resolved.known !== null) {
    const found = ruleProblems(resolved.known, resolved.origins, file, layers);
    problems.push(...excuseOverridden(found, layers, file));
  }
  const failed = problems.some((problem) => problem.severity === "error");
  return {
    folder,
    file,
    config: failed ? null : resolved.config,
    effective: resolved.known,
    origins: resolved.origins,
    problems,
    profiles,
    ...outputDirOf(options),
  };
}

function ruleProblems(
  config: RecipeConfig,
  leaves: ReadonlyMap<string, Origin>,
  file: string,
  layers: readonly ConfigLayer[],
): ConfigProblem[] {
  const places = new Map<string, Origin>();
  for (const layer of layers) for (const [key, origin] of layer.origins) places.set(key, origin);
  for (const [key, origin] of leaves) if (origin.layer !== "default") places.set(key, origin);
  const written = [...leaves].filter(([, origin]) => origin.layer !== "default").map(([key]) => key);
  const isWritten = (path: string) => written.some((key) => key === path || key.startsWith(`${path}.`));
  const whole: Origin = { layer: "recipe", source: file, line: 1, column: 1 };
  const findings: RuleFinding[] = [...checkRules(config, isWritten), ...checkObjectiveRules(config, isWritten)];
  return findings.map((finding) => ({ ...finding, origin: originOf(places, finding.path.split(".")) ?? whole }));
}

/** A key of the recipe that only what was laid over it leaves unread is no mistake of anybody. */
function excuseOverridden(
  problems: readonly ConfigProblem[],
  layers: readonly ConfigLayer[],
  file: string,
): ConfigProblem[] {
  const isRecipes = ({ code, origin }: ConfigProblem) => code === "CONFIG_KEY_UNREAD" && origin?.layer === "recipe";
  if (layers.slice(1).every(({ origins }) => origins.size === 0) || !problems.some(isRecipes)) return [...problems];
  const [recipe] = layers as readonly [ConfigLayer];
  const alone = resolveLayers(recipeSchema, [recipe], file);
  if (alone.known === null) return [...problems];
  const unread = new Set(
    ruleProblems(alone.known, alone.origins, file, [recipe])
      .filter(isRecipes)
      .map(({ path }) => path),
  );
  return problems.map((problem) =>
    isRecipes(problem) && !unread.has(problem.path)
      ? { ...problem, severity: "note", next: "Nothing needs to be done: what was laid over the recipe makes it so." }
      : problem,
  );
}

function unknownProfile(name: string, profiles: readonly string[]): ConfigProblem {
  const nearest = nearestName(name, profiles);
  return {
    code: "CONFIG_PROFILE_UNKNOWN",
    severity: "error",
    path: `profiles.${name}`,
    sentence: `There is no profile ${name}.`,
    next:
      nearest !== null
        ? `Did you mean ${nearest}?`
        : profiles.length > 0
          ? `Known: ${profiles.join(", ")}.`
          : "The recipe has no profiles.",
    origin: { layer: "command line", source: `--profile=${name}` },
  };
}
