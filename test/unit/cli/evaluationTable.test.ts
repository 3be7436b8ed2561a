import { expect, test } from "vitest";
import { evaluationLine, evaluationTable } from "../../../agent-daemon/src/cli/evaluationTable.ts";

const point = (step: number, scores: Record<string, number>) => ({
  step,
  summary: { tasks: 4, graded: 4, failed: 0, ungraded: 0, truncated: 0, scores },
});

test("the change of scores that are no fractions is no percentage", () => {
  const [, row] = evaluationTable([point(0, { score: 3 }), point(2, { score: 3.5 })], null);
  expect(row).toContain("+0.5");
  expect(row).not.toContain("%");
});

test("a score that no record got is a dash", () => {
  expect(evaluationLine([point(0, {})])).toBe("held out: base –");
  const [, row] = evaluationTable([point(0, { a: Number.NaN }), point(2, { a: 0.5 })], null);
  expect(row).not.toContain("NaN");
});

test("scores of one row have one unit, also where some of them lie between 0 and 1", () => {
  const points = [point(0, { score: 0 }), point(2, { score: 1.5 }), point(4, { score: 0.5 })];
  expect(evaluationLine(points)).toBe("held out: base 0 → step 2 1.500 → step 4 0.5000");
  const [, row] = evaluationTable(points.slice(0, 2), null);
  expect(row).not.toContain("%");
});
