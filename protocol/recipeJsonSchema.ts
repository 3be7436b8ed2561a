// The JSON Schema of recipe.yaml, generated from the zod schema. Editors use the file that scripts/generate-schema writes.
import { z } from "zod";
import { recipeSchema } from "./recipe.ts";

/** JSON Schema (draft 2020-12) of what a person may write: keys with a default are optional. */
export function recipeJsonSchema(): Record<string, unknown> {
  return {
    $id: "rollscope-recipe",
    title: "Rollscope recipe",
    ...z.toJSONSchema(recipeSchema, { io: "input", unrepresentable: "any" }),
  };
}
