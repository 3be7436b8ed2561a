// config.resolved.yaml: the configuration a run really had, each value with the place it came from, and readable again, so
// that a resume has the same one whatever the recipe says by then.
import { readFileSync } from "node:fs";
import { Document, isMap, isScalar, type Node, parse } from "yaml";
import { RollscopeError } from "../../../protocol/errors.ts";
import { type RecipeConfig, recipeSchema } from "../../../protocol/recipe.ts";
import { describeOrigin, type Origin } from "../recipes/configProblem.ts";
import { type RunFolder, writeWhole } from "./runFolder.ts";

export function writeConfig(folder: RunFolder, config: RecipeConfig, origins: ReadonlyMap<string, Origin>): void {
  const document = new Document(config);
  document.commentBefore =
    " The configuration of this run. Comments say where a value was written; the others are defaults.";
  annotate(document.contents as Node | null, [], origins);
  writeWhole(folder.config, document.toString({ lineWidth: 0 }));
}

function annotate(node: Node | null, path: readonly string[], origins: ReadonlyMap<string, Origin>): void {
  if (!isMap(node)) {
    const origin = origins.get(path.join("."));
    if (node !== null && origin !== undefined && origin.layer !== "default") {
      const comment = ` ${describeOrigin(origin)}`;
      if (isScalar(node)) node.comment = comment;
      else node.commentBefore = comment;
    }
    return;
  }
  for (const pair of node.items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : String(pair.key);
    annotate(pair.value as Node | null, [...path, key], origins);
  }
}

/** @throws RUN_FOLDER_INVALID */
export function readConfig(folder: RunFolder): RecipeConfig {
  try {
    return recipeSchema.parse(parse(readFileSync(folder.config, "utf8")));
  } catch (error) {
    throw new RollscopeError("RUN_FOLDER_INVALID", `${folder.config} is not the configuration of a run.`, {
      next: "Restore the file, or start a new run.",
      cause: error,
      at: { path: folder.config },
    });
  }
}
