// The workspace that pictures are taken of: the shipped recipe beside runs of it that really ran. ROLLSCOPE_PICTURE_RUNS names a
// folder of longer runs to show instead, as scripts/pictures.mjs does; the newest of them is then resumed, so it must be stopped.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TemporaryHome } from "./temporaryHome.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const recipe = "arithmetic-grpo";
/** Small enough for a slow machine, and still every part of a step. */
const short = [
  ...["--training.steps=3", "--sampling.tasksPerStep=2", "--sampling.groupSize=4", "--sampling.maxNewTokens=12"],
  ...["--sampling.refill.limit=1", "--evaluation.tasks=2", "--evaluation.maxNewTokens=12"],
];

/** Fills the folder. The newest run is stopped and can be resumed. */
export async function preparePictureRuns(folder: string, home: TemporaryHome, payload: string): Promise<void> {
  cpSync(join(repository, "recipes", recipe), join(folder, recipe), { recursive: true });
  const runs = join(folder, "runs");
  const given = process.env["ROLLSCOPE_PICTURE_RUNS"];
  if (given !== undefined) cpSync(given, runs, { recursive: true });
  else {
    mkdirSync(runs);
    const run = spawn(join(payload, "bin", "rollscope"), ["run", recipe, ...short], {
      cwd: folder,
      env: home.environment,
      stdio: ["ignore", "ignore", "pipe"],
    });
    await stoppedAfter(1, run, runs);
  }
}

/** Asks the run to stop once it has committed this many steps, and waits until it has. */
async function stoppedAfter(steps: number, run: ReturnType<typeof spawn>, runs: string): Promise<void> {
  let written = "";
  run.stderr?.setEncoding("utf8").on("data", (text: string) => {
    written += text;
  });
  const ended = new Promise<string>((resolve) => run.once("exit", (code, signal) => resolve(String(signal ?? code))));
  const committed = () =>
    readdirSync(runs)
      .map((name) => join(runs, name, "journal.jsonl"))
      .filter((journal) => existsSync(journal))
      .some((journal) => (readFileSync(journal, "utf8").match(/"type":"step"/g) ?? []).length >= steps);
  let asked = false;
  // Once: a second interrupt stops at once, in the middle of a step.
  const looking = setInterval(() => {
    if (!asked && committed()) asked = run.kill("SIGINT");
  }, 200);
  const outcome = await ended;
  clearInterval(looking);
  if (outcome !== "130") throw new Error(`the run ended with ${outcome} instead of being stopped\n${written}`);
}

/** Lets terminals of the home find `rollscope`, and keeps the name of the machine out of their prompt. */
export function putOnPath(home: TemporaryHome, payload: string): void {
  writeFileSync(join(home.path, ".bashrc"), `export PATH="${join(payload, "bin")}:$PATH" PS1='\\W $ '\n`);
}
