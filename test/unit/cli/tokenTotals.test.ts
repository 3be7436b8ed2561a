import { expect, test } from "vitest";
import { type TokenRow, tokenTotals } from "../../../agent-daemon/src/cli/inspect/tokenTable.ts";

function row(numbers: Partial<TokenRow>): TokenRow {
  const none = Number.NaN;
  return {
    ...{ call: "c", index: 0, id: 1, text: "x", version: 0, rollout: -1, sampled: none, trained: true },
    ...{ old: none, new: none, reference: none, entropy: none, ratio: none, advantage: none, weight: none },
    ...numbers,
  };
}

test("the mean entropy is that of the tokens whose entropy is known", () => {
  const rows = [row({ entropy: 1 }), row({ entropy: 3, rollout: -0.5 }), row({ trained: false })];
  expect(tokenTotals(rows)).toEqual({ tokens: 3, trained: 2, logprobSum: -2.5, entropyMean: 2 });
});

test("a record without tokens sums to 0 and has no mean", () => {
  expect(tokenTotals([])).toEqual({ tokens: 0, trained: 0, logprobSum: 0, entropyMean: Number.NaN });
});
