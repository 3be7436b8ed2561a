// Takes the pictures of README and docs anew and puts them into docs/pictures: `npm run pictures -- RUNS`. RUNS is a folder of runs of
// recipes/arithmetic-grpo to show, the newest one stopped before its last step, which is resumed for the picture of the terminal.
// Without it the short run of the test suite is shown. Look at the pictures before you commit them.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { rootDir } from "./paths.mjs";

const taken = join(rootDir, ".test-results", "vscode", "pictures");
const shown = join(rootDir, "docs", "pictures");
const [runs] = process.argv.slice(2);

rmSync(taken, { recursive: true, force: true });
execFileSync(
  join(rootDir, "node_modules", ".bin", "vitest"),
  ["run", "--project", "vscode", "test/vscode/pictures.test.ts"],
  {
    cwd: rootDir,
    stdio: "inherit",
    env: { ...process.env, ...(runs === undefined ? {} : { ROLLSCOPE_PICTURE_RUNS: resolve(runs) }) },
  },
);
mkdirSync(shown, { recursive: true });
for (const name of readdirSync(taken)) {
  copyFileSync(join(taken, name), join(shown, name));
  console.log(`docs/pictures/${name} (${Math.round(statSync(join(shown, name)).size / 1000)} KB)`);
}
