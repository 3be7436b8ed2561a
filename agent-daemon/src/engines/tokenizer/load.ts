// Everything about text that belongs to a model: tokenizer, chat template, special tokens, stop ids. Read once from a
// Hugging Face folder or from one GGUF file; it must never read weights.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { RollscopeError } from "../../../../protocol/errors.ts";
import {
  type AddedTokenEntry,
  asObject,
  definitionFromGguf,
  definitionFromJson,
  type JsonObject,
} from "./definition.ts";
import { type GgufMetadata, readGgufMetadata } from "./gguf.ts";
import { Tokenizer } from "./tokenizer.ts";

export interface ModelText {
  readonly source: string;
  readonly tokenizer: Tokenizer;
  /** Jinja source; null when the model has none. */
  readonly chatTemplate: string | null;
  /** Variables a template sees: bos_token, eos_token, ... by name. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Ids that end an answer. */
  readonly stopIds: readonly number[];
}

/**
 * `path`: a GGUF file, a Hugging Face folder, or a folder with exactly one GGUF file and no tokenizer.json.
 * Errors: ENGINE_MODEL_NOT_FOUND, ENGINE_FILE_TRUNCATED, ENGINE_FILE_INVALID, TOKENIZER_INVALID, TOKENIZER_UNSUPPORTED.
 */
export function loadModelText(path: string): ModelText {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) throw notFound(path, "does not exist");
  if (stat.isFile()) return fromGguf(readGgufMetadata(path));
  if (existsSync(join(path, "tokenizer.json"))) return fromFolder(path);
  const files = readdirSync(path).filter((name) => name.endsWith(".gguf"));
  if (files.length === 1) return fromGguf(readGgufMetadata(join(path, files[0] ?? "")));
  throw notFound(path, files.length === 0 ? "has neither tokenizer.json nor a GGUF file" : "has several GGUF files");
}

function fromGguf(metadata: GgufMetadata): ModelText {
  const tokenizer = new Tokenizer(definitionFromGguf(metadata));
  const idAt = (name: string): number | undefined => {
    const value = metadata.values.get(`tokenizer.ggml.${name}_token_id`);
    return typeof value === "number" ? value : undefined;
  };
  const names = { bos: "bos_token", eos: "eos_token", unknown: "unk_token", padding: "pad_token" };
  const specialTokens: Record<string, string> = {};
  for (const [key, variable] of Object.entries(names)) {
    const id = idAt(key);
    if (id !== undefined) specialTokens[variable] = tokenizer.tokenText(id);
  }
  const template = metadata.values.get("tokenizer.chat_template");
  return {
    source: metadata.path,
    tokenizer,
    chatTemplate: typeof template === "string" ? template : null,
    specialTokens,
    stopIds: unique([idAt("eos"), idAt("eot"), idAt("eom")]),
  };
}

function fromFolder(dir: string): ModelText {
  const config = readJson(dir, "tokenizer_config.json") ?? {};
  const json = readJson(dir, "tokenizer.json") ?? {};
  const definition = definitionFromJson({ ...json, added_tokens: withConfigured(json, config) }, dir);
  const tokenizer = new Tokenizer(definition);
  const specialTokens: Record<string, string> = {};
  for (const [key, value] of Object.entries({ ...readJson(dir, "special_tokens_map.json"), ...config })) {
    const text = typeof value === "string" ? value : asObject(value)?.["content"];
    if (key.endsWith("_token") && typeof text === "string") specialTokens[key] = text;
  }
  const eosText = specialTokens["eos_token"];
  const stops = ["generation_config.json", "config.json"].flatMap((name) => {
    const value = readJson(dir, name)?.["eos_token_id"];
    return Array.isArray(value) ? value : [value];
  });
  return {
    source: dir,
    tokenizer,
    chatTemplate: folderTemplate(dir, config),
    specialTokens,
    stopIds: unique([eosText === undefined ? undefined : tokenizer.idOf(eosText), ...stops]),
  };
}

/** A file of its own wins over the key in tokenizer_config.json; of several named ones "default" counts. */
function folderTemplate(dir: string, config: JsonObject): string | null {
  const own = join(dir, "chat_template.jinja");
  if (existsSync(own)) return readFileSync(own, "utf8");
  const inJson = readJson(dir, "chat_template.json")?.["chat_template"] ?? config["chat_template"];
  if (typeof inJson === "string") return inJson;
  if (!Array.isArray(inJson)) return null;
  const named = inJson.map(asObject).find((entry) => entry?.["name"] === "default")?.["template"];
  return typeof named === "string" ? named : null;
}

/** tokenizer_config.json may name added tokens that tokenizer.json does not have. */
function withConfigured(json: JsonObject, config: JsonObject): readonly JsonObject[] {
  const listed = Array.isArray(json["added_tokens"]) ? (json["added_tokens"] as AddedTokenEntry[]) : [];
  const known = new Set(listed.map((token) => token.id));
  const configured = Object.entries(asObject(config["added_tokens_decoder"]) ?? {}).flatMap(([id, entry]) => {
    const token = asObject(entry);
    return token && !known.has(Number(id)) ? [{ ...token, id: Number(id) }] : [];
  });
  return [...listed, ...configured];
}

function readJson(dir: string, name: string): JsonObject | undefined {
  const file = join(dir, name);
  if (!existsSync(file)) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw unreadable(file, cause);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw unreadable(file);
  return parsed as JsonObject;
}

function unreadable(file: string, cause?: unknown): RollscopeError {
  return new RollscopeError("TOKENIZER_INVALID", `${file} is not a JSON object.`, {
    next: "Fetch the model again; the file is damaged.",
    at: { file },
    cause,
  });
}

function notFound(path: string, why: string): RollscopeError {
  return new RollscopeError("ENGINE_MODEL_NOT_FOUND", `No tokenizer at ${path}: it ${why}.`, {
    next: "Give the path of a GGUF file or of a Hugging Face folder, or run `npm run setup`.",
    at: { file: path },
  });
}

function unique(values: readonly unknown[]): number[] {
  return [...new Set(values.filter((value) => typeof value === "number"))];
}
