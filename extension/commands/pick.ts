// Choosing a run or a recipe from a list, or taking the one that the command was started on.
import * as vscode from "vscode";
import type { RunSummary } from "../../protocol/runView.ts";
import { refuse } from "../daemon/fault.ts";
import type { Recipe } from "../recipes.ts";
import { runIcon, runLine } from "../runs/describeRun.ts";
import type { Services } from "../services.ts";

interface RunItem extends vscode.QuickPickItem {
  readonly run: RunSummary;
}

/** A line of a view, or an object of another command, may name the run's folder. */
export function folderOf(given: unknown): string | null {
  if (typeof given !== "object" || given === null || !("folder" in given)) return null;
  return typeof given.folder === "string" ? given.folder : null;
}

function runItem(run: RunSummary): RunItem {
  return { label: `$(${runIcon(run.status)}) ${run.recipe}`, description: runLine(run), detail: run.folder, run };
}

/**
 * The run of the line, the only one that fits, or the one that is picked; undefined: dismissed.
 *
 * @throws RUN_NOT_FOUND none fits
 */
export async function pickRun(
  services: Services,
  given: unknown,
  title: string,
  fits: (run: RunSummary) => boolean,
  noneNext: string,
): Promise<RunSummary | undefined> {
  await services.runs.ready();
  const folder = folderOf(given);
  if (folder !== null) {
    const named = services.runs.get(folder);
    if (named !== undefined) return named;
    refuse("RUN_NOT_FOUND", `The run in ${folder} is not known any more.`, "Refresh the Runs view.");
  }
  const runs = services.runs.all().filter(fits);
  if (runs.length === 0) refuse("RUN_NOT_FOUND", "There is no run for this.", noneNext);
  if (runs.length === 1) return runs[0];
  const picked = await vscode.window.showQuickPick(runs.map(runItem), { title, matchOnDetail: true });
  return picked?.run;
}

export async function pickRuns(
  services: Services,
  title: string,
  chosen: readonly string[],
): Promise<readonly RunSummary[] | undefined> {
  await services.runs.ready();
  const items = services.runs.all().map((run) => ({ ...runItem(run), picked: chosen.includes(run.folder) }));
  if (items.length === 0) refuse("RUN_NOT_FOUND", "There are no runs yet.", "Start one with Rollscope: Run Recipe.");
  const picked = await vscode.window.showQuickPick(items, { title, canPickMany: true, matchOnDetail: true });
  return picked === undefined || picked.length === 0 ? undefined : picked.map(({ run }) => run);
}

/** @throws RECIPE_NOT_FOUND neither the window nor the payload has one */
export async function pickRecipe(services: Services, given: unknown, title: string): Promise<Recipe | undefined> {
  const recipes = await services.recipes.list();
  const folder = folderOf(given);
  if (folder !== null) {
    const named = recipes.find((recipe) => recipe.folder === folder);
    return named ?? { folder, name: folder, description: "", shipped: false, problems: 0 };
  }
  if (recipes.length === 0) {
    refuse("RECIPE_NOT_FOUND", "No recipe was found in this window.", "Make one with Rollscope: New Recipe.");
  }
  const item = (recipe: Recipe) => ({
    label: `$(${recipe.problems > 0 ? "warning" : "beaker"}) ${recipe.name}`,
    description: recipe.problems > 0 ? `${recipe.problems} ${recipe.problems === 1 ? "problem" : "problems"}` : "",
    detail: recipe.description === "" ? recipe.folder : recipe.description,
    recipe,
  });
  const section = (label: string, of: readonly Recipe[]) =>
    of.length === 0 ? [] : [{ label, kind: vscode.QuickPickItemKind.Separator, recipe: null }, ...of.map(item)];
  const picked = await vscode.window.showQuickPick(
    [
      ...section(
        "This window",
        recipes.filter(({ shipped }) => !shipped),
      ),
      ...section(
        "Shipped with Rollscope",
        recipes.filter(({ shipped }) => shipped),
      ),
    ],
    { title, matchOnDetail: true, placeHolder: "Recipe to run" },
  );
  return picked?.recipe ?? undefined;
}
