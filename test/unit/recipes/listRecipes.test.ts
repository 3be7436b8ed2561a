import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listRecipes } from "../../../agent-daemon/src/recipes/listRecipes.ts";
import { minimalRecipe, temporaryFolder } from "../../support/recipeFolder.ts";

describe("the list of recipes", () => {
  it("has those of the folders, with name, first words and problems, and then those that are shipped", async () => {
    const folder = await temporaryFolder({
      "one/recipe.yaml": minimalRecipe,
      "one/README.md": "# One\n\nDoes [one](x.md)\nthing.\n\nMore.\n",
      "deep/er/two/recipe.yaml": "name: two\nobjectiv: 1\n",
      "node_modules/three/recipe.yaml": minimalRecipe,
    });
    const listed = await listRecipes([folder, folder]);
    expect(listed.filter(({ shipped }) => !shipped)).toEqual([
      {
        folder: join(folder, "deep/er/two"),
        name: "two",
        description: "",
        shipped: false,
        problems: expect.any(Number),
      },
      { folder: join(folder, "one"), name: "minimal", description: "Does one thing.", shipped: false, problems: 0 },
    ]);
    expect(listed[0]!.problems).toBeGreaterThan(0);
    expect(listed.filter(({ shipped }) => shipped).map(({ name }) => name)).toEqual([
      "arithmetic-grpo",
      "custom-objective",
    ]);
  });
});
