// Makes a recipe's folder from a template: files that run at once, with types and schema that an editor finds without a network.
// Never writes over anything, and leaves nothing behind when it fails.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { parse } from "yaml";
import { RollscopeError } from "../../../protocol/errors.ts";
import { recipeJsonSchema } from "../../../protocol/recipeJsonSchema.ts";
import { shippedPath } from "./shippedFiles.ts";

export const recipeTemplates = ["grpo", "blank"] as const;
export type RecipeTemplate = (typeof recipeTemplates)[number];

/** The name that the templates' files have. */
const placeholder = "new-recipe";
const named = ["recipe.yaml", "README.md"];

/**
 * Makes `folder`/`name`.
 *
 * @returns absolute path of the recipe, and its files relative to it
 * @throws RECIPE_NAME_INVALID, RECIPE_FOLDER_TAKEN, RECIPE_FOLDER_UNWRITABLE
 */
export function createRecipe(
  template: RecipeTemplate,
  folder: string,
  name: string,
): { folder: string; files: string[] } {
  if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(name)) {
    throw new RollscopeError("RECIPE_NAME_INVALID", `${JSON.stringify(name)} cannot be the name of a recipe.`, {
      next: "Use letters, digits, dots, dashes and underscores, beginning with a letter or digit; at most 64.",
      at: { name },
    });
  }
  const target = resolve(folder, name);
  if (existsSync(target) && !isEmptyFolder(target)) {
    throw new RollscopeError("RECIPE_FOLDER_TAKEN", `${target} is there already, and not empty.`, {
      next: "Choose another name, or another folder.",
      at: { path: target },
    });
  }
  const source = shippedPath("recipes", "templates", template);
  const draft = `${target}.new-${process.pid}`;
  try {
    mkdirSync(dirname(target), { recursive: true });
    cpSync(source, draft, { recursive: true });
    // A name such as 007 or null would be no text without quotes.
    const written = parse(name) === name ? name : JSON.stringify(name);
    for (const file of named) {
      const text = readFileSync(join(draft, file), "utf8");
      writeFileSync(join(draft, file), text.replaceAll(placeholder, written));
    }
    writeTypes(draft);
    if (existsSync(target)) rmSync(target, { recursive: true });
    renameSync(draft, target);
  } catch (cause) {
    if (existsSync(draft)) rmSync(draft, { recursive: true, force: true });
    throw new RollscopeError("RECIPE_FOLDER_UNWRITABLE", `The recipe cannot be written to ${target}.`, {
      next: "Choose a folder that you may write to, on a disk with room.",
      cause,
      at: { path: target },
    });
  }
  return { folder: target, files: filesUnder(target) };
}

/** What an editor needs to know recipe.ts and recipe.yaml; written anew it follows a newer version. */
function writeTypes(folder: string): void {
  const own = join(folder, ".rollscope");
  mkdirSync(join(own, "types"), { recursive: true });
  cpSync(shippedPath("recipes", "templates", "types", "recipe.d.ts"), join(own, "types", "recipe.d.ts"));
  writeFileSync(join(own, "recipe.schema.json"), `${JSON.stringify(recipeJsonSchema(), null, 1)}\n`);
  cpSync(shippedPath("recipes", "templates", "tsconfig.template.json"), join(folder, "tsconfig.json"));
  writeFileSync(join(folder, ".gitignore"), "runs/\n");
}

function isEmptyFolder(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      relative(folder, join(entry.parentPath ?? entry.path, entry.name))
        .split(sep)
        .join("/"),
    )
    .sort();
}
