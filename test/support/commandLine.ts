// Runs command lines in the test's process, with streams that keep what was written.

import { PassThrough } from "node:stream";
import type { ExitName } from "../../agent-daemon/src/cli/exitCodes.ts";
import { type ProgramContext, runProgram } from "../../agent-daemon/src/cli/program.ts";
import { systemClock } from "../../agent-daemon/src/sampling/clock.ts";
import { referenceEngines } from "./referenceEngines.ts";

export interface CommandResult {
  readonly exit: ExitName;
  readonly stdout: string;
  readonly stderr: string;
  /** Of --json. */
  json(): unknown;
}

export interface CommandOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** A terminal of this many columns. */
  readonly columns?: number;
}

/** `line` is cut at spaces. */
export async function command(line: string | readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const { columns } = options;
  const written = { stdout: "", stderr: "" };
  const stream = (name: "stdout" | "stderr") => ({
    write: (text: string) => {
      written[name] += text;
    },
    ...(columns === undefined ? {} : { isTTY: true, columns, rows: 40 }),
  });
  const context: ProgramContext = {
    version: "0.0.0",
    invocation: "rollscope",
    clock: systemClock,
    openEngines: referenceEngines,
    onSignal: () => () => {},
    daemon: { program: { file: process.execPath, args: [] }, input: new PassThrough(), output: new PassThrough() },
    streams: { stdout: stream("stdout"), stderr: stream("stderr"), environment: options.environment ?? {} },
  };
  const exit = await runProgram(typeof line === "string" ? line.split(" ") : line, context);
  return { exit, ...written, json: () => JSON.parse(written.stdout) };
}
