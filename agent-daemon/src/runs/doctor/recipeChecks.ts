// What a recipe needs beside the machine: its model, whole, and TypeScript for the check of its code.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { RecipeConfig } from "../../../../protocol/recipe.ts";
import { cacheFolder } from "../../recipes/cacheFolder.ts";
import { checkRecipe } from "../../recipes/checkRecipe.ts";
import { checkTypes } from "../../recipes/checkTypes.ts";
import { createRecipe } from "../../recipes/createRecipe.ts";
import { loadConfig } from "../../recipes/loadConfig.ts";
import { findRecipeCode } from "../../recipes/loadRecipe.ts";
import { listEntries, verifyEntry } from "../../recipes/modelCache.ts";
import { modelSources, parseModelSource } from "../../recipes/modelSource.ts";
import { ensureModel } from "../../recipes/models.ts";
import type { DoctorContext, Finding } from "./finding.ts";

/** Files above this are not hashed here: that alone would take longer than everything else. */
const mostHashed = 3e9;

/** Path of the recipe's model where it is on this machine; nothing is fetched. */
export async function presentModel(
  { model }: Pick<RecipeConfig, "model">,
  { recipe, environment }: DoctorContext,
): Promise<string | null> {
  if (parseModelSource(model.source).kind === "path")
    return (await ensureModel(model, { folder: (await loadConfig(recipe ?? ".")).folder })).path;
  const entry = (await listEntries(cacheFolder(environment), "models")).find((each) => each.source === model.source);
  if (entry === undefined) return null;
  const names = await readdir(entry.folder);
  const gguf = names.find((name) => name.endsWith(".gguf"));
  return names.includes("config.json") || gguf === undefined ? entry.folder : join(entry.folder, gguf);
}

/** The model of the recipe, or the one that new recipes have: present, and the bytes that were fetched. */
export async function checkModel(context: DoctorContext): Promise<Finding> {
  const effective =
    context.recipe === null ? null : (await loadConfig(context.recipe, { environment: context.environment })).effective;
  const source = effective?.model.source ?? Object.keys(modelSources)[0]!;
  if (effective !== null && parseModelSource(source).kind === "path")
    return { status: "ok", detail: `${await presentModel(effective, context)} is there`, next: null };
  const entries = await listEntries(cacheFolder(context.environment), "models");
  const entry = entries.find((each) => each.source === source);
  if (entry === undefined) {
    return {
      status: "warning",
      detail: `${source} is not on this machine yet; a run fetches it first.`,
      next: `Run \`rollscope models fetch ${source}\` while there is a network.`,
    };
  }
  if (entry.bytes > mostHashed)
    return {
      status: "ok",
      detail: `${source} is there (too large to be hashed here: rollscope models verify)`,
      next: null,
    };
  const changed = await verifyEntry(entry);
  return changed.length === 0
    ? { status: "ok", detail: `${source}: every file has the hash that it was fetched with`, next: null }
    : {
        status: "failed",
        detail: `${source} has changed since it was fetched: ${changed.join(", ")}.`,
        next: `Delete ${entry.folder} and run \`rollscope models fetch ${source}\`.`,
      };
}

/** Checks the recipe's code, or that of a new recipe. */
export async function checkTypeScript({ recipe, scratch, environment }: DoctorContext): Promise<Finding> {
  const folder = recipe === null ? createRecipe("blank", scratch, "types").folder : recipe;
  const checked = await checkRecipe(folder, { environment, network: false });
  const errors = recipe === null ? [] : checked.problems.filter(({ severity }) => severity === "error");
  const types = await checkTypes(await findRecipeCode(checked.folder));
  if (errors.length > 0) {
    const [first] = errors;
    return {
      status: "failed",
      detail: `${checked.file} has ${errors.length} problem(s): ${first?.sentence ?? ""}`,
      next: `Run \`rollscope check ${checked.file}\`.`,
    };
  }
  if (types.kind === "skipped")
    return {
      status: "warning",
      detail: `Types of recipe.ts are not checked: ${types.because}.`,
      next: "The editor checks them; `npm install typescript` beside the recipe lets the command line do so too.",
    };
  const [problem] = types.problems;
  if (problem !== undefined)
    return {
      status: "failed",
      detail: `${problem.file}:${problem.line}: ${problem.sentence}`,
      next: "Correct the line.",
    };
  return {
    status: "ok",
    detail: recipe === null ? "a new recipe type-checks" : "recipe.yaml and recipe.ts have no problem",
    next: null,
  };
}
