// Rollouts that were dumped as decoded text, prompt and completion: verl's lines and the rows of TRL's completion tables.
import { createHash } from "node:crypto";
import type { RewardValue } from "../../../../../protocol/importedTrajectory.ts";
import { chatTextTurns } from "../chatText.ts";
import type { JsonObject } from "../jsonText.ts";
import type { Row } from "../row.ts";
import {
  count,
  fixedTurns,
  header,
  number,
  type RowFormat,
  type RowTrajectory,
  rewardOf,
  text,
  without,
} from "../turns.ts";

function rangeOf(row: Row) {
  return { start: row.place.start, end: row.place.end, line: row.place.line, member: row.source.member };
}

/** Rows with one prompt in one step are one group. */
function groupOf(prompt: string, step: number | null): string {
  return `${step ?? ""}:${createHash("sha256").update(prompt).digest("hex").slice(0, 12)}`;
}

export const verl: RowFormat = {
  format: "verl",
  lists: [],
  recognises: (value) => typeof value["input"] === "string" && typeof value["output"] === "string" && "score" in value,
  open(row) {
    const { value } = row;
    const step = count(value["step"]);
    const prompt = text(value["input"]) ?? "";
    const rest = without(value, ["input", "output", "gts", "score", "step"]);
    const scored = Object.entries(rest).filter(([, score]) => number(score) !== null || score === null);
    const reward: Record<string, RewardValue> = Object.assign(
      { score: number(value["score"]) },
      ...scored.map(([named, score]) => rewardOf(named, score)),
    );
    return [
      {
        header: header(row, {
          id: null,
          group: groupOf(prompt, step),
          step,
          score: number(value["score"]),
          reward,
          metadata: { ...without(rest, Object.keys(reward)), gts: value["gts"] ?? null },
        }),
        turns: fixedTurns(
          chatTextTurns(prompt, text(value["output"]) ?? "").map((each) => ({ ...each, source: rangeOf(row) })),
        ),
      },
    ];
  },
};

const trlColumns = new Set(["step", "prompt", "completion", "advantage"]);

/** A row of completions_NNNNN.parquet: one column a reward, whatever else was logged beside them. */
export function trlTrajectory(row: Row): RowTrajectory {
  const { value } = row;
  const step = count(value["step"]);
  const prompt = text(value["prompt"]) ?? "";
  const reward: Record<string, RewardValue> = {};
  const rest: JsonObject = {};
  for (const [column, given] of Object.entries(value)) {
    if (trlColumns.has(column)) continue;
    if (given === null || number(given) !== null) reward[column] = number(given);
    else rest[column] = given;
  }
  return {
    header: header(row, {
      id: `row-${row.place.index + 1}`,
      group: groupOf(prompt, step),
      step,
      reward,
      metadata: { ...rest, advantage: value["advantage"] ?? null },
    }),
    turns: fixedTurns(
      chatTextTurns(prompt, text(value["completion"]) ?? "").map((each) => ({ ...each, source: rangeOf(row) })),
    ),
  };
}

export const trl: RowFormat = {
  format: "trl-completions",
  lists: [],
  recognises: (value) =>
    typeof value["prompt"] === "string" && typeof value["completion"] === "string" && "advantage" in value,
  open: (row) => [trlTrajectory(row)],
};
