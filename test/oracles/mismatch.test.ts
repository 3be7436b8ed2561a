// The trainer–sampler mismatch report against values computed independently.
import { expect, it } from "vitest";
import { type MismatchReport, mismatchReport } from "../../agent-daemon/src/algorithms/mismatch.ts";
import { disagreements } from "../support/agreement.ts";
import { poisoned, readOracle } from "../support/oracles.ts";

interface MismatchOracle {
  cases: {
    sequences: { trainer: number[]; rollout: number[]; mask: number[] }[];
    expected: Omit<MismatchReport, "worst">;
  }[];
}

const { cases } = readOracle<MismatchOracle>("objectives", "mismatch.json");

it.each(cases)("reports the reference's numbers over $expected.tokens tokens", ({ sequences, expected }) => {
  const report = mismatchReport(sequences.map(poisoned));
  const { percentiles, ...numbers } = expected;
  for (const [key, value] of Object.entries(numbers)) {
    expect(disagreements(report[key as keyof MismatchReport], value, key)).toEqual([]);
  }
  for (const [percent, value] of Object.entries(percentiles ?? {})) {
    expect(disagreements(report.percentiles?.[percent as "1"], value, `percentile ${percent}`)).toEqual([]);
  }
});

it.each(cases)("links the worst of $expected.tokens tokens to sequence and position", ({ sequences, expected }) => {
  const { worst } = mismatchReport(sequences.map(poisoned));
  expect(worst).toHaveLength(Math.min(10, expected.tokens));
  expect(disagreements(Math.abs(worst[0]?.difference ?? Number.NaN), expected.absLogpDiffMax)).toEqual([]);
  for (const { sequence, position, trainer, rollout } of worst) {
    expect(sequences[sequence]?.mask[position]).toBe(1);
    expect([trainer, rollout]).toEqual([
      sequences[sequence]?.trainer[position],
      sequences[sequence]?.rollout[position],
    ]);
  }
});
