// Saves a model as a Hugging Face folder and loads one back. A folder is built beside its place, flushed and renamed: it
// appears whole or not at all.
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, open, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";
import { answered, cancellable, settled } from "./embeddedAddon.ts";
import { type EmbeddedModel, tensorSources } from "./embeddedModel.ts";
import { type ExpectedTensor, matchTensors } from "./modelFiles.ts";
import { readSafetensors, safetensorsHeader } from "./safetensors.ts";
import {
  firstMomentFile,
  readSavedState,
  type SavedState,
  savedStateFile,
  secondMomentFile,
  valueHeadFile,
  weightsFile,
} from "./savedState.ts";
import type { ModelFiles } from "./storedModel.ts";
import { tokenizerFilesFromGguf } from "./tokenizer/ggufFiles.ts";

const textFiles = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "tokenizer.model",
  "chat_template.jinja",
  "chat_template.json",
];

/** Errors: ENGINE_SAVE_FAILED. What stood at `dir` before is replaced when the new folder is whole. */
export async function saveEmbedded(model: EmbeddedModel, dir: string, what: "weights" | "full"): Promise<void> {
  const target = resolve(dir);
  const staged = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString("hex")}`);
  try {
    await mkdir(staged, { recursive: true });
    await writeModel(model, staged);
    const state: SavedState = { version: model.native.version(), optimizerSteps: null };
    const optimizerSteps = what === "full" ? await writeMoments(model, staged) : null;
    await writeJson(join(staged, savedStateFile), { ...state, optimizerSteps });
    for (const name of await readdir(staged)) await flush(join(staged, name));
    await flush(staged);
    await putInPlace(staged, target);
  } catch (cause) {
    await rm(staged, { recursive: true, force: true }).catch(() => undefined);
    if (cause instanceof RollscopeError) throw cause;
    throw new RollscopeError("ENGINE_SAVE_FAILED", `The model cannot be saved to ${dir}.`, {
      next: "Free disk space or choose a folder that can be written.",
      at: { file: dir },
      cause,
    });
  }
}

/** Errors: as openEmbeddedModel; moments of another shape are refused as weights are. */
export async function loadEmbedded(model: EmbeddedModel, dir: string): Promise<void> {
  const state = readSavedState(dir);
  const steps = state?.optimizerSteps ?? 0;
  const moments = steps > 0 ? momentSources(model, dir) : undefined;
  await model.reload(dir);
  if (moments === undefined) await settled(() => model.trainer.clearMoments());
  else await settled(() => model.trainer.loadMoments(moments.paths, moments.first, moments.second, steps));
}

async function writeModel(model: EmbeddedModel, dir: string): Promise<void> {
  const { files } = model;
  await writeJson(join(dir, "config.json"), savedConfig(files));
  if (files.generationConfig !== null) await writeJson(join(dir, "generation_config.json"), files.generationConfig);
  if (files.kind === "folder") {
    for (const name of textFiles) {
      const from = join(files.path, name);
      if (existsSync(from)) await copyFile(from, join(dir, name));
    }
  } else {
    for (const [name, text] of tokenizerFiles(files.path)) await writeFile(join(dir, name), text);
  }
  const tensors = answered(() => model.native.tensors());
  const isValueHead = (tensor: ExpectedTensor) => tensor.name.startsWith("value_head.");
  await writeTensors(
    model,
    join(dir, weightsFile),
    tensors.filter((tensor) => !isValueHead(tensor)),
  );
  const valueHead = tensors.filter(isValueHead);
  if (valueHead.length > 0) await writeTensors(model, join(dir, valueHeadFile), valueHead);
}

async function writeTensors(model: EmbeddedModel, file: string, tensors: readonly ExpectedTensor[]): Promise<void> {
  const names = tensors.map((tensor) => tensor.name);
  await cancellable(undefined, (cancel) => model.native.writeWeights(file, safetensorsHeader(tensors), names, cancel));
}

/** Returns the number of steps behind the moments; without a step there are none and nothing is written. */
async function writeMoments(model: EmbeddedModel, dir: string): Promise<number> {
  const { trainer } = model;
  const steps = await settled(() => trainer.optimizerSteps());
  if (steps === 0) return 0;
  const tensors = answered(() => model.native.tensors());
  const names = tensors.map((tensor) => tensor.name);
  const header = safetensorsHeader(tensors);
  await cancellable(undefined, async (cancel) => {
    await trainer.writeMoment(join(dir, firstMomentFile), header, names, "firstMoment", cancel);
    await trainer.writeMoment(join(dir, secondMomentFile), header, names, "secondMoment", cancel);
  });
  return steps;
}

function momentSources(model: EmbeddedModel, dir: string) {
  const tensors = answered(() => model.native.tensors());
  const place = (name: string) => {
    const stored = readSafetensors(join(dir, name));
    const withHeads = new Map([...stored].map(([tensor, at]) => [tensor, { ...at, interleavedHeads: 0 }]));
    return matchTensors(tensors, { ...model.files, path: join(dir, name), tensors: withHeads });
  };
  const { paths, sources } = tensorSources([...place(firstMomentFile), ...place(secondMomentFile)]);
  return { paths, first: sources.filter((at) => at.file === 0), second: sources.filter((at) => at.file === 1) };
}

/** A tokenizer that cannot be read could not have been used either; the weights are saved without it. */
function tokenizerFiles(path: string): ReadonlyMap<string, string> {
  try {
    return tokenizerFilesFromGguf(path);
  } catch (error) {
    if (error instanceof RollscopeError && error.code === "TOKENIZER_UNSUPPORTED") return new Map();
    throw error;
  }
}

function savedConfig(files: ModelFiles): Record<string, unknown> {
  const spelling = "dtype" in files.configJson ? "dtype" : "torch_dtype";
  return { ...files.configJson, [spelling]: "float32" };
}

async function putInPlace(staged: string, target: string): Promise<void> {
  if (!existsSync(target)) {
    await rename(staged, target);
  } else {
    const old = `${staged}.old`;
    await rename(target, old);
    await rename(staged, target);
    await rm(old, { recursive: true, force: true });
  }
  await flush(dirname(target));
}

async function flush(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeJson(file: string, value: unknown): Promise<void> {
  await writeFile(file, `${JSON.stringify(value, null, 2)}\n`);
}
