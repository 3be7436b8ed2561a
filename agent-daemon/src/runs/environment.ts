// What a run ran on: the facts that bitwise identity depends on (CPU type, thread count, versions) and where the code came
// from. Gathered once an attempt, written to environment.json; nothing personal is collected.
import { execFileSync } from "node:child_process";
import { arch, availableParallelism, cpus, platform, release, totalmem } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { ModelInfo } from "../engines/interface.ts";

export interface RunEnvironment {
  readonly rollscope: { readonly version: string; readonly commit: string | null; readonly changed: boolean | null };
  readonly node: string;
  readonly versions: { readonly [name: string]: string };
  readonly platform: string;
  readonly arch: string;
  readonly release: string;
  readonly cpu: { readonly model: string; readonly count: number; readonly available: number };
  readonly memoryBytes: number;
  readonly engine: ModelInfo;
}

/** Commit of the code that runs, and whether files differ from it; null where it is not a git checkout. */
function gitState(): { commit: string | null; changed: boolean | null } {
  const here = dirname(fileURLToPath(import.meta.url));
  const git = (...args: string[]) =>
    execFileSync("git", args, {
      cwd: here,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 5000,
    }).trim();
  try {
    return { commit: git("rev-parse", "HEAD"), changed: git("status", "--porcelain", "--untracked-files=no") !== "" };
  } catch {
    return { commit: null, changed: null };
  }
}

export function describeEnvironment(engine: ModelInfo, version: string): RunEnvironment {
  const processors = cpus();
  const { node: _node, ...versions } = process.versions;
  return {
    rollscope: { version, ...gitState() },
    node: process.version,
    versions: Object.fromEntries(
      Object.entries(versions).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
    platform: platform(),
    arch: arch(),
    release: release(),
    cpu: { model: processors[0]?.model ?? "unknown", count: processors.length, available: availableParallelism() },
    memoryBytes: totalmem(),
    engine,
  };
}
