// Where two trajectories part: the first turn that reads another way, and in a sampled turn the first token that is another one.
// Reads both piece by piece, from their beginning, whatever they come from.
import type { DaemonResult } from "../../../../protocol/daemonMethods.ts";
import type { TurnView } from "../../../../protocol/trajectoryView.ts";
import type { OpenTrajectory } from "./openTrajectory.ts";

export type Parting = DaemonResult<"trajectory/siblings">["rows"][number]["parts"];

/** Turns read at once. */
const pageTurns = 256;

/**
 * The token counts the first one's sampled tokens before that place, which are the other's too. Token ids are compared where both have
 * them: the same text in other tokens is another answer.
 *
 * @returns null: one is as the other, to the last turn
 */
export async function partingPlace(own: OpenTrajectory, other: OpenTrajectory): Promise<Parting> {
  await Promise.all([own.indexed(), other.indexed()]);
  const withIds = [own, other].every((each) => each.outline().columns.includes("id"));
  let token = 0;
  for (let from = 0; ; from += pageTurns) {
    const [mine, theirs] = await Promise.all([own.turns(from, from + pageTurns), other.turns(from, from + pageTurns)]);
    for (let place = 0; place < Math.max(mine.length, theirs.length); place++) {
      const [left, right] = [mine[place], theirs[place]];
      const turn = from + place;
      if (left === undefined || right === undefined || left.role !== right.role) return { turn, token };
      if (withIds && left.tokens !== null && right.tokens !== null) {
        const [ids, others] = await Promise.all([idsOf(own, left.tokens), idsOf(other, right.tokens)]);
        const same = ids.findIndex((id, index) => id !== others[index]);
        if (same >= 0 || ids.length !== others.length) {
          return { turn, token: token + (same >= 0 ? same : Math.min(ids.length, others.length)) };
        }
      }
      if ((await said(own, left)) !== (await said(other, right))) return { turn, token };
      token += left.tokens?.length ?? 0;
    }
    if (mine.length < pageTurns) return null;
  }
}

async function idsOf(trajectory: OpenTrajectory, { first, length }: NonNullable<TurnView["tokens"]>) {
  const { arrays } = await trajectory.tokens({ from: first, to: first + length, columns: ["id"], row: null });
  return Array.from(arrays.get("id") ?? []);
}

/** All that a turn says, with the parts that a view would cut. */
async function said(trajectory: OpenTrajectory, { turn, parts, toolCalls }: TurnView): Promise<string> {
  const whole = await Promise.all(
    parts.map(async (part) =>
      part.kind === "cut" ? (await trajectory.part(turn, part.part, 0, Number.MAX_SAFE_INTEGER)).text : part,
    ),
  );
  return JSON.stringify([whole, toolCalls.map(({ name, arguments: text }) => [name, text])]);
}
