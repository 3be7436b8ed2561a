// Trajectories with generated turns and tokens for the inspector's tests: any number of turns, made when they are asked for, so that a
// long one costs the bench nothing.
import type { BulkArray } from "../../protocol/bulkFrame.ts";
import {
  type TokenColumnName,
  type TrajectoryOutline,
  type TrajectorySource,
  type TurnView,
  tokenColumns,
} from "../../protocol/trajectoryView.ts";
import { type BenchHandler, BenchRefusal } from "./pageBench.ts";

export const recordSource = { kind: "record", folder: "/runs/math", record: "record-1" } as const;

export interface BenchTrajectory {
  outline: TrajectoryOutline;
  turn(number: number): TurnView;
  /** Whole text of a part. */
  text(turn: number, part: number): string;
  token(number: number): { readonly text: string; readonly numbers: Readonly<Record<string, number>> };
}

export function outlineOf(part: Partial<TrajectoryOutline>): TrajectoryOutline {
  const turnCount = part.turnCount ?? 0;
  return {
    row: {
      source: recordSource,
      id: "record-1",
      task: "task-1",
      taskName: "clip-count-17",
      group: "group-1",
      sample: 0,
      attempt: 1,
      split: "train",
      status: "scored",
      score: 1,
      turns: turnCount,
      promptTokens: 64,
      outputTokens: part.tokenCount ?? null,
      truncated: false,
      toolErrors: 0,
      driftedCalls: 0,
      staleness: 1,
      mismatch: 0.0012,
      steps: [3, 4],
      error: null,
      labels: [],
    },
    turnCount,
    complete: true,
    progress: null,
    branches: [{ leaf: "call-1", turns: [[0, turnCount]], drift: null }],
    tokenCount: null,
    columns: [],
    trained: [],
    reward: { score: 1, correct: 1, format: 0.5, length: -0.125 },
    payload: { answer: "72" },
    fields: {},
    metadata: { resample: 0 },
    tools: [],
    ...part,
  };
}

export function turnOf(part: Partial<TurnView> & Pick<TurnView, "turn" | "role">): TurnView {
  return {
    parts: [],
    toolCalls: [],
    result: null,
    call: null,
    policyVersions: null,
    tokens: null,
    finishReason: null,
    temperature: null,
    promptTokens: null,
    cachedTokens: null,
    started: null,
    ended: null,
    drift: null,
    error: null,
    demonstration: false,
    trainable: false,
    ...part,
  };
}

/** Numbers of a token that look like a run's, and never the same twice. */
export function numbersOf(token: number): Record<string, number> {
  const wave = Math.abs(Math.sin(token * 12.9898) * 43758.5453) % 1;
  const logprob = -(wave ** 3) * 6;
  const shift = (((token * 7919) % 200) - 100) / 1000;
  return {
    id: 100 + (token % 900),
    logprob,
    version: 3 + (Math.floor(token / 50) % 2),
    mask: token % 11 === 10 ? 0 : 1,
    old: logprob + shift / 10,
    new: logprob + shift,
    ratio: Math.exp(shift),
    advantage: token % 2 === 0 ? 0.75 : -0.5,
    entropy: wave * 2.5,
    gradient: shift * 0.01,
    mismatch: shift / 10,
    staleness: token % 3,
  };
}
export const allColumns = Object.keys(numbersOf(0));

const image =
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVQI12P8z8Dwn4GBgYmBgYGBAQAkBgMBtM5Q8QAAAABJRU5ErkJggg==";

function columnOf(dtype: "i32" | "f32" | "u8", values: number[]): BulkArray {
  if (dtype === "i32") return Int32Array.from(values);
  return dtype === "u8" ? Uint8Array.from(values) : Float32Array.from(values);
}

export function handlersOf(trajectory: BenchTrajectory): Record<string, BenchHandler> {
  const extreme = (column: string, sign: number) => {
    let found: { token: number; value: number } | null = null;
    for (let token = 0; token < (trajectory.outline.tokenCount ?? 0); token++) {
      const value = trajectory.token(token).numbers[column] ?? Number.NaN;
      if (!Number.isNaN(value) && (found === null || value * sign > found.value * sign)) found = { token, value };
    }
    return found;
  };
  return {
    "trajectory/open": () => trajectory.outline,
    "trajectory/close": () => ({}),
    "trajectory/turns": ({ from, to }: { from: number; to: number }) => {
      const end = Math.min(to, trajectory.outline.turnCount);
      return { turns: Array.from({ length: Math.max(0, end - from) }, (_, index) => trajectory.turn(from + index)) };
    },
    "trajectory/part": ({ turn, part, from, to }: { turn: number; part: number; from: number; to: number }) => {
      const text = trajectory.text(turn, part);
      return { text: text.slice(from, to), characters: text.length };
    },
    "trajectory/raw": ({ turn }: { turn: number }) => ({
      text: `<|im_start|>${trajectory.turn(turn).role}\n${trajectory.text(turn, 0)}<|im_end|>`,
    }),
    "trajectory/tokens": ({ from, to, columns }: { from: number; to: number; columns: TokenColumnName[] }, session) => {
      const end = Math.min(to, trajectory.outline.tokenCount ?? 0);
      const tokens = Array.from({ length: Math.max(0, end - from) }, (_, index) => trajectory.token(from + index));
      const arrays = new Map<string, BulkArray>(
        columns.map((name) => [
          name,
          columnOf(
            tokenColumns[name].dtype,
            tokens.map(({ numbers }) => numbers[name] ?? Number.NaN),
          ),
        ]),
      );
      let text = "";
      const ends = tokens.map((token) => {
        text += token.text;
        return text.length;
      });
      return session.bulk({ arrays, extra: { text, ends, from } });
    },
    "trajectory/extreme": ({ column, most }: { column: string; most: string }) =>
      extreme(column, most === "least" ? -1 : 1),
    "trajectory/search": ({ text, fromTurn, limit }: { text: string; fromTurn: number; limit: number }) => {
      const hits: object[] = [];
      for (let turn = fromTurn; turn < trajectory.outline.turnCount; turn++) {
        if (hits.length >= limit) return { hits, next: turn, cut: false };
        const within = trajectory.text(turn, 0);
        for (let at = within.indexOf(text); at >= 0; at = within.indexOf(text, at + 1))
          hits.push({
            turn,
            in: "part",
            part: 0,
            at,
            excerpt: within.slice(Math.max(0, at - 20), at + text.length + 20),
          });
      }
      return { hits, next: null, cut: false };
    },
    "trajectory/siblings": () => ({
      rows: [1, 2, 3, 4].map((sample) => ({
        row: {
          ...trajectory.outline.row,
          id: `record-${sample + 1}`,
          sample,
          score: sample % 2,
          source: { ...recordSource, record: `record-${sample + 1}` },
        },
        parts: sample === 4 ? null : { turn: 1, token: 10 + sample },
      })),
    }),
    "trajectory/diff": ({ others }: { others: TrajectorySource[] }) => ({
      rows: others.map((source) => ({
        row: { ...trajectory.outline.row, id: "another", task: "another task", sample: 0, source },
        parts: { turn: 1, token: 0 },
      })),
    }),
    "trajectory/image": ({ handle }: { handle: string }, session) => {
      if (handle !== "1/0") throw new BenchRefusal("STORE_NOT_FOUND", `There is no image ${handle}.`, "Open it again.");
      const bytes = new Uint8Array(Buffer.from(image, "base64"));
      return session.bulk({ arrays: new Map([["bytes", bytes]]), extra: { mediaType: "image/png" } });
    },
    "host/copy": () => ({}),
    "host/openTrajectory": () => ({}),
  };
}

const answerText =
  "Natalia sold 48/2 = 24 clips in May.\nAltogether she sold 48 + 24 = 72 clips in April and May.\n\nThe answer is 72.";
const words = (text: string) => text.match(/\s?[\p{L}\d]+|\s?[^\s\p{L}\d]|\s/gu) ?? [];

/** A question and its answer: four turns' worth of everything that a math task stores. */
export function mathTrajectory(): BenchTrajectory {
  const pieces = words(answerText);
  const question =
    "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. How many clips did Natalia sell altogether in April and May?";
  const turns = [
    turnOf({
      turn: 0,
      role: "system",
      parts: [{ kind: "text", text: "Answer the question. End with: The answer is N." }],
    }),
    turnOf({ turn: 1, role: "user", parts: [{ kind: "text", text: question }] }),
    turnOf({
      turn: 2,
      role: "assistant",
      parts: [
        { kind: "reasoning", text: "Half of 48 is 24. 48 + 24 = 72." },
        { kind: "text", text: answerText },
      ],
      call: "call-1",
      policyVersions: { min: 3, max: 3 },
      tokens: { first: 0, length: pieces.length },
      finishReason: "stop",
      temperature: 1,
      started: 1000,
      ended: 3400,
      trainable: true,
    }),
  ];
  return {
    outline: outlineOf({
      turnCount: 3,
      tokenCount: pieces.length,
      columns: allColumns,
      trained: [
        { step: 3, attempt: 1, pass: 0, row: "row-3" },
        { step: 4, attempt: 1, pass: 0, row: "row-4" },
      ],
    }),
    turn: (number) => turns[number]!,
    text: (number, part) => {
      const found = turns[number]!.parts[part];
      return found?.kind === "text" || found?.kind === "reasoning" ? found.text : "";
    },
    token: (number) => ({ text: pieces[number] ?? "", numbers: numbersOf(number) }),
  };
}

/** A conversation with a tool, of three rounds: image, paired calls, a failed call, drift and two branches. */
export function toolTrajectory(): BenchTrajectory {
  const said = [
    "I will look at the picture first.",
    "One search failed; I try another.",
    "The bridge was opened in 1894.",
  ];
  const pieces = said.map(words);
  const firsts = [0, pieces[0]!.length, pieces[0]!.length + pieces[1]!.length];
  const sampled = (turn: number, round: number, part: Partial<TurnView>) =>
    turnOf({
      turn,
      role: "assistant",
      parts: [{ kind: "text", text: said[round]! }],
      call: `call-${round + 1}`,
      policyVersions: { min: 3, max: 3 + (round % 2) },
      tokens: { first: firsts[round]!, length: pieces[round]!.length },
      finishReason: round < 2 ? "tool_calls" : "stop",
      temperature: 0.8,
      trainable: true,
      ...part,
    });
  const call = (id: string, name: string, text: string) => ({ id, name, arguments: text });
  const turns = [
    turnOf({ turn: 0, role: "system", parts: [{ kind: "text", text: "You may use tools." }] }),
    turnOf({
      turn: 1,
      role: "user",
      parts: [
        { kind: "image", handle: "1/0", mediaType: "image/png", width: 2, height: 2 },
        { kind: "text", text: "When was this bridge opened?" },
      ],
    }),
    sampled(2, 0, {
      toolCalls: [call("a", "describe", '{"image": 1}'), call("b", "search", '{"query": "tower bridge opened"}')],
    }),
    turnOf({
      turn: 3,
      role: "tool",
      parts: [{ kind: "text", text: "\u001b[31mERR\u001b[0m none\n10%\r20%\r30%\n\u001b[2Ja bridge with two towers" }],
      result: { callId: "a", name: "describe", error: null, milliseconds: 310 },
    }),
    turnOf({
      turn: 4,
      role: "tool",
      parts: [{ kind: "text", text: "" }],
      result: { callId: "b", name: "search", error: "The index did not answer.", milliseconds: 5000 },
    }),
    sampled(5, 1, {
      toolCalls: [call("c", "search", '{"query": "tower bridge 1894"}')],
      drift: { kind: "retoken", at: 12, text: "call", trainedTokens: 3 },
    }),
    turnOf({
      turn: 6,
      role: "tool",
      parts: [{ kind: "text", text: "Tower Bridge, London: opened 30 June 1894." }],
      result: { callId: "c", name: "search", error: null, milliseconds: 94 },
    }),
    sampled(7, 2, {}),
  ];
  const all = pieces.flat();
  return {
    outline: outlineOf({
      turnCount: turns.length,
      tokenCount: all.length,
      columns: allColumns,
      trained: [{ step: 12, attempt: 2, pass: 0, row: "row-12" }],
      branches: [
        { leaf: "call-2", turns: [[0, 6]], drift: null },
        {
          leaf: "call-3",
          turns: [
            [0, 5],
            [6, 8],
          ],
          drift: null,
        },
      ],
    }),
    turn: (number) => turns[number]!,
    text: (number, part) => {
      const found = turns[number]!.parts[part];
      return found?.kind === "text" ? found.text : "";
    },
    token: (number) => ({ text: all[number] ?? "", numbers: numbersOf(number) }),
  };
}

/** @param perTurn sampled tokens of each second turn */
export function longTrajectory(turnCount: number, perTurn: number, filler = 6000): BenchTrajectory {
  const text = (turn: number) =>
    `${turn % 2 === 1 ? "Answer" : "Question"} ${turn + 1}: ${"the quick brown fox jumps over the lazy dog ".repeat(filler / 44)}`;
  return {
    outline: outlineOf({
      turnCount,
      tokenCount: Math.floor(turnCount / 2) * perTurn,
      columns: ["id", "logprob", "version"],
    }),
    turn: (number) =>
      turnOf({
        turn: number,
        role: number % 2 === 1 ? "assistant" : "user",
        parts: [{ kind: "text", text: text(number) }],
        ...(number % 2 === 1
          ? { call: `call-${number}`, tokens: { first: ((number - 1) / 2) * perTurn, length: perTurn } }
          : {}),
      }),
    text,
    token: (number) => ({ text: ` w${number}`, numbers: numbersOf(number) }),
  };
}
