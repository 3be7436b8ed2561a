import { expect, it } from "vitest";
import { ofRecipe } from "../../../agent-daemon/src/recipes/processGuard.ts";

const thrown = (...frames: string[]) =>
  Object.assign(new Error("x"), { stack: ["Error: x", ...frames.map((frame) => `    at ${frame}`)].join("\n") });

it("takes an error for the recipe's when its stack names the recipe's files, or none at all", () => {
  expect(ofRecipe(thrown("f (/home/me/rec/recipe.ts:3:1)", "node:internal/timers:1:1"), "/home/me/rec")).toBe(true);
  expect(ofRecipe(thrown(`f (file:///c/recipe-${"a1".repeat(16)}.mjs:3:1)`), "/home/me/rec")).toBe(true);
  expect(ofRecipe(thrown("node:internal/timers:1:1"), "/home/me/rec")).toBe(true);
  expect(ofRecipe("a string", "/home/me/rec")).toBe(true);
});

it("takes it for a fault of the product when only other files are named", () => {
  expect(
    ofRecipe(thrown("commit (file:///opt/rollscope/cli.mjs:9:1)", "node:internal/timers:1:1"), "/home/me/rec"),
  ).toBe(false);
});
