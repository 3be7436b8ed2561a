#!/usr/bin/env node
// The executable `rollscope`: this process's streams and signals, and the embedded engine, given to the program.
import { embeddedEngines } from "../runs/embeddedEngines.ts";
import { endProcess } from "./endProcess.ts";
import { exitCodes } from "./exitCodes.ts";
import { processContext } from "./processContext.ts";
import { runProgram } from "./program.ts";

// A reader that is gone (`rollscope list | head`) is no fault.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(exitCodes.ok.code);
  throw error;
});

const version = process.env["ROLLSCOPE_VERSION"] ?? "0.0.0-source";
await endProcess(await runProgram(process.argv.slice(2), processContext(embeddedEngines, version)));
