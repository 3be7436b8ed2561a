// Methods about recipes: list, check, values in force, create. None of them runs a recipe's code or fetches anything.
import { createRecipe } from "../../recipes/createRecipe.ts";
import { checkEditedRecipe, valuesInForce } from "../../recipes/diagnostics.ts";
import { listRecipes } from "../../recipes/listRecipes.ts";
import type { CreateMethods } from "./methodTypes.ts";

export const recipeMethods: CreateMethods = () => ({
  handlers: {
    "recipes/list": async ({ folders }) => ({ recipes: await listRecipes(folders) }),
    "recipe/check": checkEditedRecipe,
    "recipe/values": valuesInForce,
    "recipe/create": async ({ template, folder, name }) => createRecipe(template, folder, name),
  },
});
