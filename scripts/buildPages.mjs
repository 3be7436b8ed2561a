// Bundles the pages (dashboard, inspector) into dist/webview: one script and one style sheet each, which a strict policy can load.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { rootDir } from "./paths.mjs";

const webview = join(rootDir, "webview");

/** zod's messages in fifty languages: no person reads them here. */
export const withoutLocales = {
  name: "without-locales",
  setup(build) {
    build.onResolve({ filter: /^\.\.\/locales\/index\.js$/ }, ({ path, resolveDir }) =>
      resolveDir.includes(join("node_modules", "zod")) ? { path: join(resolveDir, path, "..", "en.js") } : undefined,
    );
  },
};

/** Writes <page>.js and <page>.css; a page is a folder with a main.tsx. */
export async function bundlePages() {
  const pages = readdirSync(webview).filter((name) => existsSync(join(webview, name, "main.tsx")));
  await build({
    entryPoints: Object.fromEntries(pages.map((name) => [name, join(webview, name, "main.tsx")])),
    outdir: join(rootDir, "dist", "webview"),
    bundle: true,
    platform: "browser",
    // Of the oldest editor that the extension supports.
    target: "chrome128",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    plugins: [withoutLocales],
    sourcemap: "linked",
    legalComments: "none",
    tsconfig: join(webview, "tsconfig.json"),
    logLevel: "warning",
  });
}
