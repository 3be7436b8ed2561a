// Decoded chat text back into messages: where a template's marks, or the lines that are left of them without special tokens, say
// who speaks. Text that shows no such marks is one prompt and one answer. Nothing is removed but the marks themselves.
import type { ImportedRole, ImportedTurn } from "../../../../protocol/importedTrajectory.ts";
import { textPart, turn } from "./turns.ts";

interface Dialect {
  /** Begins a message; group 1 is the role. */
  readonly opens: RegExp;
  /** Ends one. */
  readonly closes: readonly string[];
  /** May stand before the first message. */
  readonly before: readonly string[];
}

const marked: readonly Dialect[] = [
  { opens: /<\|im_start\|>([A-Za-z_]+)\n/g, closes: ["<|im_end|>"], before: ["<s>", "<|endoftext|>"] },
  {
    opens: /<\|start_header_id\|>([A-Za-z_]+)<\|end_header_id\|>\n\n/g,
    closes: ["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"],
    before: ["<|begin_of_text|>"],
  },
  { opens: /<start_of_turn>([A-Za-z_]+)\n/g, closes: ["<end_of_turn>", "<eos>"], before: ["<bos>"] },
];

/** What special tokens leave behind: a line with the role alone. Only of text that begins and whose prompt ends with one. */
const bare: Dialect = { opens: /(?:^|(?<=\n))(system|user|assistant|tool)\n/g, closes: [], before: [] };

const roles: { readonly [name: string]: ImportedRole } = {
  system: "system",
  developer: "developer",
  user: "user",
  assistant: "assistant",
  model: "assistant",
  tool: "tool",
  ipython: "tool",
};

export function chatTextTurns(prompt: string, completion: string): ImportedTurn[] {
  const dialect = marked.find(({ opens }) => prompt.search(opens) >= 0) ?? (isBare(prompt) ? bare : null);
  if (dialect !== null) return messages(prompt, completion, dialect);
  return [
    ...(prompt === "" ? [] : [turn("user", { parts: [textPart(prompt)], kinds: ["prompt"] })]),
    turn("assistant", { parts: [textPart(completion)], kinds: ["completion"] }),
  ];
}

function isBare(prompt: string): boolean {
  return /^(system|user)\n/.test(prompt) && /\nassistant\n$/.test(prompt);
}

function messages(prompt: string, completion: string, { opens, closes, before }: Dialect): ImportedTurn[] {
  const whole = prompt + completion;
  // In an answer, bare role lines are words like any others: who speaks there is not known.
  const searched = closes.length === 0 ? prompt : whole;
  const starts = [...searched.matchAll(opens)].map(({ index, 0: mark, 1: role }) => ({
    at: index,
    text: index + mark.length,
    role: role as string,
  }));
  const turns: ImportedTurn[] = [];
  const ahead = whole.slice(0, starts[0]?.at ?? 0);
  if (ahead.trim() !== "" && !before.includes(ahead.trim()))
    turns.push(turn("user", { parts: [textPart(ahead)], kinds: ["before the first message"] }));
  for (const [index, start] of starts.entries()) {
    const said = whole.slice(start.text, starts[index + 1]?.at ?? whole.length);
    const close = closes.map((mark) => said.lastIndexOf(mark)).reduce((a, b) => Math.max(a, b), -1);
    const mark = closes.find((each) => close >= 0 && said.startsWith(each, close)) ?? "";
    const after = close < 0 ? "" : said.slice(close + mark.length);
    // A close mark counts when nothing but white space follows it.
    const closed = close >= 0 && after.trim() === "";
    const sampled = start.text >= prompt.length || index === starts.length - 1;
    const role = roles[start.role] ?? "user";
    const content = closed ? said.slice(0, close) : closes.length === 0 && !sampled ? said.replace(/\n$/, "") : said;
    turns.push(
      turn(role, {
        parts: [textPart(content)],
        name: Object.hasOwn(roles, start.role) ? null : start.role,
        trainable: role === "assistant" && sampled,
        result: role === "tool" ? { callId: null, name: null, error: null } : null,
        kinds: [start.text >= prompt.length ? "completion" : "prompt"],
        finishReason: sampled && closed ? "stop" : null,
      }),
    );
  }
  return turns;
}
