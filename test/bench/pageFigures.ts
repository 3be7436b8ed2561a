// Runs a browser test several times, takes the median of each figure that it tells, and compares with what is promised for a machine
// that does nothing else. The tests themselves hold what any machine can hold.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { figuresVariable } from "../support/figures.ts";
import { median, report } from "./work.ts";

/** @param limits greatest value of each figure; ends the process with 1 when one is greater */
export function benchPages(name: string, test: string, limits: Readonly<Record<string, number>>): void {
  const rounds = Number(process.argv[2] ?? 3);
  const folder = mkdtempSync(join(tmpdir(), "rollscope-bench-"));
  const file = join(folder, "figures.jsonl");
  try {
    for (let round = 1; round <= rounds; round++) {
      console.log(`round ${round} of ${rounds}`);
      const vitest = ["node_modules/vitest/vitest.mjs", "run", "--project", "browser", test];
      const { status } = spawnSync(process.execPath, vitest, {
        stdio: "inherit",
        env: { ...process.env, [figuresVariable]: file },
      });
      if (status !== 0) throw new Error(`${test} failed; what it says stands above`);
    }
    const told = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, number>);
    const names = [...new Set(told.flatMap((figures) => Object.keys(figures)))];
    const values = Object.fromEntries(
      names.map((key) => [key, median(told.flatMap((figures) => figures[key] ?? []))] as const),
    );
    const beyond = Object.keys(limits).filter((key) => !(values[key]! <= limits[key]!));
    report(name, values, { rounds, limits, beyond });
    if (beyond.length > 0) process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
