// Another user of this machine: what such a one may reach by the modes of files, and, where the tests run as root, a process of theirs.
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname } from "node:path";

const nobody = "65534";

/** Whether the modes of a file and of the folders above it let somebody else open it. */
export function isOpenToOthers(path: string): boolean {
  if ((statSync(path).mode & 0o006) === 0) return false;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/**
 * Runs JavaScript as another user and returns what it printed. Where this is not possible it runs as this user: then only what needs
 * no file shows anything.
 */
export function runAsOther(
  code: string,
  words: readonly string[],
): { readonly isOther: boolean; readonly told: string } {
  const isOther = process.getuid?.() === 0;
  const drop = isOther ? ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"] : [];
  const [file, ...rest] = [...drop, process.execPath, "-e", code, ...words];
  const done = spawnSync(file as string, rest, { encoding: "utf8", cwd: "/" });
  if (done.status !== 0) throw new Error(`${done.error?.message ?? ""} ${done.stderr}`);
  return { isOther, told: done.stdout };
}
