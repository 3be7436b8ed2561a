// Fetches the matrix library that the engine is linked against into .cache/: oneDNN on x86-64, OpenBLAS elsewhere.
// Downloads are hash-checked by pip; nothing is unpacked under its final name before it is whole.
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { cacheDir, rootDir } from "./paths.mjs";

/** What build-native.mjs needs to know: kind, where headers and library lie, and how to link. */
export function matrixLibrary() {
  const kind = process.env.ROLLSCOPE_MATRIX_LIBRARY ?? (process.arch === "x64" ? "onednn" : "openblas");
  const dir = join(cacheDir, kind);
  return kind === "onednn"
    ? { kind, dir, library: "libdnnl.so.3", link: "-l:libdnnl.so.3", defines: [] }
    : { kind, dir, library: "libscipy_openblas.so", link: "-l:libscipy_openblas.so", defines: ["-DROLLSCOPE_CBLAS"] };
}

/** Downloads and unpacks the library unless it is there. Returns true when something was done. */
export function fetchMatrixLibrary(say) {
  const library = matrixLibrary();
  if (existsSync(join(library.dir, "lib", library.library))) return false;
  say(`fetch the matrix library (${library.kind}): the engine's products run on it`);
  mkdirSync(cacheDir, { recursive: true });
  const work = mkdtempSync(join(cacheDir, "fetch-"));
  try {
    const packages = library.kind === "onednn" ? ["onednn-cpu-gomp", "onednn-devel-cpu-gomp"] : ["scipy-openblas32"];
    pipDownload(packages, work);
    const unpacked = join(work, "unpacked");
    for (const wheel of readdirSync(work).filter((name) => name.endsWith(".whl"))) {
      execFileSync("python3", ["-m", "zipfile", "-e", join(work, wheel), unpacked]);
    }
    const staged = join(work, "staged");
    for (const part of ["include", "lib"]) mkdirSync(join(staged, part), { recursive: true });
    for (const name of readdirSync(unpacked)) {
      const base = name.endsWith(".data") ? join(unpacked, name, "data") : join(unpacked, name);
      for (const part of ["include", "lib"]) {
        if (existsSync(join(base, part))) cpSync(join(base, part), join(staged, part), { recursive: true });
      }
    }
    // The wheel holds the library once for each of its names; one file and links do.
    if (library.kind === "onednn") {
      for (const name of ["libdnnl.so", "libdnnl.so.3.2"]) {
        rmSync(join(staged, "lib", name), { force: true });
        symlinkSync(library.library, join(staged, "lib", name));
      }
    }
    rmSync(library.dir, { recursive: true, force: true });
    renameSync(staged, library.dir);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return true;
}

function pipDownload(packages, into) {
  // One file pins every platform's packages; the platform markers are dropped so that a library can be chosen by hand.
  const pinned = readFileSync(join(rootDir, "scripts", "requirements-native.txt"), "utf8").replaceAll("\\\n", " ");
  const wanted = join(into, "requirements.txt");
  const lines = pinned.split("\n").filter((line) => packages.some((name) => line.startsWith(`${name}==`)));
  writeFileSync(wanted, lines.map((line) => `${line.replace(/;[^-]*/, "")}\n`).join(""));
  execFileSync(
    "python3",
    [
      "-m",
      "pip",
      "download",
      "--quiet",
      "--disable-pip-version-check",
      "--no-deps",
      "--require-hashes",
      "-d",
      into,
      "-r",
      wanted,
    ],
    {
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
}
