// The text-splitting rules of byte-level tokenizers, by the name a GGUF file gives them, as tokenizer.json pre-tokenizers.
// It must never fall back to a rule the file did not ask for: a name that is not in the table is refused.
import { RollscopeError } from "../../../../protocol/errors.ts";

export interface PreTokenizerRule {
  /** Regular expressions applied one after the other; a match and the text between matches become separate pieces. */
  readonly patterns: readonly string[];
  /** A piece that is a vocabulary entry as a whole skips the merges. */
  readonly ignoreMerges: boolean;
  readonly normalizer: "NFC" | null;
}

/** GPT-2's rule, which tokenizer.json spells ByteLevel with use_regex. */
export const gpt2Pattern = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

const contractions = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
const cl100k = (digits: string): string =>
  String.raw`${contractions}|[^\r\n\p{L}\p{N}]?\p{L}+|${digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;

const gpt2: PreTokenizerRule = { patterns: [gpt2Pattern], ignoreMerges: false, normalizer: null };
const singleDigits: PreTokenizerRule = {
  patterns: [String.raw`\p{N}`, gpt2Pattern],
  ignoreMerges: false,
  normalizer: null,
};
const llama3: PreTokenizerRule = {
  patterns: [cl100k(String.raw`\p{N}{1,3}`)],
  ignoreMerges: true,
  normalizer: null,
};
const qwen2: PreTokenizerRule = { patterns: [cl100k(String.raw`\p{N}`)], ignoreMerges: false, normalizer: "NFC" };
const fallback: PreTokenizerRule = {
  patterns: [String.raw`[\p{P}\$\+<=>\^~\|]+`, gpt2Pattern, String.raw`\p{N}+`, "[0-9][0-9][0-9]"],
  ignoreMerges: false,
  normalizer: null,
};

const rules: ReadonlyMap<string, PreTokenizerRule> = new Map([
  ["default", fallback],
  ["gpt-2", gpt2],
  ["phi-2", gpt2],
  ["smollm", singleDigits],
  ["starcoder", singleDigits],
  ["refact", singleDigits],
  ["codeshell", singleDigits],
  ["llama-bpe", llama3],
  ["llama3", llama3],
  ["llama-v3", llama3],
  ["qwen2", qwen2],
  ["deepseek-r1-qwen", qwen2],
]);

/** Errors: TOKENIZER_UNSUPPORTED for a name outside the table. */
export function preTokenizerRule(name: string, file: string): PreTokenizerRule {
  const rule = rules.get(name);
  if (rule) return rule;
  throw new RollscopeError("TOKENIZER_UNSUPPORTED", `The pre-tokenizer "${name}" of ${file} is not known.`, {
    next: `Use the model's Hugging Face folder, whose tokenizer.json spells the rule out. Known names: ${[...rules.keys()].join(", ")}.`,
    at: { file, name },
  });
}
