import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { byteCharacters } from "../../agent-daemon/src/engines/tokenizer/byteLevel.ts";
import { readGgufMetadata } from "../../agent-daemon/src/engines/tokenizer/gguf.ts";
import { tokenizerFilesFromGguf } from "../../agent-daemon/src/engines/tokenizer/ggufFiles.ts";
import { loadModelText } from "../../agent-daemon/src/engines/tokenizer/load.ts";
import { type GgufEntry, ggufHeader, ggufTokenizer } from "../support/ggufFile.ts";

const folder = mkdtempSync(join(tmpdir(), "rollscope-tokenizer-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(bytes: Buffer, name = "model.gguf"): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

function load(entries: readonly GgufEntry[]): ReturnType<typeof loadModelText> {
  return loadModelText(write(ggufHeader(entries)));
}

describe("a GGUF header", () => {
  const entries: GgufEntry[] = [
    ["general.name", "text", "größe 🧪"],
    ["a.number", "u32", 4_000_000_000],
    ["a.big", "u64", 18_446_744_073_709_551_615n],
    ["a.list", "texts", ["x", "", "\uFEFFy"]],
  ];

  test("is read whole, with 64-bit numbers exact", () => {
    const { values, version, tensorCount } = readGgufMetadata(write(ggufHeader(entries)));
    expect([version, tensorCount]).toEqual([3, 0]);
    expect([...values]).toEqual(entries.map(([key, , value]) => [key, value]));
  });

  test("is refused as truncated wherever it ends early", () => {
    const whole = ggufHeader(entries);
    for (let length = 0; length < whole.length; length++) {
      expect(() => readGgufMetadata(write(whole.subarray(0, length))), `${length} bytes`).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/^ENGINE_FILE_(TRUNCATED|INVALID)$/) }),
      );
    }
  });

  test("is refused when the mark, the version, a length, a type or a key is wrong", () => {
    const whole = ggufHeader(entries);
    const changed = (at: number, ...bytes: number[]) => {
      const copy = Buffer.from(whole);
      copy.set(bytes, at);
      return copy;
    };
    const wrong = [
      changed(0, 0x67),
      changed(4, 1),
      changed(16, 255, 255, 255, 255, 255, 255, 255, 255),
      changed(24 + 8 + 12, 99),
      ggufHeader([entries[1]!, entries[1]!]),
    ];
    for (const bytes of wrong) {
      expect(() => readGgufMetadata(write(bytes))).toThrow(expect.objectContaining({ code: "ENGINE_FILE_INVALID" }));
    }
  });

  test("never crashes with anything but a coded error, whatever the bytes", () => {
    const whole = ggufHeader(entries);
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
        const bytes = Buffer.from(whole);
        bytes[at] = byte;
        try {
          readGgufMetadata(write(bytes));
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^ENGINE_FILE_/) });
        }
      }),
      { numRuns: 300 },
    );
  });

  test("of a missing file names the path and the next step", () => {
    expect(() => readGgufMetadata(join(folder, "none.gguf"))).toThrow(
      expect.objectContaining({ code: "ENGINE_MODEL_NOT_FOUND", next: expect.stringContaining("setup") }),
    );
    expect(() => loadModelText(join(folder, "none"))).toThrow(
      expect.objectContaining({ code: "ENGINE_MODEL_NOT_FOUND" }),
    );
  });
});

describe("a tokenizer from GGUF metadata", () => {
  const tokens = [...byteCharacters, "<|end|>", "<note>", "lo", "low"];
  const types = tokens.map((token) => (token === "<|end|>" ? 3 : token === "<note>" ? 4 : 1));
  const merges = ["l o", "lo w"];

  test("round-trips any text when every byte has a token, and never makes special tokens of plain text", () => {
    const { tokenizer } = load(ggufTokenizer(tokens, merges, [["tokenizer.ggml.pre", "text", "smollm"]], types));
    const wellFormed = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(wellFormed, fc.constantFrom("", "<|end|>", "low<note>"), (text, more) => {
        const whole = text + more + text;
        const plain = tokenizer.encode(whole, { special: "plain" });
        expect(tokenizer.decode(plain)).toBe(whole);
        expect(plain.some((id) => tokenizer.isSpecial(id))).toBe(false);
        expect(tokenizer.decode(tokenizer.encode(whole, { special: "parse" }))).toBe(whole);
      }),
    );
  });

  test("keeps user-defined tokens whole in plain text and treats only control tokens as special", () => {
    const { tokenizer } = load(ggufTokenizer(tokens, merges, [["tokenizer.ggml.pre", "text", "gpt-2"]], types));
    const [end, note, low] = [256, 257, 259];
    expect(tokenizer.encode("low<note>low<|end|>", { special: "parse" })).toEqual([low, note, low, end]);
    expect(tokenizer.encode("low<note>", { special: "plain" })).toEqual([low, note]);
    expect(tokenizer.encode("<|end|>", { special: "plain" })).toHaveLength(7);
    expect(tokenizer.decode([low, end], { skipSpecial: true })).toBe("low");
  });

  test("lets the neighbours of a byte without a token meet before merging", () => {
    const without = tokens.filter((token) => token !== "x");
    const { tokenizer } = load(ggufTokenizer(without, merges, [["tokenizer.ggml.pre", "text", "gpt-2"]]));
    expect(tokenizer.encode("lxow", { special: "parse" })).toEqual(tokenizer.encode("low", { special: "parse" }));
  });

  test("is refused with a code for unknown kinds and rules and for lists that do not fit", () => {
    const pre = (name: string): GgufEntry => ["tokenizer.ggml.pre", "text", name];
    expect(() => load(ggufTokenizer(tokens, merges, [pre("of-tomorrow")]))).toThrow(
      expect.objectContaining({ code: "TOKENIZER_UNSUPPORTED" }),
    );
    expect(() => load([["tokenizer.ggml.model", "text", "llama"]])).toThrow(
      expect.objectContaining({ code: "TOKENIZER_UNSUPPORTED" }),
    );
    for (const entries of [
      ggufTokenizer(tokens, merges, [pre("gpt-2")], [1, 1]),
      ggufTokenizer([...tokens, "lo"], merges, [pre("gpt-2")]),
      ggufTokenizer(tokens, ["l o w"], [pre("gpt-2")]),
      ggufTokenizer([], [], [pre("gpt-2")]),
    ]) {
      expect(() => load(entries)).toThrow(expect.objectContaining({ code: "TOKENIZER_INVALID" }));
    }
  });

  test("refuses an id it does not have", () => {
    const { tokenizer } = load(ggufTokenizer(tokens, merges));
    expect(() => tokenizer.decode([tokenizer.vocabularySize])).toThrow(
      expect.objectContaining({ code: "TOKENIZER_ID_UNKNOWN" }),
    );
  });

  test("gives template, special tokens and stop ids as the file names them", () => {
    const text = load(
      ggufTokenizer(tokens, merges, [
        ["tokenizer.ggml.eos_token_id", "u32", 256],
        ["tokenizer.chat_template", "text", "{{ messages }}"],
      ]),
    );
    expect(text).toMatchObject({
      stopIds: [256],
      specialTokens: { eos_token: "<|end|>" },
      chatTemplate: "{{ messages }}",
    });
  });
});

test("a Hugging Face folder gives the same as GGUF metadata, with its template file first", () => {
  const tokens = [...byteCharacters, "<|end|>"];
  const dir = mkdtempSync(join(folder, "hf-"));
  const vocab = Object.fromEntries(byteCharacters.map((token, id) => [token, id]));
  const files: Record<string, unknown> = {
    "tokenizer.json": {
      added_tokens: [{ id: 256, content: "<|end|>", special: true }],
      normalizer: null,
      pre_tokenizer: { type: "ByteLevel", add_prefix_space: false },
      post_processor: null,
      decoder: { type: "ByteLevel" },
      model: { type: "BPE", vocab, merges: [] },
    },
    "tokenizer_config.json": { eos_token: { content: "<|end|>" }, chat_template: "old" },
    "generation_config.json": { eos_token_id: [256, 7] },
  };
  for (const [name, json] of Object.entries(files)) writeFileSync(join(dir, name), JSON.stringify(json));
  writeFileSync(join(dir, "chat_template.jinja"), "new");
  const fromFolder = loadModelText(dir);
  const fromGguf = load(
    ggufTokenizer(tokens, ["a b"], [["tokenizer.ggml.pre", "text", "gpt-2"]], [...byteCharacters.map(() => 1), 3]),
  );
  const text = "Größe\u0085 \uFEFFx <|end|>";
  expect(fromFolder.tokenizer.encode(text, { special: "parse" })).toEqual(
    fromGguf.tokenizer.encode(text, { special: "parse" }),
  );
  expect(fromFolder).toMatchObject({ chatTemplate: "new", stopIds: [256, 7], specialTokens: { eos_token: "<|end|>" } });
});

test("the tokenizer files of a GGUF file are made once, and again when it was replaced", () => {
  const header = (end: string) =>
    ggufHeader(
      ggufTokenizer(
        [...byteCharacters, end],
        ["a b"],
        [["tokenizer.ggml.pre", "text", "gpt-2"]],
        [...byteCharacters.map(() => 1), 3],
      ),
    );
  const path = write(header("<|end|>"), "saved.gguf");
  const first = tokenizerFilesFromGguf(path);
  expect(tokenizerFilesFromGguf(path)).toBe(first);
  rmSync(path);
  write(header("<|fin|>"), "saved.gguf");
  expect(first.get("tokenizer.json")).toContain("<|end|>");
  expect(tokenizerFilesFromGguf(path).get("tokenizer.json")).toContain("<|fin|>");
  rmSync(path);
  expect(() => tokenizerFilesFromGguf(path)).toThrow();
});
