// `rollscope new TEMPLATE NAME`: makes a recipe's folder that runs at once.
import { relative } from "node:path";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { createRecipe, type RecipeTemplate, recipeTemplates } from "../../recipes/createRecipe.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";

/** @param words template and name, or the name alone: then the template is the first one */
export async function newCommand(words: readonly string[], invocation: string, output: Output): Promise<ExitName> {
  const [first = "", second] = words;
  const template = second === undefined ? recipeTemplates[0] : first;
  const name = second ?? first;
  if (!(recipeTemplates as readonly string[]).includes(template)) {
    throw new RollscopeError("COMMAND_INVALID", `There is no template ${template}.`, {
      next: `Templates: ${recipeTemplates.join(", ")}.`,
      at: { argument: template },
    });
  }
  const created = createRecipe(template as RecipeTemplate, process.cwd(), name);
  output.document({ template, ...created });
  if (output.json) return "ok";
  const path = relative(process.cwd(), created.folder);
  output.lines([
    `${path}/ holds ${created.files.filter((file) => !file.startsWith(".")).join(", ")}.`,
    "",
    `Try it:         ${invocation} run ${path} --profile quick`,
    `While you edit: ${invocation} dev ${path}`,
  ]);
  return "ok";
}
