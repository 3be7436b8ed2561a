// Bundles the editor's extension into dist/: extension.cjs, loaded at activation, and extensionMain.cjs, loaded when the first command,
// view or page is used. CommonJS, which every editor of our range loads.
import { join } from "node:path";
import { build } from "esbuild";
import { rootDir } from "./paths.mjs";

/** Writes both bundles, with source maps, into a folder. */
export async function bundleExtension(outdir = join(rootDir, "dist")) {
  await build({
    entryPoints: {
      extension: join(rootDir, "extension/extension.ts"),
      extensionMain: join(rootDir, "extension/main.ts"),
    },
    outdir,
    outExtension: { ".js": ".cjs" },
    bundle: true,
    platform: "node",
    // Of the oldest editor that the extension supports.
    target: "node20",
    format: "cjs",
    minify: true,
    keepNames: true,
    sourcemap: "linked",
    legalComments: "none",
    // The first bundle loads the second by name, at run time.
    external: ["vscode", "./extensionMain.cjs"],
    logLevel: "warning",
  });
}
