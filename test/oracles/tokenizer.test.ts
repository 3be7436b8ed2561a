// Tokenizer against reference values, built once from GGUF metadata alone and once from tokenizer.json.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { definitionFromJson } from "../../agent-daemon/src/engines/tokenizer/definition.ts";
import { loadModelText } from "../../agent-daemon/src/engines/tokenizer/load.ts";
import { Tokenizer } from "../../agent-daemon/src/engines/tokenizer/tokenizer.ts";
import { smollm2Path } from "../support/model.ts";
import { oraclesPath } from "../support/paths.ts";

interface EncodeCase {
  id: string;
  text: string;
  ids: number[];
  ids_plain_text?: number[];
  decoded: string | null;
  decoded_skip_special?: string | null;
}
interface StreamCase {
  id: string;
  ids: number[];
  token_bytes_hex: (string | null)[];
  text_after: string[];
  held_back_at_end: boolean;
  final_text: string;
}
interface ChatIds {
  conversation: string;
  add_generation_prompt: boolean;
  ids: number[];
}

function oracle<T>(...parts: string[]): T {
  return JSON.parse(readFileSync(oraclesPath("chat", ...parts), "utf8")) as T;
}

const encodeCases = oracle<EncodeCase[]>("tokenizer", "encode.json");
const streamCases = oracle<StreamCase[]>("tokenizer", "stream.json");
const chatCases = oracle<ChatIds[]>("tokenizer", "chat_ids.json");
const rendered = oracle<{ records: Record<string, unknown>[] }>("expected.json").records;

const sources: [string, () => Tokenizer][] = [
  ["GGUF metadata", () => loadModelText(smollm2Path()).tokenizer],
  [
    "tokenizer.json",
    () => new Tokenizer(definitionFromJson(oracle("tokenizer", "tokenizer.json"), "tokenizer.json of the oracles")),
  ],
];

describe.each(sources)("the tokenizer from %s", (_, build) => {
  const tokenizer = build();

  test.each(encodeCases.map((entry) => [entry.id, entry] as const))("encodes and decodes %s", (_id, entry) => {
    expect(tokenizer.encode(entry.text, { special: "parse" })).toEqual(entry.ids);
    expect(tokenizer.encode(entry.text, { special: "plain" })).toEqual(entry.ids_plain_text ?? entry.ids);
    const decoded = entry.decoded ?? entry.text;
    expect(tokenizer.decode(entry.ids)).toBe(decoded);
    if (entry.decoded_skip_special !== undefined) {
      expect(tokenizer.decode(entry.ids, { skipSpecial: true })).toBe(entry.decoded_skip_special ?? decoded);
    }
  });

  test.each(streamCases.map((entry) => [entry.id, entry] as const))(
    "holds back half characters in %s",
    (_id, entry) => {
      const stream = tokenizer.stream();
      let text = "";
      const after = entry.ids.map((id) => (text += stream.push(id)));
      expect(after).toEqual(entry.text_after);
      const rest = stream.flush();
      expect(rest !== "").toBe(entry.held_back_at_end);
      expect(text + rest).toBe(entry.final_text);
      const bytes = entry.ids.map((id) =>
        tokenizer.isSpecial(id) ? null : Buffer.from(tokenizer.tokenBytes(id)).toString("hex"),
      );
      expect(bytes).toEqual(entry.token_bytes_hex);
    },
  );

  test("gives the reference ids of whole rendered conversations", () => {
    for (const entry of chatCases) {
      const text = rendered.find(
        (record) =>
          record["template"] === "smollm2" &&
          record["conversation"] === entry.conversation &&
          record["add_generation_prompt"] === entry.add_generation_prompt &&
          record["tools"] === false &&
          record["kwargs"] === undefined &&
          record["null_policy"] === undefined,
      )?.["rendered"];
      expect(tokenizer.encode(String(text), { special: "parse" }), entry.conversation).toEqual(entry.ids);
    }
  });
});

test("GGUF metadata alone gives the same ids as tokenizer.json for every token of the vocabulary", () => {
  const [fromGguf, fromJson] = sources.map(([, build]) => build()) as [Tokenizer, Tokenizer];
  expect(fromGguf.vocabularySize).toBe(fromJson.vocabularySize);
  for (let id = 0; id < fromJson.vocabularySize; id++) {
    expect(fromGguf.tokenText(id)).toBe(fromJson.tokenText(id));
    expect(fromGguf.isSpecial(id)).toBe(fromJson.isSpecial(id));
  }
});
