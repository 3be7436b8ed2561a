// Programs that come from the system: tries each, and installs what is missing as root; otherwise prints the exact
// command and stops.
import { execFileSync, spawnSync } from "node:child_process";
import { say, stop } from "./setupLog.mjs";

function works([command, ...args]) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** `programs`: `{ name, probe, packages }`: what it is, a command that shows it works, the Debian packages that bring it. */
export function needPrograms(programs) {
  const missing = programs.filter((program) => !works(program.probe));
  if (missing.length === 0) return;
  const names = missing.map((program) => program.name).join(", ");
  const packages = missing.flatMap((program) => program.packages);
  if (process.getuid?.() !== 0 || !works(["apt-get", "--version"])) {
    stop(`${names} not found.`, `sudo apt-get update && sudo apt-get install -y ${packages.join(" ")}`);
  }
  say(`install ${packages.join(", ")}: ${names} not found`);
  // Debian asks nothing of a machine that nobody watches.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  execFileSync("apt-get", ["update", "-qq"], { stdio: "inherit", env });
  execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages], {
    stdio: ["ignore", "ignore", "inherit"],
    env,
  });
}
