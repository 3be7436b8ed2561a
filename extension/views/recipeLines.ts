// Lines of the Recipes view: those of the window, then those that come with Rollscope. Pure.
import type { DaemonResult } from "../../protocol/daemonMethods.ts";
import type { TreeLine } from "./treeLine.ts";

type Recipe = DaemonResult<"recipes/list">["recipes"][number];

export function recipeLines(recipes: readonly Recipe[]): TreeLine[] {
  const own = recipes.filter(({ shipped }) => !shipped).map(recipeLine);
  const shipped = recipes.filter((recipe) => recipe.shipped).map(recipeLine);
  if (shipped.length === 0) return own;
  // With nothing of its own the window shows how to make a recipe, which an empty list does.
  const group: TreeLine = {
    id: "recipes.shipped",
    label: "Shipped with Rollscope",
    icon: "package",
    children: shipped,
    expanded: own.length === 0,
  };
  return [...own, group];
}

function recipeLine(recipe: Recipe): TreeLine {
  const wrong = recipe.problems > 0;
  // First sentence of its README.
  const description = recipe.description.replaceAll("`", "");
  const counted = `${recipe.problems} ${recipe.problems === 1 ? "problem" : "problems"}`;
  return {
    id: `recipe:${recipe.folder}`,
    label: recipe.name,
    description: wrong ? counted : description,
    icon: wrong ? "warning" : "beaker",
    ...(wrong ? { color: "charts.yellow" } : {}),
    tooltip: [recipe.name, ...(description === "" ? [] : [description]), recipe.folder],
    context: recipe.shipped ? "recipe.shipped" : "recipe.own",
    command: { id: "rollscope.openRecipe", arguments: [{ folder: recipe.folder }] },
    folder: recipe.folder,
  };
}
