// The copy of a recipe in the folder of its run: what the files said when the run began, for people to read and as a stand-in
// when the recipe's own folder is gone. Large files (task data) and what is not the recipe's own stay where they are.
import { cpSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";
import { type RunFolder, writeWhole } from "./runFolder.ts";

const largestFile = 10_000_000;
const notCopied = new Set(["node_modules", ".git", "runs", "dist", ".cache"]);

const sourceSchema = z.object({ folder: z.string() });

const sourceFile = (folder: RunFolder) => join(folder.recipe, "source.json");

export function copyRecipe(folder: RunFolder, recipeFolder: string): void {
  const runs = dirname(folder.path);
  for (const name of readdirSync(recipeFolder)) {
    if (notCopied.has(name) || join(recipeFolder, name) === runs) continue;
    cpSync(join(recipeFolder, name), join(folder.recipe, name), {
      recursive: true,
      filter: (path) => {
        // The folder of runs may lie inside the recipe's, under any name; a link may lead nowhere.
        const found = statSync(path, { throwIfNoEntry: false });
        if (found === undefined || path === runs) return false;
        return found.isDirectory() || (found.isFile() && found.size <= largestFile);
      },
    });
  }
  writeWhole(sourceFile(folder), `${JSON.stringify({ folder: recipeFolder })}\n`);
}

/**
 * The folder that a resume loads the recipe from: where it was, or the copy when that is gone.
 *
 * @throws RUN_FOLDER_INVALID
 */
export function readRecipeFolder(folder: RunFolder): string {
  try {
    const source = sourceSchema.parse(JSON.parse(readFileSync(sourceFile(folder), "utf8"))).folder;
    return existsSync(join(source, "recipe.yaml")) ? source : folder.recipe;
  } catch (error) {
    throw new RollscopeError("RUN_FOLDER_INVALID", `${sourceFile(folder)} does not say where the recipe is.`, {
      next: "Restore the file, or start a new run.",
      cause: error,
      at: { path: sourceFile(folder) },
    });
  }
}
