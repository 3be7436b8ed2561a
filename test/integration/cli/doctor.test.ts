import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { type DoctorItem, examine } from "../../../agent-daemon/src/runs/doctor/doctor.ts";
import { minimalRecipe, temporaryFolder } from "../../support/recipeFolder.ts";
import { tinyModelFiles } from "../../support/tinyModelFolder.ts";

const code =
  'import { defineRecipe } from "rollscope/recipe";\nexport default defineRecipe({ rollout() {}, evaluate: () => 0 });\n';

let cache = "";
beforeEach(async () => {
  cache = await temporaryFolder();
  vi.stubEnv("ROLLSCOPE_CACHE", cache);
  return () => vi.unstubAllEnvs();
});

async function doctor(recipe: string | null, outputDir: string) {
  const told: DoctorItem[] = [];
  const items = await examine(
    { recipe, outputDir, environment: { ROLLSCOPE_CACHE: cache }, network: false },
    (item) => void told.push(item),
  );
  return { items, told, of: (id: string) => items.find((item) => item.id === id) };
}

describe("the self-check", () => {
  it("uses everything that a run needs, in under 15 seconds, and leaves nothing", async () => {
    const folder = await temporaryFolder();
    const began = performance.now();
    const { items, told, of } = await doctor(null, join(folder, "runs"));
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(items.filter(({ status }) => status === "failed")).toEqual([]);
    expect(of("engine")).toMatchObject({ status: "ok", detail: expect.stringContaining("8 tokens sampled") });
    expect(of("store")).toMatchObject({ status: "ok" });
    expect(of("model")).toMatchObject({ status: "warning", next: expect.stringContaining("models fetch") });
    expect(told.filter(({ status }) => status === "running").map(({ id }) => id)).toEqual(items.map(({ id }) => id));
    expect(readdirSync(folder)).toEqual([]);
  });

  it("looks at the recipe's model and code, and says what to do about them", async () => {
    const files = { "recipe.yaml": minimalRecipe, "recipe.ts": code, "tasks.jsonl": '{"a":1}\n', ...tinyModelFiles() };
    const folder = await temporaryFolder(files);
    const whole = await doctor(folder, folder);
    expect(whole.items.filter(({ status }) => status === "failed")).toEqual([]);
    expect(whole.of("memory")!.detail).toContain("training ./model takes");
    writeFileSync(join(folder, "recipe.ts"), `${code}let x = ;\n`);
    writeFileSync(join(folder, "recipe.yaml"), minimalRecipe.replace("./model", "./nothing"));
    const broken = await doctor(folder, folder);
    expect(broken.of("model")).toMatchObject({ status: "failed", next: expect.stringContaining("model.source") });
    expect(broken.of("types")).toMatchObject({ status: "failed", next: expect.stringContaining("rollscope check") });
    expect(broken.of("engine")).toMatchObject({ status: "ok" });
  });
});
