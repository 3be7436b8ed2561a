// Lays out and packs the payload: all that the daemon and runs are made of, in a folder that needs nothing of the checkout.
// It takes what set-up has built. The same input gives the same bytes.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { nativeBuildDir, rootDir } from "./paths.mjs";

/** What the bundle leaves outside (build.mjs), and what `check` and `dev` judge the types of recipes with. */
const packages = ["libsql", "esbuild", "typescript", "@types/node"];
/** Of packages that are here for one use, the files of that use. */
const usedFiles = {
  esbuild: /^(package\.json|lib\/)/,
  typescript: /^(package\.json|lib\/typescript\.js|lib\/lib\.([^/]*\.)?d\.ts)$/,
};
const uselessFile = /\.(map|md|mts|cts)$/i;
const legalText = /^(licen[cs]e|notice|thirdparty)/i;
const program = /^(bin|node\/bin|node_modules\/@esbuild\/[^/]+\/bin)\/|^native\/build\/rollscope-helper$/;

const platform = `${process.platform}-${process.arch}`;
/** Ends the names of packages whose binaries need the other C library. */
const otherLibc = process.report.getReport().header.glibcVersionRuntime === undefined ? "-gnu" : "-musl";

/**
 * Writes the folder anew. `node`: an executable to take along for machines without one.
 *
 * Returns what it wrote to manifest.json: { name, version, platform, node, contentHash, files: [{ path, mode, bytes,
 * sha256 }] }, sorted by path; contentHash is over the lines "mode sha256 path\n".
 */
function writePayload(folder, { node } = {}) {
  rmSync(folder, { recursive: true, force: true });
  const put = (from, to) => {
    const target = join(folder, to);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(from, target, { dereference: true });
    chmodSync(target, program.test(to) ? 0o755 : 0o644);
  };
  const putFolder = (from, to, wanted) => {
    for (const path of filesUnder(from)) if (wanted(path)) put(join(from, path), `${to}/${path}`);
  };
  put(join(rootDir, "scripts", "rollscope.sh"), "bin/rollscope");
  for (const name of ["LICENSE", "CHANGELOG.md"]) put(join(rootDir, name), name);
  for (const name of ["cli.mjs", "recipe.mjs"]) {
    put(join(rootDir, "dist", name), `dist/${name}`);
    withoutSourceMap(join(folder, "dist", name));
  }
  putFolder(join(rootDir, "dist", "webview"), "dist/webview", (path) => /\.(js|css)$/.test(path));
  putFolder(nativeBuildDir, "native/build", (path) =>
    /^(rollscope\.node|rollscope-helper|[^/]+\.so(\.\d+)*)$/.test(path),
  );
  putFolder(join(rootDir, "recipes"), "recipes", (path) => !/(^|\/)(runs|node_modules)\//.test(path));
  for (const name of withDependencies(packages)) {
    const used = usedFiles[name] ?? /./;
    putFolder(join(rootDir, "node_modules", name), `node_modules/${name}`, (path) => {
      return legalText.test(path) || (used.test(path) && !uselessFile.test(path));
    });
  }
  if (node !== undefined) put(node, "node/bin/node");
  const manifest = describe(folder);
  writeFileSync(join(folder, "manifest.json"), `${JSON.stringify(manifest, null, 1)}\n`);
  chmodSync(join(folder, "manifest.json"), 0o644);
  return manifest;
}

/** The map stays in the checkout; a debugger that is sent to a missing one complains about it. */
function withoutSourceMap(file) {
  writeFileSync(file, readFileSync(file, "utf8").replace(/\n\/\/# sourceMappingURL=\S+\s*$/, "\n"));
}

/**
 * Writes rollscope-PLATFORM, the same as .tar, and its SHA-256 as `sha256sum --check` reads it. Returns the
 * archive.
 */
export function packPayload(packageDir, { node } = {}) {
  const name = `rollscope-${platform}`;
  const folder = join(packageDir, name);
  const manifest = writePayload(folder, { node });
  const names = ["manifest.json", ...manifest.files.map(({ path }) => path)];
  const plain = ["--format=ustar", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--no-recursion"];
  const file = `${folder}.tar`;
  execFileSync("tar", [...plain, "-C", folder, "-cf", file, "-T", "-"], { input: names.join("\n") });
  const sha256 = createHash("sha256").update(readFileSync(file)).digest("hex");
  writeFileSync(`${file}.sha256`, `${sha256}  ${name}.tar\n`);
  return file;
}

function describe(folder) {
  const { name, version, engines } = JSON.parse(readFileSync(join(rootDir, "package.json"), "utf8"));
  const content = createHash("sha256");
  const files = filesUnder(folder).map((path) => {
    const bytes = readFileSync(join(folder, path));
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const mode = program.test(path) ? "755" : "644";
    content.update(`${mode} ${sha256} ${path}\n`);
    return { path, mode, bytes: bytes.length, sha256 };
  });
  return { name, version, platform, node: engines.node, contentHash: content.digest("hex"), files };
}

/** Paths in the folder, sorted; without hidden ones. */
function filesUnder(folder) {
  const paths = [];
  const visit = (inside) => {
    for (const entry of readdirSync(join(folder, inside), { withFileTypes: true })) {
      const path = inside === "" ? entry.name : `${inside}/${entry.name}`;
      if (entry.name.startsWith(".")) continue;
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile()) paths.push(path);
    }
  };
  visit("");
  return paths.sort((a, b) => (a < b ? -1 : 1));
}

/** The packages and all that they import, as installed for this platform and its C library. */
function withDependencies(names) {
  const found = new Set();
  const visit = (name, optional) => {
    if (found.has(name)) return;
    const file = join(rootDir, "node_modules", name, "package.json");
    if (!existsSync(file)) {
      if (optional) return;
      throw new Error(`${name} is not installed; run npm run setup.`);
    }
    const manifest = JSON.parse(readFileSync(file, "utf8"));
    found.add(name);
    for (const next of Object.keys(manifest.dependencies ?? {})) visit(next, false);
    for (const next of Object.keys(manifest.optionalDependencies ?? {})) {
      if (!next.endsWith(otherLibc)) visit(next, true);
    }
  };
  for (const name of names) visit(name, false);
  return [...found].sort();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(packPayload(resolve(process.argv[2] ?? ".")));
