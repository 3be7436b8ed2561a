import { describe, expect, it } from "vitest";
import { learningRate, type ScheduleConfig } from "../../agent-daemon/src/training/learningRate.ts";

const rates = (schedule: Partial<ScheduleConfig["schedule"]>, steps = 5) =>
  Array.from({ length: steps + 1 }, (_, applied) =>
    learningRate(
      { lr: 8, steps, schedule: { kind: "constant", warmupSteps: 0, finalFraction: 0, ...schedule } },
      applied,
    ),
  );

describe("the learning rate", () => {
  it("stays constant after rising linearly over the warm-up", () => {
    expect(rates({ warmupSteps: 4 })).toEqual([2, 4, 6, 8, 8, 8]);
  });

  it("falls linearly to its final fraction at the last step and stays there", () => {
    expect(rates({ kind: "linear", finalFraction: 0.5 })).toEqual([8, 7, 6, 5, 4, 4]);
  });

  it("falls along a cosine", () => {
    const [first, , middle, , last] = rates({ kind: "cosine", finalFraction: 0.25 });
    expect([first, middle, last]).toEqual([8, 5, 2].map((rate) => expect.closeTo(rate, 12)));
  });

  it("is the full one when there is a single step", () => {
    expect(rates({ kind: "linear" }, 1)[0]).toBe(8);
  });
});
