// Starts programs of the payload: the bridge that joins this process to the daemon. Owns the child and its last words; knows nothing
// of what is said over its streams.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { homedir } from "node:os";
import type { NodeProgram } from "./nodeProgram.ts";
import type { Payload } from "./payload.ts";

export interface Launcher {
  readonly payload: Payload;
  readonly node: NodeProgram | null;
  /** Runs `rollscope ARGS…` with pipes. */
  readonly start: (args: readonly string[]) => Child;
}

export interface Child {
  readonly process: ChildProcessWithoutNullStreams;
  /** What it last wrote to standard error. */
  readonly lastWords: () => string;
  /** Never rejects; says how it ended. */
  readonly ended: Promise<string>;
  readonly end: () => void;
}

const keptCharacters = 4000;

export function createLauncher(payload: Payload, node: NodeProgram | null): Launcher {
  return {
    payload,
    node,
    start: (args) => {
      const [file, first] =
        payload.kind === "command" ? [payload.file, []] : [node === null ? "node" : node.file, [payload.file]];
      const child = spawn(file, [...first, ...args], {
        // Not the window's folder: a daemon that is started on the way would hold it.
        cwd: homedir(),
        stdio: "pipe",
        env: { ...process.env, ...node?.environment },
      });
      return watch(child);
    },
  };
}

function watch(child: ChildProcessWithoutNullStreams): Child {
  let tail = "";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (text: string) => {
    tail = (tail + text).slice(-keptCharacters);
  });
  // A write to a bridge that is gone is told by its end.
  child.stdin.on("error", () => {});
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`could not be started: ${error.message}`));
    child.once("close", (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  return {
    process: child,
    lastWords: () => tail.trim(),
    ended,
    end: () => {
      child.stdin.end();
      child.kill();
    },
  };
}
