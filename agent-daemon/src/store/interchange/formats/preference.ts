// Preference rows as trainers of preferences read them: chosen and rejected as text or messages, the prompt apart or the common
// beginning of both; a single completion with a label; and plain prompt and completion.
import type { JsonValue } from "../../../../../protocol/agent.ts";
import type { ImportedTurn } from "../../../../../protocol/importedTrajectory.ts";
import { messageTurn, toolsOf } from "../chatMessages.ts";
import { isObject, type Row } from "../row.ts";
import {
  fixedTurns,
  header,
  listTurns,
  name,
  number,
  type RowFormat,
  rewardOf,
  sequence,
  shortJson,
  type TurnSequence,
  textPart,
  turn,
  without,
} from "../turns.ts";
import { pair } from "./openAiChat.ts";
import { sharegptTurn } from "./sharegpt.ts";

const keys = ["prompt", "chosen", "rejected", "completion"];

function isSide(value: JsonValue | undefined): boolean {
  return typeof value === "string" || Array.isArray(value) || isObject(value);
}

export const preference: RowFormat = {
  format: "preference",
  lists: keys,
  recognises: (value) =>
    (isSide(value["chosen"]) && isSide(value["rejected"])) || (isSide(value["prompt"]) && isSide(value["completion"])),
  async open(row) {
    const prompt = sideTurns(row, "prompt", false);
    const metadata = without(row.value, [...keys, "tools"]);
    const tools = toolsOf(row.value["tools"]);
    if (row.value["chosen"] === undefined && row.list("chosen") === null) {
      const label = row.value["label"];
      const desired = label === undefined || label === null ? null : number(label);
      return [
        {
          header: header(row, {
            id: name(row.value["id"]),
            labels: desired === null ? [] : [desired > 0 ? "desirable" : "undesirable"],
            reward: label === undefined ? {} : rewardOf("label", label),
            tools,
            metadata,
          }),
          turns: sequence(prompt, sideTurns(row, "completion", true)),
        },
      ];
    }
    const sides = { chosen: sideTurns(row, "chosen", true), rejected: sideTurns(row, "rejected", true) };
    const common = row.whole ? await commonTurns(sides.chosen, sides.rejected) : 0;
    // Without a prompt of its own, what both begin with was asked and is not to be trained.
    const parts = prompt.count + common;
    const scores = [row.value["score_chosen"], row.value["score_rejected"]];
    return pair(row, { tools, metadata }, parts, (chosen) =>
      sequence(prompt, untrained(chosen ? sides.chosen : sides.rejected, common)),
    ).map((each, index) => {
      const score = number(scores[index]);
      return score === null ? each : { ...each, header: { ...each.header, score } };
    });
  },
};

function sideTurns(row: Row, key: string, answered: boolean): TurnSequence {
  const list = row.list(key);
  const trainable = (made: ImportedTurn) => ({ ...made, trainable: made.trainable && answered });
  if (list !== null) {
    return listTurns(list, (element) => {
      const speaks = isObject(element.value) && "from" in element.value;
      return trainable(speaks ? sharegptTurn(element) : messageTurn(element));
    });
  }
  const value = row.value[key];
  if (value === undefined || value === null) return fixedTurns([]);
  if (isObject(value)) {
    const text = shortJson(value);
    const range = { start: row.place.start, end: row.place.end, line: row.place.line, member: row.source.member };
    return fixedTurns([trainable(("from" in value ? sharegptTurn : messageTurn)({ value, text, source: range }))]);
  }
  const content = typeof value === "string" ? value : shortJson(value);
  return fixedTurns([trainable(turn(answered ? "assistant" : "user", { parts: [textPart(content)], kinds: [key] }))]);
}

async function commonTurns(a: TurnSequence, b: TurnSequence): Promise<number> {
  const most = Math.min(a.count, b.count);
  const [left, right] = await Promise.all([a.read(0, most), b.read(0, most)]);
  const key = (each: ImportedTurn | undefined) => JSON.stringify({ ...each, source: null });
  let common = 0;
  while (common < most && key(left[common]) === key(right[common])) common++;
  return common;
}

function untrained(turns: TurnSequence, first: number): TurnSequence {
  return {
    get count() {
      return turns.count;
    },
    read: async (from, to) =>
      (await turns.read(from, to)).map((each, index) => (from + index < first ? { ...each, trainable: false } : each)),
  };
}
