// The tokenizer files of a Hugging Face folder, made from GGUF metadata, so that a saved model brings its text along. Those of
// the file used last are kept: each checkpoint of a run wants the same ones.
import { statSync } from "node:fs";
import { tokenizerJsonFromGguf } from "./definition.ts";
import { readGgufMetadata } from "./gguf.ts";
import { loadModelText } from "./load.ts";

let last: { readonly identity: string; readonly files: ReadonlyMap<string, string> } | undefined;

/** File name and contents. Errors: those of loadModelText. */
export function tokenizerFilesFromGguf(path: string): ReadonlyMap<string, string> {
  const identity = identityOf(path);
  if (identity !== null && last?.identity === identity) return last.files;
  const files = makeFiles(path);
  if (identity !== null) last = { identity, files };
  return files;
}

/** Changes when the file is written or replaced; null where there is none. */
function identityOf(path: string): string | null {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : [path, stat.dev, stat.ino, stat.size, stat.mtimeNs].join(" ");
}

function makeFiles(path: string): ReadonlyMap<string, string> {
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
