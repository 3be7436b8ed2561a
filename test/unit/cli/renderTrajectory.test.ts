import { describe, expect, test } from "vitest";
import { renderTrajectory } from "../../../agent-daemon/src/cli/inspect/renderTrajectory.ts";
import { plainPaint } from "../../../agent-daemon/src/cli/terminal/colors.ts";
import type { LoadedTrajectory } from "../../../agent-daemon/src/store/loadTrajectory.ts";
import { record, toolEvent } from "../../support/documents.ts";

const noTokens = { tokens: 0, trained: 0, logprobSum: 0, entropyMean: Number.NaN };

function rendered(trajectory: Pick<LoadedTrajectory, "record" | "toolEvents">): string[] {
  return renderTrajectory({ task: null, calls: [], ...trajectory }, [], noTokens, null, plainPaint);
}

describe("a trajectory in the terminal", () => {
  test("shows what a tool was given and what it gave, integers whole, long values cut", () => {
    const given = { word: "x".repeat(100_000), size: 2n ** 60n };
    const lines = rendered({
      record: record("r1"),
      toolEvents: [
        {
          ...toolEvent("r1/t0", "r1"),
          name: "count",
          arguments: { size: 2n ** 60n },
          result: 6,
          error: null,
          durationMs: 2,
        },
        {
          ...toolEvent("r1/t1", "r1"),
          name: "count",
          arguments: given,
          result: "a\u001b[2Jb",
          error: null,
          durationMs: 2,
        },
        {
          ...toolEvent("r1/t2", "r1"),
          name: "count",
          arguments: {},
          result: null,
          error: { code: "X", message: "no", call: null },
          durationMs: 2,
        },
      ],
    });
    expect(lines).toContain('  count({"size":1152921504606846976}) → 6  2 ms');
    expect(lines).toContain(`  count({"word":"${"x".repeat(50)}…) → "a\\u001b[2Jb"  2 ms`);
    expect(lines).toContain("  count({}) → no  2 ms");
  });

  test("shows the recipe's own fields", () => {
    expect(rendered({ record: { ...record("r1"), fields: { tool_used: true, level: 3 } }, toolEvents: [] })).toContain(
      "fields tool_used true, level 3",
    );
  });
});
