// A tokenizer.json in memory, from a Hugging Face folder or from GGUF metadata, corrected where the JavaScript library
// reads a rule otherwise than the reference implementation. It must never tokenise anything itself.
import { RollscopeError } from "../../../../protocol/errors.ts";
import { byteCharacters } from "./byteLevel.ts";
import type { GgufMetadata } from "./gguf.ts";
import { gpt2Pattern, preTokenizerRule } from "./preTokenizers.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

export interface AddedTokenEntry extends JsonObject {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
  readonly normalized: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  readonly single_word: boolean;
}

/** The parts of tokenizer.json that this project reads; the rest is passed to the library as it stands. */
export interface TokenizerDefinition {
  readonly source: string;
  readonly addedTokens: readonly AddedTokenEntry[];
  /** How token text turns into bytes. */
  readonly alphabet: "byte-level" | "byte-fallback";
  /** byte-fallback decoders strip one leading space of the whole text when true. */
  readonly stripsLeadingSpace: boolean;
  readonly vocabulary: ReadonlyMap<string, number>;
  /** What the library is constructed from. */
  readonly library: JsonObject;
}

const controlType = 3;
const unknownType = 2;
const userDefinedType = 4;

/** Errors: TOKENIZER_INVALID when keys are missing or contradict each other, TOKENIZER_UNSUPPORTED for other tokenizer kinds. */
export function definitionFromGguf(metadata: GgufMetadata): TokenizerDefinition {
  return definitionFromJson(tokenizerJsonFromGguf(metadata), metadata.path);
}

/** The tokenizer.json that says what the GGUF metadata says. Errors: as definitionFromGguf. */
export function tokenizerJsonFromGguf(metadata: GgufMetadata): JsonObject {
  const file = metadata.path;
  const kind = metadata.values.get("tokenizer.ggml.model");
  if (kind !== "gpt2") {
    throw new RollscopeError("TOKENIZER_UNSUPPORTED", `The tokenizer kind "${String(kind)}" of ${file} is not read.`, {
      next: "Use the model's Hugging Face folder.",
      at: { file },
    });
  }
  const tokens = textArray(metadata, "tokenizer.ggml.tokens");
  const merges = textArray(metadata, "tokenizer.ggml.merges");
  const types = metadata.values.get("tokenizer.ggml.token_type");
  if (!Array.isArray(types) || types.length !== tokens.length) {
    throw invalid(file, "tokenizer.ggml.token_type does not have one entry per token");
  }
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  if (Object.keys(vocab).length !== tokens.length) throw invalid(file, "the vocabulary names a token twice");
  const addedTokens = tokens.flatMap((content, id) =>
    types[id] === controlType || types[id] === unknownType || types[id] === userDefinedType
      ? [addedToken(id, content, types[id] !== userDefinedType)]
      : [],
  );
  const pre = metadata.values.get("tokenizer.ggml.pre") ?? "default";
  const rule = preTokenizerRule(String(pre), file);
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: addedTokens,
    normalizer: rule.normalizer === null ? null : { type: rule.normalizer },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [...rule.patterns.map(isolate), byteLevel],
    },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      byte_fallback: false,
      fuse_unk: false,
      ignore_merges: rule.ignoreMerges,
      vocab,
      merges: merges.map((merge) => splitMerge(merge, file)),
    },
  };
}

/** Takes a parsed tokenizer.json. Errors: TOKENIZER_INVALID, TOKENIZER_UNSUPPORTED. */
export function definitionFromJson(json: JsonObject, source: string): TokenizerDefinition {
  const model = asObject(json["model"]);
  if (model?.["type"] !== "BPE" && !(model && Array.isArray(model["merges"]))) {
    throw new RollscopeError("TOKENIZER_UNSUPPORTED", `The tokenizer of ${source} is not a byte-pair encoding.`, {
      next: "Use a model with a BPE tokenizer.",
      at: { file: source },
    });
  }
  const vocab = asObject(model["vocab"]);
  if (!vocab) throw invalid(source, "model.vocab is missing");
  const vocabulary = new Map<string, number>();
  for (const [token, id] of Object.entries(vocab)) {
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0) throw invalid(source, `token ${token} has no id`);
    vocabulary.set(token, id);
  }
  const alphabet = mentions(json["decoder"], "ByteLevel") ? "byte-level" : "byte-fallback";
  if (alphabet === "byte-fallback" && !mentions(json["decoder"], "ByteFallback")) {
    throw new RollscopeError(
      "TOKENIZER_UNSUPPORTED",
      `The decoder of ${source} is neither byte-level nor byte-fallback.`,
      {
        next: "Use a model whose tokenizer maps text to bytes exactly.",
        at: { file: source },
      },
    );
  }
  const pre = corrected(asObject(json["pre_tokenizer"]) ?? null);
  return {
    source,
    addedTokens: readAddedTokens(json["added_tokens"], source),
    alphabet,
    stripsLeadingSpace: alphabet === "byte-fallback" && mentions(json["decoder"], "Strip"),
    vocabulary,
    library: {
      ...json,
      normalizer: json["normalizer"] ?? null,
      post_processor: null,
      pre_tokenizer: alphabet === "byte-level" ? withoutUnknownBytes(pre, vocabulary) : pre,
    },
  };
}

const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };

function isolate(pattern: string): JsonObject {
  return { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false };
}

/**
 * The library's Digits knows ASCII digits only (the reference: all of \p{N}), and its ByteLevel splits with JavaScript's \s
 * (the reference: White_Space, which has U+0085 and lacks U+FEFF). Both are restated as Split, whose classes it rewrites.
 */
function corrected(rule: JsonObject | null): JsonObject | null {
  if (rule === null) return null;
  switch (rule["type"]) {
    case "Sequence": {
      const parts = Array.isArray(rule["pretokenizers"]) ? rule["pretokenizers"] : [];
      return { ...rule, pretokenizers: parts.map((part: Json) => corrected(asObject(part) ?? null)) };
    }
    case "Digits":
      return isolate(rule["individual_digits"] === true ? String.raw`\p{N}` : String.raw`\p{N}+`);
    case "ByteLevel":
      if (rule["use_regex"] === false) return rule;
      if (rule["add_prefix_space"] === true) return rule;
      return { type: "Sequence", pretokenizers: [isolate(gpt2Pattern), byteLevel] };
    default:
      return rule;
  }
}

/** The reference drops bytes without a token before it merges, so that their neighbours meet; the library would keep them apart. */
function withoutUnknownBytes(pre: JsonObject | null, vocabulary: ReadonlyMap<string, number>): JsonObject | null {
  const missing = byteCharacters.filter((character) => !vocabulary.has(character));
  if (missing.length === 0) return pre;
  const drop = { type: "Replace", pattern: { Regex: `[${missing.map(escapeInClass).join("")}]` }, content: "" };
  return { type: "Sequence", pretokenizers: pre === null ? [drop] : [pre, drop] };
}

function escapeInClass(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function addedToken(id: number, content: string, special: boolean): AddedTokenEntry {
  return { id, content, special, normalized: false, lstrip: false, rstrip: false, single_word: false };
}

function readAddedTokens(value: Json | undefined, source: string): AddedTokenEntry[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid(source, "added_tokens is not a list");
  return value.map((item: Json) => {
    const entry = asObject(item);
    const id = entry?.["id"];
    const content = entry?.["content"];
    if (!entry || typeof id !== "number" || typeof content !== "string") {
      throw invalid(source, "an entry of added_tokens has no id or content");
    }
    const special = entry["special"] === true;
    return {
      id,
      content,
      special,
      normalized: typeof entry["normalized"] === "boolean" ? entry["normalized"] : !special,
      lstrip: entry["lstrip"] === true,
      rstrip: entry["rstrip"] === true,
      single_word: entry["single_word"] === true,
    };
  });
}

function splitMerge(merge: string, file: string): readonly string[] {
  const parts = merge.split(" ");
  if (parts.length !== 2) throw invalid(file, `the merge "${merge}" is not a pair`);
  return parts;
}

function textArray(metadata: GgufMetadata, key: string): readonly string[] {
  const value = metadata.values.get(key);
  if (!Array.isArray(value) || value.length === 0) throw invalid(metadata.path, `${key} is missing or empty`);
  return value.map((item) => {
    if (typeof item !== "string") throw invalid(metadata.path, `${key} holds something that is not text`);
    return item;
  });
}

function mentions(decoder: Json | undefined, type: string): boolean {
  const rule = asObject(decoder);
  if (!rule) return false;
  if (rule["type"] === type) return true;
  const parts = rule["decoders"];
  return Array.isArray(parts) && parts.some((part: Json) => mentions(part, type));
}

export function asObject(value: Json | undefined): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

function invalid(file: string, what: string): RollscopeError {
  return new RollscopeError("TOKENIZER_INVALID", `The tokenizer of ${file} is not usable: ${what}.`, {
    next: "Fetch the model again or use its Hugging Face folder.",
    at: { file },
  });
}
