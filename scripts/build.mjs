// Bundles the command line, the recipe API, the pages and the extension into dist/, which runs without the TypeScript sources.
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { bundleExtension } from "./buildExtension.mjs";
import { bundlePages } from "./buildPages.mjs";
import { rootDir } from "./paths.mjs";

const { version } = JSON.parse(readFileSync(join(rootDir, "package.json"), "utf8"));

/** Writes dist/cli.mjs and dist/recipe.mjs, with source maps. */
export async function bundle(say) {
  say("bundle the command line");
  await build({
    entryPoints: {
      cli: join(rootDir, "agent-daemon/src/cli/main.ts"),
      recipe: join(rootDir, "agent-daemon/src/recipes/api.ts"),
    },
    outdir: join(rootDir, "dist"),
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    sourcemap: true,
    // Kept outside: packages with binaries of their own, which a bundle cannot carry.
    external: ["libsql", "esbuild", "*.node"],
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
    define: { "process.env.ROLLSCOPE_VERSION": JSON.stringify(version) },
    logLevel: "warning",
  });
  chmodSync(join(rootDir, "dist", "cli.mjs"), 0o755);
  say("bundle the pages");
  await bundlePages();
  say("bundle the extension");
  await bundleExtension();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await bundle((line) => console.log(line));
  if (!existsSync(join(rootDir, "dist", "cli.mjs"))) process.exit(1);
}
