// The tokenizer files of a Hugging Face folder, made from GGUF metadata, so that a saved model brings its text along.
import { tokenizerJsonFromGguf } from "./definition.ts";
import { readGgufMetadata } from "./gguf.ts";
import { loadModelText } from "./load.ts";

/** File name and contents. Errors: those of loadModelText. */
export function tokenizerFilesFromGguf(path: string): ReadonlyMap<string, string> {
  const text = loadModelText(path);
  const config = {
    tokenizer_class: "PreTrainedTokenizerFast",
    clean_up_tokenization_spaces: false,
    ...text.specialTokens,
    ...(text.chatTemplate === null ? {} : { chat_template: text.chatTemplate }),
  };
  return new Map([
    ["tokenizer.json", `${JSON.stringify(tokenizerJsonFromGguf(readGgufMetadata(path)))}\n`],
    ["tokenizer_config.json", `${JSON.stringify(config, null, 2)}\n`],
  ]);
}
