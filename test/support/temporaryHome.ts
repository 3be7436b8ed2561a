// An empty home for programs under test, and the end of everything that was started in it: whoever has it as HOME is its
// process, also what detached itself from its parent. Linux only: reads /proc.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const reaper = fileURLToPath(new URL("programs/reaper.mjs", import.meta.url));

export interface HomeProcess {
  readonly pid: number;
  /** The command and its arguments. */
  readonly command: readonly string[];
}

export class TemporaryHome {
  readonly path: string;
  /** All that a program started in it gets: nothing of the environment that runs the tests but PATH. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #reaper: ChildProcess;

  constructor(more: Readonly<Record<string, string>> = {}) {
    // Short: the path of a socket below it must fit into 107 bytes.
    this.path = realpathSync(mkdtempSync(join(tmpdir(), "rs-")));
    const runtime = join(this.path, ".run");
    mkdirSync(runtime, { mode: 0o700 });
    this.environment = {
      PATH: process.env["PATH"] ?? "",
      HOME: this.path,
      XDG_RUNTIME_DIR: runtime,
      LANG: "C.UTF-8",
      ...more,
    };
    // Survives a kill of the tests' whole process group.
    this.#reaper = spawn(process.execPath, [reaper, this.path], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    this.#reaper.unref();
  }

  /** What runs in this home now. */
  processes(): HomeProcess[] {
    const found: HomeProcess[] = [];
    for (const name of readdirSync("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      try {
        if (!readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(`HOME=${this.path}`)) continue;
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").filter(Boolean);
        if (command.length > 0) found.push({ pid: Number(name), command });
      } catch {
        // It has ended meanwhile, or is another user's.
      }
    }
    return found;
  }

  /** Ends what still runs, first politely, and removes the folder. */
  async dispose(): Promise<void> {
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      for (const { pid } of this.processes()) {
        try {
          process.kill(pid, signal);
        } catch {
          // It has ended meanwhile.
        }
      }
      const deadline = Date.now() + 5_000;
      while (this.processes().length > 0 && Date.now() < deadline) await new Promise((next) => setTimeout(next, 20));
    }
    const ended = new Promise((resolve) => this.#reaper.once("exit", resolve));
    this.#reaper.stdin?.end();
    await ended;
    rmSync(this.path, { recursive: true, force: true });
  }
}
