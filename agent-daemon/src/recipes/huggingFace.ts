// Fetches files of a Hugging Face repository: its list with sizes and hashes from the Hub's API, then each file over HTTPS,
// checked against what the list says. Set HF_ENDPOINT for a mirror and HF_TOKEN for a repository with terms.
import { join } from "node:path";
import { z } from "zod";
import { RollscopeError } from "../../../protocol/errors.ts";
import { downloadFile, type FileHash } from "./download.ts";
import type { Manifest } from "./modelCache.ts";

export interface HubOptions {
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Bytes of all files together. */
  readonly onProgress?: ((progress: { readonly done: number; readonly total: number }) => void) | undefined;
  /** See Download. */
  readonly tries?: number | undefined;
  readonly firstDelay?: number | undefined;
}

export interface HubFile {
  readonly name: string;
  readonly size: number;
  readonly hash: FileHash;
}

export interface HubRepository {
  readonly kind: "models" | "datasets";
  readonly id: string;
  readonly revision: string;
}

const repositorySchema = z.looseObject({
  sha: z.string().regex(/^[0-9a-f]{40}$/),
  siblings: z.array(
    z.looseObject({
      rfilename: z.string(),
      size: z.int().nullish(),
      blobId: z.string().nullish(),
      lfs: z.looseObject({ sha256: z.string(), size: z.int() }).nullish(),
    }),
  ),
});

function endpointOf({ environment = process.env }: HubOptions): string {
  return (environment["HF_ENDPOINT"] || "https://huggingface.co").replace(/\/+$/, "");
}

function headersOf({ environment = process.env }: HubOptions): Record<string, string> {
  const token = environment["HF_TOKEN"];
  return token ? { authorization: `Bearer ${token}` } : {};
}

/**
 * Commit and files of a repository at a revision.
 * @throws MODEL_NETWORK_UNAVAILABLE, MODEL_NOT_FOUND, MODEL_DOWNLOAD_FAILED
 */
export async function listRepository(
  { kind, id, revision }: HubRepository,
  options: HubOptions,
): Promise<{ commit: string; files: HubFile[] }> {
  const url = `${endpointOf(options)}/api/${kind}/${id}/revision/${encodeURIComponent(revision)}?blobs=true`;
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(url, { headers: headersOf(options), ...(options.signal ? { signal: options.signal } : {}) });
    body = await response.json().catch(() => null);
  } catch (cause) {
    options.signal?.throwIfAborted();
    const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(cause);
    throw new RollscopeError("MODEL_NETWORK_UNAVAILABLE", `${new URL(url).host} cannot be reached: ${inner}.`, {
      next: "Check the network, or set model.source to a local folder or to a named source.",
      cause,
      at: { url },
    });
  }
  if (response.status === 401 || response.status === 403 || response.status === 404) {
    throw new RollscopeError("MODEL_NOT_FOUND", `There is no ${id} at ${revision}, or it needs a token.`, {
      next: "Check id and revision; for a repository with terms accept them in a browser and set HF_TOKEN.",
      at: { url, status: response.status },
    });
  }
  const parsed = repositorySchema.safeParse(body);
  if (!response.ok || !parsed.success) {
    throw new RollscopeError(
      "MODEL_DOWNLOAD_FAILED",
      `The Hub answered ${response.status} for ${id}, without a file list.`,
      {
        next: "Try again later.",
        at: { url, status: response.status },
      },
    );
  }
  const files = parsed.data.siblings.flatMap(({ rfilename, size, blobId, lfs }): HubFile[] => {
    // A name that would leave the folder is no name of a file in it.
    if (rfilename.startsWith("/") || rfilename.split("/").includes("..")) return [];
    if (lfs != null) return [{ name: rfilename, size: lfs.size, hash: { algorithm: "sha256", digest: lfs.sha256 } }];
    if (blobId == null || size == null) return [];
    return [{ name: rfilename, size, hash: { algorithm: "git-sha1", digest: blobId } }];
  });
  return { commit: parsed.data.sha, files };
}

const companions =
  /^(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template)\.json$|^(merges\.txt|chat_template\.jinja|tokenizer\.model)$/;

/** Of a repository's files those that an engine reads: safetensors, configuration, tokenizer, template. */
export function modelFiles(files: readonly HubFile[]): HubFile[] {
  const top = files.filter(({ name }) => !name.includes("/"));
  const weights = top.filter(({ name }) => /\.safetensors(\.index\.json)?$/.test(name));
  const named = weights.filter(({ name }) => name.startsWith("model"));
  return [...(named.length > 0 ? named : weights), ...top.filter(({ name }) => companions.test(name))];
}

/** Fetches these files of the repository into a folder; files that are there already are not fetched again. */
export async function fetchRepository(
  repository: HubRepository,
  listed: { readonly commit: string; readonly files: readonly HubFile[] },
  folder: string,
  options: HubOptions,
): Promise<Manifest["files"]> {
  const total = listed.files.reduce((sum, file) => sum + file.size, 0);
  const fetched: Manifest["files"] = [];
  let before = 0;
  for (const { name, size, hash } of listed.files) {
    const base = repository.kind === "datasets" ? `${endpointOf(options)}/datasets` : endpointOf(options);
    const path = name.split("/").map(encodeURIComponent).join("/");
    const done = await downloadFile({
      url: `${base}/${repository.id}/resolve/${listed.commit}/${path}`,
      target: join(folder, name),
      size,
      hash,
      headers: headersOf(options),
      signal: options.signal,
      tries: options.tries,
      firstDelay: options.firstDelay,
      onProgress: (bytes) => options.onProgress?.({ done: before + bytes, total }),
    });
    fetched.push({ name, ...done });
    before += size;
  }
  return fetched;
}
