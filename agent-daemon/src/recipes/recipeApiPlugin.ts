// How a bundled recipe reaches the product: `rollscope/recipe` becomes the very module that runs here, handed over in
// memory, so that errors and verifiers have one identity and no path to an installation is needed.
import type { Plugin } from "esbuild";
import * as api from "./api.ts";

const slot = Symbol.for("rollscope.recipe");

/** Puts the API where bundled recipes look for it. */
export function offerRecipeApi(): void {
  (globalThis as Record<symbol, unknown>)[slot] = api;
}

export const recipeApiPlugin: Plugin = {
  name: "rollscope-recipe-api",
  setup(build) {
    build.onResolve({ filter: /^rollscope\/recipe$/ }, () => ({ path: "rollscope/recipe", namespace: "rollscope" }));
    build.onLoad({ filter: /.*/, namespace: "rollscope" }, () => {
      const names = Object.keys(api).join(", ");
      return { contents: `export const { ${names} } = globalThis[Symbol.for("rollscope.recipe")];`, loader: "js" };
    });
  },
};
