// A model on disk, whatever its format: configuration, and where each tensor lies under its Hugging Face name. Finds and
// checks; it must never read weights.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";
import { readGgufModel } from "./ggufModel.ts";
import { parseModelConfig } from "./modelConfig.ts";
import { readCheckpoint, readSafetensors, type StoredTensor } from "./safetensors.ts";
import { readSavedState, valueHeadFile } from "./savedState.ts";
import type { ModelFiles, ModelTensor } from "./storedModel.ts";

/** One tensor the engine wants. */
export interface ExpectedTensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/** Tensors that some exports carry and no computation reads. */
const ignorable = /rotary_emb\.inv_freq$/;

/**
 * `path`: a Hugging Face folder with safetensors, a GGUF file, or a folder with exactly one GGUF file.
 * Errors: ENGINE_MODEL_NOT_FOUND, ENGINE_FILE_TRUNCATED, ENGINE_FILE_INVALID, ENGINE_ARCHITECTURE_UNKNOWN, ENGINE_UNSUPPORTED,
 * ENGINE_TENSOR_MISSING, ENGINE_TENSOR_TYPE_UNKNOWN.
 */
export function findModel(path: string): ModelFiles {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw notFound(path, "does not exist");
  if (stat.isFile()) return readGgufModel(path);
  if (existsSync(join(path, "config.json"))) return readFolder(path);
  const files = readdirSync(path).filter((name) => name.endsWith(".gguf"));
  if (files.length === 1) return readGgufModel(join(path, files[0] ?? ""));
  throw notFound(path, files.length === 0 ? "has neither config.json nor a GGUF file" : "has several GGUF files");
}

function readFolder(path: string): ModelFiles {
  const configJson = readObject(join(path, "config.json"));
  const config = parseModelConfig(configJson, join(path, "config.json"));
  const generationFile = join(path, "generation_config.json");
  const valueHead = join(path, valueHeadFile);
  const stored = new Map([
    ...readCheckpoint(path),
    ...(existsSync(valueHead) ? readSafetensors(valueHead) : new Map<string, StoredTensor>()),
  ]);
  return {
    path,
    kind: "folder",
    config,
    configJson,
    generationConfig: existsSync(generationFile) ? readObject(generationFile) : null,
    tensors: new Map([...stored].map(([name, tensor]) => [name, { ...tensor, interleavedHeads: 0 }])),
    version: readSavedState(path)?.version ?? 0,
  };
}

/**
 * The place of every expected tensor, in order; value heads may be absent and start at zero.
 * Errors: ENGINE_TENSOR_MISSING, ENGINE_SHAPE_MISMATCH, and ENGINE_FILE_INVALID when the file holds a tensor that the configuration
 * does not describe: leaving it out would silently compute something else.
 */
export function matchTensors(
  expected: readonly ExpectedTensor[],
  model: ModelFiles,
): (ModelTensor & { name: string })[] {
  const wanted = new Set(expected.map((tensor) => tensor.name));
  for (const name of model.tensors.keys()) {
    if (wanted.has(name) || ignorable.test(name) || name.startsWith("value_head.")) continue;
    if (name === "lm_head.weight" && model.config.tiedHead) continue;
    throw new RollscopeError(
      "ENGINE_FILE_INVALID",
      `${model.path} holds the tensor ${name}, which its configuration does not describe.`,
      {
        next: "Check that config.json and the weights belong together.",
        at: { file: model.path, tensor: name },
      },
    );
  }
  return expected.flatMap(({ name, shape }) => {
    const stored = model.tensors.get(name);
    if (stored === undefined) {
      if (name.startsWith("value_head.")) return [];
      throw new RollscopeError("ENGINE_TENSOR_MISSING", `${model.path} lacks the tensor ${name}.`, {
        next: "Check that config.json and the weights belong together.",
        at: { file: model.path, tensor: name },
      });
    }
    if (stored.shape.length !== shape.length || stored.shape.some((axis, index) => axis !== shape[index])) {
      throw new RollscopeError(
        "ENGINE_SHAPE_MISMATCH",
        `The tensor ${name} of ${model.path} has the shape [${stored.shape.join(", ")}], not [${shape.join(", ")}].`,
        { next: "Check that config.json and the weights belong together.", at: { file: stored.file, tensor: name } },
      );
    }
    return [{ ...stored, name }];
  });
}

function readObject(file: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw notObject(file, cause);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw notObject(file);
  return value as Record<string, unknown>;
}

function notObject(file: string, cause?: unknown): RollscopeError {
  return new RollscopeError("ENGINE_FILE_INVALID", `${file} is not a JSON object.`, {
    next: "Fetch the model again; the file is damaged.",
    at: { file },
    cause,
  });
}

function notFound(path: string, why: string): RollscopeError {
  return new RollscopeError("ENGINE_MODEL_NOT_FOUND", `No model at ${path}: it ${why}.`, {
    next: "Give the path of a GGUF file or of a Hugging Face folder, or run `npm run setup`.",
    at: { file: path },
  });
}
