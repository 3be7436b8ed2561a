// npm start: set up, then run the main job, which ends by itself and says how to look at what it learned.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { rootDir } from "./paths.mjs";
import { setUp } from "./setup.mjs";

await setUp();
const child = spawn(
  process.execPath,
  [
    "--enable-source-maps",
    join(rootDir, "dist", "cli.mjs"),
    "run",
    join(rootDir, "recipes", "arithmetic-grpo"),
    ...process.argv.slice(2),
  ],
  {
    cwd: rootDir,
    stdio: "inherit",
  },
);
// The terminal sends Ctrl-C to the whole group; the run decides what it means, this process only waits for it.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 1)));
