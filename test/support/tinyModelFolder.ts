// A whole model folder that the embedded engine runs in milliseconds: the smallest dense reference model, with a tokenizer
// of bytes and a chat template. What it says means nothing; every number is real.
import { readFileSync } from "node:fs";
import { byteCharacters } from "../../agent-daemon/src/engines/tokenizer/byteLevel.ts";
import { chatMl } from "./captured.ts";
import { oraclesPath } from "./paths.ts";

/** Files below `model/`. */
export function tinyModelFiles(): Readonly<Record<string, string | Uint8Array>> {
  const read = (name: string) => readFileSync(oraclesPath("models", "llama-tiny", name));
  const config = JSON.parse(read("config.json").toString()) as { vocab_size: number };
  const fillers = Array.from({ length: config.vocab_size - byteCharacters.length - 2 }, (_, index) => `<|${index}|>`);
  const specials = ["<|im_start|>", "<|im_end|>", ...fillers];
  const tokenizer = {
    version: "1.0",
    added_tokens: specials.map((content, index) => ({
      ...{ id: byteCharacters.length + index, content, special: true, normalized: false },
      ...{ lstrip: false, rstrip: false, single_word: false },
    })),
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    model: { type: "BPE", vocab: Object.fromEntries(byteCharacters.map((token, id) => [token, id])), merges: [] },
  };
  return {
    "model/config.json": JSON.stringify(config),
    "model/model.safetensors": read("model.safetensors"),
    "model/tokenizer.json": JSON.stringify(tokenizer),
    "model/tokenizer_config.json": JSON.stringify({ chat_template: chatMl, eos_token: "<|im_end|>" }),
  };
}
