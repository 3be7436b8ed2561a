// The extension as it is installed: packed from the checkout's manifest and dist/, which `npm run build` writes.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const vsce = fileURLToPath(new URL("../../node_modules/.bin/vsce", import.meta.url));

/** Returns `file`, which it wrote. */
export function packProduct(file: string): string {
  const flags = ["--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links"];
  execFileSync(vsce, ["package", ...flags, "--out", file], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  return file;
}
