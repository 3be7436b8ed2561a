// Packs a folder with an extension into a VSIX, with the same packer as the product's own.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const vsce = fileURLToPath(new URL("../../node_modules/.bin/vsce", import.meta.url));

/** Returns `file`, which it wrote. */
export function packVsix(folder: string, file: string): string {
  const flags = ["--no-dependencies", "--allow-missing-repository", "--skip-license"];
  execFileSync(vsce, ["package", ...flags, "--out", file], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  return file;
}
