// Policy objectives, aggregation, corrections, KL and entropy against values computed independently by automatic differentiation.
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { evaluateObjective } from "../../agent-daemon/src/algorithms/evaluateObjective.ts";
import { parseObjective } from "../../protocol/objective.ts";
import { agrees, disagreements } from "../support/agreement.ts";
import { poisoned, readOracle } from "../support/oracles.ts";
import { oraclesPath } from "../support/paths.ts";

interface ObjectiveOracle {
  name: string;
  config: Record<string, unknown>;
  cases: {
    batch: string;
    sequences: (Record<string, number[]> & { mask: number[]; logp: number[] })[];
    expected: {
      loss: number;
      policyLoss: number;
      klLoss: number | null;
      entropyTerm: number | null;
      dLossDLogp: number[][];
      dLossDEntropy: number[][];
    };
  }[];
}

const files = readdirSync(oraclesPath("objectives")).filter((file) => file.endsWith(".json"));
const oracles = files
  .map((file) => readOracle<ObjectiveOracle>("objectives", file))
  .filter((oracle) => "config" in oracle);

describe.each(oracles)("objective $name", (oracle) => {
  it.each(oracle.cases)("agrees on the $batch batch, whatever the masked tokens hold", ({ sequences, expected }) => {
    const result = evaluateObjective(parseObjective(oracle.config), sequences.map(poisoned));
    for (const key of ["loss", "policyLoss", "klLoss", "entropyTerm"] as const) {
      expect(agrees(result[key], expected[key]), `${key}: ${result[key]} for ${expected[key]}`).toBe(true);
    }
    expect(disagreements(result.dLossDLogp, expected.dLossDLogp)).toEqual([]);
    expect(disagreements(result.dLossDEntropy, expected.dLossDEntropy)).toEqual([]);
  });
});

it("finds objective oracles", () => {
  expect(oracles.length).toBeGreaterThan(0);
});
