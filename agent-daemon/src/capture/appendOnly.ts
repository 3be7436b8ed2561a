// Proves, for one template and one shape of conversation, that rendering more messages only adds text. Token-exact history
// rests on that; where it does not hold, this says at which turn and from which character on.
import { RollscopeError } from "../../../protocol/errors.ts";
import type { ChatTemplate, RenderRequest } from "./chatTemplate.ts";

/**
 * prompt: what the model was shown stays as it was in every later rendering.
 * turn: the answer, once in the history, stays as it was rendered right after it.
 * enter: the history starts the answer the way the generation prompt did.
 */
export type AppendOnlyCheck = "prompt" | "turn" | "enter";

export interface AppendOnlyViolation {
  readonly check: AppendOnlyCheck;
  /** Which assistant message, from 0. */
  readonly turn: number;
  readonly messageIndex: number;
  /** prompt_N: the prompt of turn N; after_turn_N: the history right after it; end_prompt; full. */
  readonly against: string;
  /** UTF-16 units both have in common. */
  readonly common: number;
  /** Up to 160 characters of both from there on. */
  readonly earlier: string;
  readonly later: string;
}

export interface AppendOnlyReport {
  /** Message indexes of the assistant turns. */
  readonly turns: readonly number[];
  /** At most one per turn and check, against the first later rendering that differs. */
  readonly violations: readonly AppendOnlyViolation[];
  /** Message counts at which the conversation so far cannot be rendered. */
  readonly unrenderable: readonly number[];
}

const shown = 160;

/** Errors: those of `ChatTemplate.render` when the whole conversation cannot be rendered. */
export function checkAppendOnly(
  template: ChatTemplate,
  conversation: Omit<RenderRequest, "addGenerationPrompt">,
): AppendOnlyReport {
  const { messages } = conversation;
  const turns = messages.flatMap((message, index) => (roleOf(message) === "assistant" ? [index] : []));
  const full = template.render({ ...conversation, addGenerationPrompt: false }).text;
  const unrenderable = new Set<number>();
  const upTo = (count: number, addGenerationPrompt: boolean): string | undefined => {
    try {
      return template.render({ ...conversation, messages: messages.slice(0, count), addGenerationPrompt }).text;
    } catch (error) {
      if (!(error instanceof RollscopeError)) throw error;
      unrenderable.add(count);
      return undefined;
    }
  };
  const prompts = turns.map((index) => upTo(index, true));
  const histories = turns.map((index) => upTo(index + 1, false));
  const endsOpen = messages.length > 0 && turns.at(-1) !== messages.length - 1;
  const ends: Named[] = [
    ...(endsOpen ? [{ name: "end_prompt", text: upTo(messages.length, true) }] : []),
    { name: "full", text: full },
  ];
  const named = prompts.map((text, turn): Named => ({ name: `prompt_${turn}`, text }));
  const violations = turns.flatMap((messageIndex, turn) => {
    const later: Record<AppendOnlyCheck, readonly Named[]> = {
      prompt: [...named.slice(turn + 1), ...ends],
      turn: [...named.slice(turn + 1, turn + 2), ...(turn + 1 < turns.length ? ends.slice(-1) : ends)],
      enter: [{ name: `after_turn_${turn}`, text: histories[turn] }],
    };
    return (["prompt", "turn", "enter"] as const).flatMap((check) => {
      const earlier = check === "turn" ? histories[turn] : prompts[turn];
      const found = earlier === undefined ? undefined : firstDifference(earlier, later[check]);
      return found ? [{ check, turn, messageIndex, ...found }] : [];
    });
  });
  return { turns, violations, unrenderable: [...unrenderable] };
}

interface Named {
  readonly name: string;
  readonly text: string | undefined;
}

function firstDifference(earlier: string, laters: readonly Named[]) {
  for (const { name, text } of laters) {
    if (text === undefined || text.startsWith(earlier)) continue;
    const common = commonLength(earlier, text);
    return {
      against: name,
      common,
      earlier: earlier.slice(common, common + shown),
      later: text.slice(common, common + shown),
    };
  }
  return undefined;
}

/** Length of the longest common start of two texts, in UTF-16 units; it never ends inside a character. */
export function commonLength(left: string, right: string): number {
  const limit = Math.min(left.length, right.length);
  let length = 0;
  while (length < limit && left.charCodeAt(length) === right.charCodeAt(length)) length++;
  const splits = [left, right].some((text) => length > 0 && (text.codePointAt(length - 1) ?? 0) > 0xffff);
  return splits ? length - 1 : length;
}

function roleOf(message: unknown): unknown {
  if (message instanceof Map) return message.get("role");
  return typeof message === "object" && message !== null && "role" in message ? message.role : undefined;
}
