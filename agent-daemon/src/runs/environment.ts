// What a run ran on: the facts that bitwise identity depends on (CPU type, thread count, versions), which code, model and
// data, and where they lie. One entry an attempt in environment.json; nothing personal is collected.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { arch, availableParallelism, cpus, platform, release, totalmem } from "node:os";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import type { ModelInfo } from "../engines/interface.ts";
import { shippedPath } from "../recipes/shippedFiles.ts";
import { type RunFolder, writeWhole } from "./runFolder.ts";

const count = z.int().min(0);
const sha256 = z.string();

const attemptEnvironmentSchema = z.object({
  attempt: z.int().min(1),
  rollscope: z.object({ version: z.string(), commit: z.string().nullable(), changed: z.boolean().nullable() }),
  node: z.string(),
  versions: z.record(z.string(), z.string()),
  platform: z.string(),
  arch: z.string(),
  release: z.string(),
  cpu: z.object({ model: z.string(), count, available: count }),
  memoryBytes: count,
  engine: z.object({
    architecture: z.string(),
    parameters: count,
    dtype: z.string(),
    threads: count,
    device: z.string(),
  }),
  model: z.object({ source: z.string(), path: z.string() }),
  recipe: z.object({ folder: z.string(), codeSha256: sha256 }),
  /** Task files with their contents' hash: the data order depends on them. */
  data: z.array(z.object({ file: z.string(), sha256 })),
});
export type AttemptEnvironment = z.infer<typeof attemptEnvironmentSchema>;

const runEnvironmentSchema = z.object({ attempts: z.array(attemptEnvironmentSchema) });

/**
 * Commit of the code that runs, and whether files differ from it; null where it is not a git checkout. A payload that lies
 * inside somebody's checkout is no part of it.
 */
async function gitState(): Promise<{ commit: string | null; changed: boolean | null }> {
  const cwd = dirname(shippedPath("recipes"));
  const git = async (...args: string[]) =>
    (await promisify(execFile)("git", args, { cwd, encoding: "utf8", timeout: 5000 })).stdout.trim();
  try {
    const [folderInCheckout, commit, changes] = await Promise.all([
      git("rev-parse", "--show-prefix"),
      git("rev-parse", "HEAD"),
      git("status", "--porcelain", "--untracked-files=no"),
    ]);
    return folderInCheckout === "" ? { commit, changed: changes !== "" } : { commit: null, changed: null };
  } catch {
    return { commit: null, changed: null };
  }
}

export async function describeEnvironment(
  engine: ModelInfo,
  given: Pick<AttemptEnvironment, "attempt" | "model" | "recipe" | "data"> & { readonly version: string },
): Promise<AttemptEnvironment> {
  const processors = cpus();
  const { version, ...where } = given;
  const { architecture, parameters, dtype, threads, device } = engine;
  const versions = Object.entries(process.versions).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return {
    ...where,
    rollscope: { version, ...(await gitState()) },
    node: process.version,
    versions: Object.fromEntries(versions),
    platform: platform(),
    arch: arch(),
    release: release(),
    cpu: { model: processors[0]?.model ?? "unknown", count: processors.length, available: availableParallelism() },
    memoryBytes: totalmem(),
    engine: { architecture, parameters, dtype, threads, device },
  };
}

function readAttempts(folder: RunFolder): AttemptEnvironment[] {
  try {
    return runEnvironmentSchema.parse(JSON.parse(readFileSync(folder.environment, "utf8"))).attempts;
  } catch {
    return [];
  }
}

/** Of the newest attempt; null when it was not written. */
export function readRunEnvironment(folder: RunFolder): AttemptEnvironment | null {
  return readAttempts(folder).at(-1) ?? null;
}

export function writeRunEnvironment(folder: RunFolder, environment: AttemptEnvironment): void {
  const earlier = readAttempts(folder).filter((each) => each.attempt !== environment.attempt);
  writeWhole(folder.environment, `${JSON.stringify({ attempts: [...earlier, environment] }, null, 2)}\n`);
}
