import { expect, it } from "vitest";
import { loadConfig } from "../../../../agent-daemon/src/recipes/loadConfig.ts";
import { temporaryFolder } from "../../../support/recipeFolder.ts";

const recipe = `
name: sums
model: { source: ./model }
data: { train: tasks.jsonl, heldOutCount: 4 }
objective: { kind: grpo, aggregation: token-mean }
advantages: { estimator: group_normalized }
evaluation: { maxNewTokens: 8 }
`;

it("notes a recipe's key that only an override leaves unread, and still refuses one that the recipe itself does", async () => {
  const folder = await temporaryFolder({ "recipe.yaml": recipe, "tasks.jsonl": "{}\n" });
  const off = ["--evaluation.atStart=false", "--evaluation.atEnd=false", "--evaluation.everySteps=null"];
  const { config, problems } = await loadConfig(folder, { overrides: off });
  expect(config).not.toBeNull();
  expect(problems).toMatchObject([{ code: "CONFIG_KEY_UNREAD", severity: "note", path: "evaluation.maxNewTokens" }]);

  const typed = await loadConfig(folder, { overrides: [...off, "--evaluation.temperature=1"] });
  expect(typed.config).toBeNull();
  const errors = typed.problems.filter(({ severity }) => severity === "error");
  expect(errors).toMatchObject([{ code: "CONFIG_KEY_UNREAD", path: "evaluation.temperature" }]);

  const own = await temporaryFolder({
    "recipe.yaml": recipe.replace(
      "{ maxNewTokens: 8 }",
      "{ maxNewTokens: 8, atStart: false, atEnd: false, everySteps: null }",
    ),
    "tasks.jsonl": "{}\n",
  });
  expect((await loadConfig(own, { overrides: ["--training.steps=3"] })).config).toBeNull();
});
