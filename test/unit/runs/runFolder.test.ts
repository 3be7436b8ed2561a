import { statSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createRunFolder, findRun, listRunFolders } from "../../../agent-daemon/src/runs/runFolder.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

const noon = new Date(2026, 0, 31, 12, 5, 9);

function begun(folder: { journal: string }, at: number) {
  writeFileSync(folder.journal, `{"n":1,"at":${at},"attempt":1}\n`);
}

describe("run folders", () => {
  test("are named after recipe and time, with a counter when the name is taken", async () => {
    const output = await temporaryFolder();
    const names = [1, 2, 3].map(() => createRunFolder(output, "Größe / ../x", noon).run);
    expect(names).toEqual([
      "Gro-e-..-x-20260131-120509",
      "Gro-e-..-x-20260131-120509-2",
      "Gro-e-..-x-20260131-120509-3",
    ]);
  });

  test("belong to the user alone", async () => {
    const folder = createRunFolder(await temporaryFolder(), "toy", noon);
    expect(statSync(folder.path).mode & 0o777).toBe(0o700);
  });

  test("are found by path, name, beginning of the name, and as the latest", async () => {
    const output = await temporaryFolder();
    const b = createRunFolder(output, "b", noon);
    const a = createRunFolder(output, "a", noon);
    begun(b, 1000);
    begun(a, 2000);
    expect(listRunFolders(output).map((folder) => folder.run)).toEqual([a.run, b.run]);
    expect(findRun(b.path, "elsewhere").run).toBe(b.run);
    expect(findRun(b.run, output).run).toBe(b.run);
    expect(findRun("b-2026", output).run).toBe(b.run);
    expect(findRun("latest", output).run).toBe(a.run);
  });

  test("say what is wrong with a name that fits none or several", async () => {
    const output = await temporaryFolder();
    begun(createRunFolder(output, "toy", noon), 1);
    begun(createRunFolder(output, "toy", noon), 2);
    expect(() => findRun("toy-2026", output)).toThrow(expect.objectContaining({ code: "RUN_AMBIGUOUS" }));
    expect(() => findRun("boat", output)).toThrow(expect.objectContaining({ code: "RUN_NOT_FOUND" }));
  });
});
