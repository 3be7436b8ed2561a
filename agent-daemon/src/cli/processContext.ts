// What the program is given when it runs as a process: this process's streams, environment, signals and clock.
import { basename, relative } from "node:path";
import { thriftyFlags } from "../daemon/server/daemonAddress.ts";
import type { OpenEngines } from "../runs/runRecipe.ts";
import { runClock } from "../sampling/clock.ts";
import type { ProgramContext } from "./program.ts";

export function processContext(openEngines: OpenEngines, version: string): ProgramContext {
  return {
    version,
    invocation: invocationOf(process.argv[1] ?? ""),
    clock: runClock,
    openEngines,
    onSignal(handler) {
      const signals = ["SIGINT", "SIGTERM"] as const;
      for (const signal of signals) process.on(signal, handler);
      return () => {
        for (const signal of signals) process.off(signal, handler);
      };
    },
    daemon: {
      program: {
        file: process.execPath,
        // Without an inspector's options: two processes cannot share its port.
        args: [
          ...process.execArgv.filter((word) => !word.startsWith("--inspect") && !thriftyFlags.includes(word)),
          process.argv[1] ?? "",
        ],
      },
      input: process.stdin,
      output: process.stdout,
    },
    streams: { stdout: process.stdout, stderr: process.stderr, environment: process.env },
  };
}

/** The payload's start script says how it was called; in a checkout the script is a file. */
function invocationOf(script: string): string {
  const called = process.env["ROLLSCOPE_INVOKED_AS"];
  // Not for what this process starts.
  delete process.env["ROLLSCOPE_INVOKED_AS"];
  if (called !== undefined && called !== "") return called;
  if (basename(script) === "rollscope") return "rollscope";
  const path = relative(process.cwd(), script);
  return `node ${path.startsWith("..") ? script : path}`;
}
