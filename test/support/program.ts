// Runs a TypeScript file of the tests as a process of its own, on every Node that is supported.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** Bundles test/<path> and returns the script to start with `startProgram`. */
export async function bundleProgram(path: string): Promise<string> {
  const outfile = join(mkdtempSync(join(tmpdir(), "program-")), "program.cjs");
  await build({
    entryPoints: [join(repository, "test", path)],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    packages: "external",
    logLevel: "error",
  });
  return outfile;
}

export interface Program {
  readonly process: ChildProcess;
  /** All that it wrote to standard output, when it has ended. */
  readonly output: Promise<string>;
  readonly ended: Promise<{
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
    readonly errors: string;
  }>;
}

export function startProgram(script: string, args: readonly string[], through: readonly string[] = []): Program {
  const command = [...through, process.execPath, script, ...args];
  const child = spawn(command[0] as string, command.slice(1), {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, NODE_PATH: join(repository, "node_modules") },
  });
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null; errors: string }>(
    (resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => resolve({ code, signal, errors }));
    },
  );
  return { process: child, ended, output: ended.then(() => output) };
}
