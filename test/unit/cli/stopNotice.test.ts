import { describe, expect, test } from "vitest";
import { stopNotice } from "../../../agent-daemon/src/cli/stopNotice.ts";

const oneStep = { stepsPerWindow: 1, epochsPerWindow: 1 };
const fourSteps = { stepsPerWindow: 2, epochsPerWindow: 2 };

describe("the first Ctrl-C", () => {
  test("names the current step where each window has one", () => {
    const said = stopNotice({ step: 3, steps: 10, phase: "training" }, oneStep);
    expect(said).toBe("Stopping after this step, and saving. Ctrl-C again: at once.");
  });

  test.each([
    ["sampling", 0, 4],
    ["training", 1, 4],
    ["training", 2, 4],
    ["evaluating", 2, 4],
    ["sampling", 4, 8],
    ["training", 5, 8],
    ["training", 8, 10],
  ] as const)("names the step where the window ends, when %s after step %i: step %i", (phase, step, end) => {
    expect(stopNotice({ step, steps: 10, phase }, fourSteps)).toContain(`after step ${end}:`);
  });

  test.each([
    ["saving", 8],
    ["training", 7],
    ["training", 9],
  ] as const)("has nothing to wait for beyond the current step when %s after step %i", (phase, step) => {
    expect(stopNotice({ step, steps: 10, phase }, fourSteps)).toContain("after this step");
  });

  test("speaks of the evaluation where no step is under way", () => {
    expect(stopNotice({ step: 0, steps: 10, phase: "evaluating" }, fourSteps)).toBe(
      "Stopping after this evaluation. Ctrl-C again: at once.",
    );
    expect(stopNotice({ step: 4, steps: 10, phase: "evaluating" }, fourSteps)).toBe(
      "Stopping after this evaluation, and saving. Ctrl-C again: at once.",
    );
  });
});
