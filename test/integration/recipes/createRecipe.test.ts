import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { checkRecipe } from "../../../agent-daemon/src/recipes/checkRecipe.ts";
import { createRecipe, recipeTemplates } from "../../../agent-daemon/src/recipes/createRecipe.ts";
import { embeddedEngines } from "../../../agent-daemon/src/runs/embeddedEngines.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";
import { tinyModelFiles } from "../../support/tinyModelFolder.ts";
import { attemptToyRun, newToyRun } from "../../support/toyRun.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

beforeEach(async () => {
  vi.stubEnv("ROLLSCOPE_CACHE", await temporaryFolder());
  return () => vi.unstubAllEnvs();
});

/** What an editor underlines, by the language service and the folder's own tsconfig.json. */
function underlined(folder: string): string[] {
  const { config } = ts.readConfigFile(join(folder, "tsconfig.json"), ts.sys.readFile) as { config: unknown };
  const { options, fileNames, errors } = ts.parseJsonConfigFileContent(config, ts.sys, folder);
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => fileNames,
    getScriptVersion: () => "1",
    getScriptSnapshot: (file) =>
      existsSync(file) ? ts.ScriptSnapshot.fromString(readFileSync(file, "utf8")) : undefined,
    getCurrentDirectory: () => folder,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
  });
  const found = fileNames.flatMap((file) => [
    ...service.getSyntacticDiagnostics(file),
    ...service.getSemanticDiagnostics(file),
  ]);
  return [...errors, ...found].map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "));
}

describe("a new recipe", () => {
  it.each(recipeTemplates)("from %s has no squiggle outside of any checkout, and no problem", async (template) => {
    const parent = await temporaryFolder();
    const { folder, files } = createRecipe(template, parent, "my-recipe");
    expect(folder).toBe(join(parent, "my-recipe"));
    expect(files).toEqual(
      expect.arrayContaining(["recipe.ts", "recipe.yaml", "README.md", ".rollscope/types/recipe.d.ts"]),
    );
    expect(underlined(folder)).toEqual([]);
    writeFileSync(
      join(folder, "recipe.ts"),
      `${readFileSync(join(folder, "recipe.ts"), "utf8")}\nlet x: number = "";\n`,
    );
    expect(underlined(folder)).toEqual(["Type 'string' is not assignable to type 'number'."]);
    for (const profile of [null, "quick"]) {
      const { problems, config } = await checkRecipe(folder, { profile });
      expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
      expect(config?.name).toBe("my-recipe");
    }
  });

  it.each(recipeTemplates)("from %s runs a step", async (template) => {
    const parent = await temporaryFolder(tinyModelFiles());
    const { folder } = createRecipe(template, parent, "first");
    const run = await newToyRun(folder, [
      `--model.source=${join(parent, "model")}`,
      "--training.steps=1",
      "--training.tokenBudget=1024",
      "--sampling.tasksPerStep=1",
      "--sampling.groupSize=2",
      "--sampling.maxNewTokens=4",
      "--sampling.refill.limit=0",
      "--evaluation.tasks=2",
      "--evaluation.maxNewTokens=4",
    ]);
    const { end } = await attemptToyRun(run, { openEngines: embeddedEngines });
    expect(end).toMatchObject({ status: "completed", step: 1, error: null });
  });

  it("keeps a name that YAML would read as something else", async () => {
    const { folder } = createRecipe("blank", await temporaryFolder(), "007");
    expect((await checkRecipe(folder)).config?.name).toBe("007");
  });

  it("never takes a folder that has something in it, and leaves nothing when it fails", async () => {
    const parent = await temporaryFolder({ "taken/file": "" });
    expect(() => createRecipe("grpo", parent, "taken")).toThrow(
      expect.objectContaining({ code: "RECIPE_FOLDER_TAKEN" }),
    );
    expect(() => createRecipe("grpo", parent, "../up")).toThrow(
      expect.objectContaining({ code: "RECIPE_NAME_INVALID" }),
    );
    expect(() => createRecipe("grpo", join(parent, "taken", "file"), "x")).toThrow(
      expect.objectContaining({ code: "RECIPE_FOLDER_UNWRITABLE" }),
    );
  });

  it("takes along the types of the present API", () => {
    execFileSync(process.execPath, [join(root, "scripts", "generate-types.mjs"), "--check"], { stdio: "pipe" });
  });
});
