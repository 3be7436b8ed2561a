// Fetches one file over HTTP(S) into place: goes on where an earlier try broke off, checks length and hash, and puts the file
// under its name only when it is whole. Knows nothing of models.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { RollscopeError } from "../../../protocol/errors.ts";

export interface FileHash {
  readonly algorithm: "sha256" | "git-sha1";
  /** Hexadecimal. */
  readonly digest: string;
}

export interface Download {
  readonly url: string;
  /** Final path; `<target>.partial` holds what has arrived. */
  readonly target: string;
  /** Bytes, when known beforehand. */
  readonly size?: number | undefined;
  readonly hash?: FileHash | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, total: number | null) => void) | undefined;
  /** Tries in a row that bring no byte before it is given up. */
  readonly tries?: number | undefined;
  /** Milliseconds before the second try; doubles with each. */
  readonly firstDelay?: number | undefined;
}

/** What identifies the content that a partial file is part of. */
interface Validator {
  readonly url: string;
  readonly etag: string | null;
}

/** SHA-256, or Git's SHA-1 of a blob (`blob <bytes>\0` and the content), of a file. */
export async function hashFile(file: string, algorithm: FileHash["algorithm"]): Promise<string> {
  const hash = createHash(algorithm === "sha256" ? "sha256" : "sha1");
  if (algorithm === "git-sha1") hash.update(`blob ${(await stat(file)).size}\0`);
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

const sizeOf = async (file: string) => (await stat(file).catch(() => null))?.size ?? 0;

/** A refusal of the server, which no further try changes. */
function refusal(url: string, status: number): RollscopeError {
  const denied = status === 401 || status === 403;
  return new RollscopeError("MODEL_NOT_FOUND", `The server answers ${status} for ${url}.`, {
    next: denied
      ? "Accept the repository's terms in a browser and set HF_TOKEN, or check the name."
      : "Check the name and the revision.",
    at: { url, status },
  });
}

function networkError(url: string, cause: unknown, arrived: boolean): RollscopeError {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const said = inner instanceof Error ? inner.message || inner.name : String(inner);
  if (arrived) {
    return new RollscopeError("MODEL_DOWNLOAD_FAILED", `The download of ${url} broke off: ${said}.`, {
      next: "Run the same command again: it goes on where it stopped.",
      cause,
      at: { url },
    });
  }
  return new RollscopeError("MODEL_NETWORK_UNAVAILABLE", `${new URL(url).host} cannot be reached: ${said}.`, {
    next: "Check the network, or set model.source to a local folder or to a named source.",
    cause,
    at: { url },
  });
}

function diskError(file: string, cause: unknown): RollscopeError {
  const said = cause instanceof Error ? cause.message : String(cause);
  return new RollscopeError("MODEL_CACHE_FAILED", `${file} cannot be written: ${said}.`, {
    next: "Free disk space or set ROLLSCOPE_CACHE to a folder that can be written; what has arrived is kept.",
    cause,
    at: { file },
  });
}

/** One request. Returns the total length, when the server named it. Throws what fetch or the stream throws. */
async function receive(download: Download, partial: string): Promise<number | null> {
  const note = `${partial}.json`;
  let have = await sizeOf(partial);
  const known = await readFile(note, "utf8")
    .then((text) => JSON.parse(text) as Validator)
    .catch(() => null);
  if (have > 0 && known?.url !== download.url) have = 0;
  if (have > 0 && have === download.size) return have;
  const headers: Record<string, string> = { ...download.headers, "accept-encoding": "identity" };
  if (have > 0) {
    headers["range"] = `bytes=${have}-`;
    if (known?.etag != null) headers["if-range"] = known.etag;
  }
  const init: RequestInit = { headers };
  if (download.signal) init.signal = download.signal;
  const response = await fetch(download.url, init);
  const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "");
  const length = response.headers.get("content-length");
  let total: number | null = length === null ? null : Number(length);
  if (response.status === 206 && range !== null && Number(range[1]) === have) {
    total = range[2] === "*" ? null : Number(range[2]);
  } else if (response.status === 416 || response.status === 206) {
    // What lies here does not belong to what the server has: start over.
    await response.body?.cancel();
    await rm(partial, { force: true });
    return await receive(download, partial);
  } else if (response.ok) {
    have = 0;
  } else {
    await response.body?.cancel();
    if (response.status >= 400 && response.status < 500 && ![408, 425, 429].includes(response.status))
      throw refusal(download.url, response.status);
    throw new Error(`status ${response.status}`);
  }
  const etag = response.headers.get("etag");
  const validator: Validator = { url: download.url, etag: etag?.startsWith("W/") ? null : etag };
  const file = await open(partial, have === 0 ? "w" : "r+").catch((cause: unknown) => {
    throw diskError(partial, cause);
  });
  try {
    if (have === 0) await writeFile(note, JSON.stringify(validator));
    let at = have;
    download.onProgress?.(at, total);
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      try {
        // A disk that is nearly full takes a part of it.
        for (let done = 0; done < chunk.length; )
          done += (await file.write(chunk, done, chunk.length - done, at + done)).bytesWritten;
      } catch (cause) {
        throw diskError(partial, cause);
      }
      at += chunk.length;
      download.onProgress?.(at, total);
    }
    await file.sync();
    if (total !== null && at < total) throw new Error(`${at} of ${total} bytes arrived`);
    return total;
  } finally {
    await file.close();
  }
}

/** The file in place, when its size and hash are those that were announced. */
async function isWhole({ target, size, hash }: Download): Promise<{ sha256: string; size: number } | null> {
  if (hash === undefined) return null;
  const bytes = (await stat(target).catch(() => null))?.size;
  if (bytes === undefined || (size !== undefined && size !== bytes)) return null;
  if ((await hashFile(target, hash.algorithm)) !== hash.digest) return null;
  return { sha256: hash.algorithm === "sha256" ? hash.digest : await hashFile(target, "sha256"), size: bytes };
}

/**
 * Brings a file into place, unless it is there already with the hash that was announced.
 *
 * @returns its SHA-256 and size
 * @throws MODEL_NOT_FOUND (the server refuses), MODEL_NETWORK_UNAVAILABLE (nothing arrived), MODEL_DOWNLOAD_FAILED (it broke
 * off; the next call goes on there), MODEL_HASH_MISMATCH (what arrived is deleted), MODEL_CACHE_FAILED (disk), or the reason
 * of an aborted signal
 */
export async function downloadFile(download: Download): Promise<{ sha256: string; size: number }> {
  const partial = `${download.target}.partial`;
  const present = await isWhole(download);
  if (present !== null) return present;
  await mkdir(dirname(download.target), { recursive: true }).catch((cause: unknown) => {
    throw diskError(dirname(download.target), cause);
  });
  const tries = download.tries ?? 5;
  let arrived = false;
  for (let failed = 0; ; ) {
    const before = await sizeOf(partial);
    try {
      await receive(download, partial);
      break;
    } catch (error) {
      download.signal?.throwIfAborted();
      if (error instanceof RollscopeError) throw error;
      const progressed = (await sizeOf(partial)) > before;
      arrived ||= progressed;
      failed = progressed ? 0 : failed + 1;
      if (failed >= tries) throw networkError(download.url, error, arrived);
      await delay((download.firstDelay ?? 500) * 2 ** failed, undefined, { signal: download.signal });
    }
  }
  const size = await sizeOf(partial);
  const sha256 = await hashFile(partial, "sha256");
  const { hash } = download;
  const digest = hash === undefined || hash.algorithm === "sha256" ? sha256 : await hashFile(partial, hash.algorithm);
  if ((hash !== undefined && hash.digest !== digest) || (download.size !== undefined && download.size !== size)) {
    await rm(partial, { force: true });
    await rm(`${partial}.json`, { force: true });
    throw new RollscopeError(
      "MODEL_HASH_MISMATCH",
      `What arrived from ${download.url} is not the file that was announced.`,
      {
        next: "Run the same command again; the damaged file has been deleted.",
        at: { url: download.url, size, digest },
      },
    );
  }
  await rename(partial, download.target);
  await rm(`${partial}.json`, { force: true });
  return { sha256, size };
}
