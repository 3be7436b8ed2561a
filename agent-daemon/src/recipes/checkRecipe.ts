// Everything that can be known to be wrong with a recipe before it runs: configuration, code, types, tasks. What `rollscope
// check` prints, and what a run asks first. The recipe's code is compiled and, where that is allowed, imported; its functions are
// not called.
import { RollscopeError } from "../../../protocol/errors.ts";
import { checkTypes } from "./checkTypes.ts";
import type { ConfigProblem, Origin } from "./configProblem.ts";
import { originOf } from "./configResolve.ts";
import { type ConfigOptions, type LoadedConfig, loadConfig } from "./loadConfig.ts";
import { bundleRecipe, type CodeProblem, findRecipeCode, loadRecipe } from "./loadRecipe.ts";
import { loadTasks } from "./loadTasks.ts";
import { namedSource, parseModelSource } from "./modelSource.ts";
import { ensureModel } from "./models.ts";
import { checkDefinitionRules } from "./objectiveRules.ts";

export interface CheckOptions extends ConfigOptions {
  /** Type-check the code too; needs TypeScript and a second or two. */
  readonly types?: boolean;
  /** false: the recipe's code is compiled and not run; who must not load it cannot know which objective it brings. */
  readonly importCode?: boolean;
  /** Look whether the model of a local path is there. A run that is about to load it finds out by itself. */
  readonly modelFiles?: boolean;
  /** false: files that would have to be fetched first are not looked into. */
  readonly network?: boolean;
}

function fromError(error: unknown, path: string, origin: Origin | null): ConfigProblem {
  if (!(error instanceof RollscopeError)) throw error;
  return { code: error.code, severity: "error", path, sentence: error.message, next: error.next, origin };
}

function fromCode(problem: CodeProblem): ConfigProblem {
  return {
    code: "RECIPE_CODE_INVALID",
    severity: "error",
    path: "",
    sentence: problem.sentence,
    next: "Correct the line.",
    origin: { layer: "recipe", source: problem.file, line: problem.line, column: problem.column },
  };
}

async function codeProblems(
  { folder, config, origins }: LoadedConfig,
  { types = false, importCode = true }: CheckOptions,
): Promise<ConfigProblem[]> {
  const file = await findRecipeCode(folder);
  const bundled = await bundleRecipe(file);
  if ("problems" in bundled) return bundled.problems.map(fromCode);
  const problems: ConfigProblem[] = [];
  if (types) {
    const checked = await checkTypes(file);
    if (checked.kind === "checked") problems.push(...checked.problems.map(fromCode));
    else
      problems.push({
        code: "RECIPE_CODE_INVALID",
        severity: "note",
        path: "",
        sentence: `Types were not checked: ${checked.because}.`,
        next: "Nothing needs to be done.",
        origin: null,
      });
  }
  if (!importCode) return problems;
  const { definition } = await loadRecipe(folder);
  if (config === null) return problems;
  const findings = checkDefinitionRules(config, definition.objective);
  problems.push(...findings.map((finding) => ({ ...finding, origin: originOf(origins, finding.path.split(".")) })));
  return problems;
}

/**
 * Checks a recipe folder and returns its configuration with every problem found.
 *
 * @throws RECIPE_NOT_FOUND when there is no recipe.yaml
 */
export async function checkRecipe(path: string, options: CheckOptions = {}): Promise<LoadedConfig> {
  const loaded = await loadConfig(path, options);
  const { config, folder, origins } = loaded;
  const found: ConfigProblem[] = [...loaded.problems];
  const collect = async (key: string, check: () => Promise<ConfigProblem[]>) => {
    try {
      found.push(...(await check()));
    } catch (error) {
      found.push(fromError(error, key, key === "" ? null : originOf(origins, key.split("."))));
    }
  };
  await collect("", () => codeProblems(loaded, options));
  if (config !== null) {
    await collect("data.train", async () => {
      const remote = [config.data.train, config.data.heldOut].some((name) => name?.startsWith("hf://"));
      if (!remote || options.network !== false) await loadTasks(folder, config);
      return [];
    });
    await collect("model.source", async () => {
      const source = parseModelSource(config.model.source);
      if (source.kind === "named") namedSource(source.name);
      if (source.kind === "path" && options.modelFiles === true) await ensureModel(config.model, { folder });
      return [];
    });
  }
  const failed = found.some((problem) => problem.severity === "error");
  return { ...loaded, problems: found, config: failed ? null : config };
}

/** The error of a recipe that must not start; null when nothing stands in its way. */
export function recipeError({ file, problems }: Pick<LoadedConfig, "file" | "problems">): RollscopeError | null {
  const errors = problems.filter((problem) => problem.severity === "error");
  if (errors.length === 0) return null;
  const list = errors.map(({ path, sentence, next }) => `${path === "" ? "" : `${path}: `}${sentence} ${next}`);
  return new RollscopeError("RECIPE_INVALID", `${file} has ${errors.length} problem(s).\n${list.join("\n")}`, {
    next: `Correct them; rollscope check ${file} lists them with file and line.`,
    at: { file, problems: errors.length },
  });
}
