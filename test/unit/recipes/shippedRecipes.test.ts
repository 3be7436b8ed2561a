import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { checkRecipe } from "../../../agent-daemon/src/recipes/checkRecipe.ts";
import type { RecordView, ScoreDetails } from "../../../protocol/agent.ts";
import type { ObjectiveSettings, ObjectiveToken, TokenObjective } from "../../../protocol/objectiveDefinition.ts";
import arithmetic from "../../../recipes/arithmetic-grpo/recipe.ts";
import custom from "../../../recipes/custom-objective/recipe.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

const recipes = fileURLToPath(new URL("../../../recipes/", import.meta.url));
type Row = { id: string; a: number; b: number };
const read = (name: string) => readFileSync(`${recipes}arithmetic-grpo/${name}.jsonl`, "utf8").trim().split("\n");
const rows = (name: string) => read(name).map((line) => JSON.parse(line) as Row);

// Bundled code goes to a folder of the test, not to the cache of whoever runs it.
beforeEach(async () => {
  vi.stubEnv("ROLLSCOPE_CACHE", await temporaryFolder());
  return () => vi.unstubAllEnvs();
});

describe("the recipes that are shipped", () => {
  it.each(["arithmetic-grpo", "custom-objective"])("%s has no problem, in any profile", async (name) => {
    for (const profile of [null, "quick"]) {
      const { problems, config } = await checkRecipe(`${recipes}${name}`, { profile, types: profile === null });
      expect(problems.filter(({ severity }) => severity !== "note")).toEqual([]);
      expect(config?.name).toBe(name);
    }
  });
});

describe("arithmetic-grpo", () => {
  it("holds out 120 unordered pairs, none of which is trained on in either order", () => {
    const pair = ({ a, b }: Row) => `${Math.min(a, b)}+${Math.max(a, b)}`;
    const heldOut = new Set(rows("heldOut").map(pair));
    expect(heldOut.size).toBe(120);
    expect(rows("heldOut")).toHaveLength(120);
    const trained = new Set(rows("train").map(pair));
    expect([...heldOut].filter((name) => trained.has(name))).toEqual([]);
    expect(heldOut.size + trained.size).toBe((26 * 27) / 2);
    for (const { a, b, id } of [...rows("heldOut"), ...rows("train")]) {
      expect(Math.min(a, b) >= 5 && Math.max(a, b) <= 30).toBe(true);
      expect(id).toBe(`${a}+${b}`);
    }
  });

  it("has the task files that its script makes", async () => {
    const script = new URL("../../../recipes/arithmetic-grpo/makeTasks.mjs", import.meta.url).href;
    const { makeTasks } = (await import(script)) as { makeTasks: () => { train: string[]; heldOut: string[] } };
    expect(makeTasks()).toEqual({ train: read("train"), heldOut: read("heldOut") });
  });

  it("judges by the number after the last equals sign or the last one, and form apart from it", async () => {
    const judge = async (text: string) => {
      const task = { id: "12+7", index: 0, split: "train" as const, payload: { a: 12, b: 7 } };
      const score = await arithmetic.evaluate({ task, text } as RecordView<Row, void>);
      return (score as ScoreDetails).breakdown;
    };
    expect(await judge("12 + 7 = 19")).toEqual({ correct: 1, format: 1 });
    expect(await judge("19.")).toEqual({ correct: 1, format: 1 });
    expect(await judge("12 + 7 = 18")).toEqual({ correct: 0, format: 1 });
    expect(await judge("12 + 7 = 19\n\nThis is step 1")).toEqual({ correct: 1, format: 0 });
    expect(await judge("The sum is 19, not 18")).toEqual({ correct: 0, format: 0 });
    expect(await judge("I do not know")).toEqual({ correct: 0, format: 0 });
  });
});

describe("custom-objective", () => {
  it("is REINFORCE with lighter punishment, and its derivative is that of its loss", () => {
    const objective = custom.objective as TokenObjective;
    const settings = { options: { negativeWeight: 0.5 } } as unknown as ObjectiveSettings;
    const at = (logp: number, advantage: number) => objective.token({ logp, advantage } as ObjectiveToken, settings);
    expect(at(-2, 1)).toEqual({ loss: 2, dLogp: -1 });
    expect(at(-2, -1)).toEqual({ loss: -1, dLogp: 0.5 });
    const number = fc.double({ min: -5, max: 5, noNaN: true });
    fc.assert(
      fc.property(number, number, (logp, advantage) => {
        const slope = (at(logp + 0.5, advantage).loss - at(logp - 0.5, advantage).loss) / 1;
        expect(slope).toBeCloseTo(at(logp, advantage).dLogp, 9);
      }),
    );
  });
});
