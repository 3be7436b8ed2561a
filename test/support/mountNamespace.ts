// Mounts that only one program sees.
import { spawnSync } from "node:child_process";

/** The command that gives a program mounts of its own, as root or as a user who is root inside; null where there is none. */
export function mountNamespace(): string[] | null {
  for (const command of [
    ["unshare", "--mount"],
    ["unshare", "--user", "--map-root-user", "--mount"],
  ]) {
    const mount = ["mount", "-t", "tmpfs", "none", "/mnt"];
    if (spawnSync(command[0] as string, [...command.slice(1), ...mount]).status === 0) return command;
  }
  return null;
}
