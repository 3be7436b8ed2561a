// Bundles a TypeScript file of the tests as a module that a process of its own can run. It lies inside the repository, as deep as
// the sources do, because there it finds its packages and the native engine.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** Bundles test/<path>; `script` is for `startProgram`. */
export async function bundleModule(path: string): Promise<{ readonly script: string; readonly remove: () => void }> {
  const programs = join(repository, "build", "programs");
  mkdirSync(programs, { recursive: true });
  const folder = mkdtempSync(join(programs, "program-"));
  const outfile = join(folder, "program.mjs");
  await build({
    entryPoints: [join(repository, "test", path)],
    outfile,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    packages: "external",
    logLevel: "error",
  });
  return { script: outfile, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
