import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openJournal } from "../../../agent-daemon/src/runs/journal.ts";
import { createReport } from "../../../agent-daemon/src/runs/runContext.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

describe("the state that a run tells", () => {
  test("begins at the step that a resume went back to", async () => {
    const journal = openJournal(join(await temporaryFolder(), "journal.jsonl"), 2, () => 0);
    const report = createReport(journal, { event() {}, progress() {} }, 0);
    report.event({
      type: "started",
      run: "toy",
      recipe: "toy",
      model: "toy",
      steps: 10,
      seed: 0,
      evaluations: [],
      resumed: { step: 4, checkpoint: "checkpoints/step_4", voidedSteps: 1 },
    });
    expect(report.step).toBe(4);
    journal.dispose();
  });
});
