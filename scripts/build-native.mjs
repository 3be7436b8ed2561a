// Compiles native/engine and native/binding into native/build/rollscope.node, and native/helper into native/build/rollscope-helper,
// with nothing but a C++ compiler.
// An object is compiled again when its source, any header or the flags changed. Files named *.simd.cpp are compiled once
// for each instruction set; the engine picks one at run time.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { matrixLibrary } from "./matrixLibrary.mjs";
import { nativeBuildDir, rootDir } from "./paths.mjs";

const require = createRequire(import.meta.url);

const instructionSets =
  process.arch === "x64"
    ? [
        { name: "isa_v4", flags: ["-march=x86-64-v4"] },
        { name: "isa_v3", flags: ["-march=x86-64-v3"] },
        { name: "isa_v2", flags: ["-march=x86-64-v2"] },
      ]
    : [{ name: "isa_v2", flags: [] }];

const helperDir = join(rootDir, "native", "helper");

/** Compiles the helper when a source of it changed: a program of its own, which needs neither Node nor the matrix library. */
async function buildHelper(say) {
  const compiler = process.env.CXX ?? "c++";
  const flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror=return-type"];
  const sources = filesUnder(helperDir, [".cpp"]);
  const digest = createHash("sha256").update(JSON.stringify([compiler, flags, process.arch]));
  for (const file of filesUnder(helperDir, [".cpp", ".h"])) digest.update(readFileSync(file));
  const wanted = digest.digest("hex");
  const program = join(nativeBuildDir, "rollscope-helper");
  const stamp = `${program}.sha256`;
  if (existsSync(program) && existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return false;
  say("compile the native helper");
  mkdirSync(nativeBuildDir, { recursive: true });
  const staged = `${program}.${process.pid}`;
  await run(compiler, [...flags, ...sources, "-o", staged, ...(process.platform === "linux" ? ["-ldl"] : [])]);
  renameSync(staged, program);
  writeFileSync(stamp, wanted);
  return true;
}

function filesUnder(dir, endings) {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .filter((path) => !path.startsWith(nativeBuildDir) && (dir === helperDir || !path.startsWith(helperDir)))
    .sort();
}

/** Compiles what changed and links. Returns true when something was done. `say` reports steps. */
export async function buildNative(say) {
  const helper = await buildHelper(say);
  return (await buildAddon(say)) || helper;
}

async function buildAddon(say) {
  const compiler = process.env.CXX ?? "c++";
  const library = matrixLibrary();
  const nodeAddonApi = require("node-addon-api").include_dir;
  const nodeApi = require("node-api-headers").include_dir;
  const common = [
    "-std=c++20",
    "-O3",
    "-fPIC",
    "-fopenmp",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror=return-type",
    "-Wno-psabi",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-DNAPI_VERSION=8",
    "-DNODE_ADDON_API_CPP_EXCEPTIONS",
    "-DNODE_ADDON_API_DISABLE_DEPRECATED",
    `-I${join(rootDir, "native", "engine")}`,
    `-I${nodeAddonApi.replaceAll('"', "")}`,
    `-I${nodeApi}`,
    `-I${join(library.dir, "include")}`,
    ...library.defines,
  ];
  const sources = filesUnder(join(rootDir, "native"), [".cpp"]);
  if (sources.length === 0) throw new Error("native/ holds no sources");
  const headers = createHash("sha256");
  for (const header of filesUnder(join(rootDir, "native"), [".h"])) headers.update(readFileSync(header));
  headers.update(JSON.stringify([compiler, common, library.kind, process.arch]));
  const headersDigest = headers.digest("hex");

  mkdirSync(join(nativeBuildDir, "objects"), { recursive: true });
  const units = sources.flatMap((source) => {
    const name = relative(join(rootDir, "native"), source)
      .replaceAll("/", "_")
      .replace(/\.cpp$/, "");
    return source.endsWith(".simd.cpp")
      ? instructionSets.map((set) => ({
          source,
          object: `${name}.${set.name}.o`,
          flags: [...set.flags, `-DROLLSCOPE_ISA=${set.name}`, "-ffp-contract=fast"],
        }))
      : [{ source, object: `${name}.o`, flags: [] }];
  });
  const stale = units.filter((unit) => {
    const digest = createHash("sha256")
      .update(headersDigest)
      .update(JSON.stringify(unit.flags))
      .update(readFileSync(unit.source))
      .digest("hex");
    unit.digest = digest;
    unit.path = join(nativeBuildDir, "objects", unit.object);
    const stamp = `${unit.path}.sha256`;
    return !(existsSync(unit.path) && existsSync(stamp) && readFileSync(stamp, "utf8") === digest);
  });
  const addon = join(nativeBuildDir, "rollscope.node");
  const linked = join(nativeBuildDir, "linked.sha256");
  const linkDigest = createHash("sha256")
    .update(units.map((unit) => unit.digest).join())
    .digest("hex");
  const upToDate = existsSync(addon) && existsSync(linked) && readFileSync(linked, "utf8") === linkDigest;
  if (stale.length === 0 && upToDate) return false;

  const patience = stale.length > 10 ? "; this takes a few minutes on two cores" : "";
  say(`compile the engine (${stale.length} of ${units.length} objects changed)${patience}`);
  const queue = [...stale];
  const workers = Array.from({ length: Math.min(availableParallelism(), 4) }, async () => {
    for (let unit = queue.shift(); unit !== undefined; unit = queue.shift()) {
      // Built beside and renamed, so that two builds at once (two test runs, say) cannot mix their halves.
      const staged = `${unit.path}.${process.pid}.o`;
      await run(compiler, [...common, ...unit.flags, "-c", unit.source, "-o", staged]);
      renameSync(staged, unit.path);
      writeFileSync(`${unit.path}.sha256`, unit.digest);
    }
  });
  const results = await Promise.allSettled(workers);
  const failure = results.find((result) => result.status === "rejected");
  if (failure !== undefined) throw failure.reason;
  const bundled = join(nativeBuildDir, library.library);
  if (!existsSync(bundled)) {
    cpSync(join(library.dir, "lib", library.library), `${bundled}.${process.pid}`, { dereference: true });
    renameSync(`${bundled}.${process.pid}`, bundled);
  }
  const staged = `${addon}.${process.pid}`;
  await run(compiler, [
    "-shared",
    "-fopenmp",
    "-o",
    staged,
    ...units.map((unit) => unit.path),
    `-L${nativeBuildDir}`,
    library.link,
    "-Wl,-rpath,$ORIGIN",
    "-Wl,--gc-sections",
  ]);
  renameSync(staged, addon);
  writeFileSync(linked, linkDigest);
  return true;
}

function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"] });
    child.on("error", (cause) => reject(new Error(`cannot start ${command}: ${cause.message}`)));
    child.on("exit", (code, signal) =>
      code === 0
        ? resolve()
        : reject(new Error(`${command} failed (${signal ?? `exit ${code}`}) on ${args.at(-3) ?? ""}`)),
    );
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { fetchMatrixLibrary } = await import("./matrixLibrary.mjs");
  const say = (line) => console.log(line);
  fetchMatrixLibrary(say);
  if (!(await buildNative(say))) say("the engine is up to date");
}
