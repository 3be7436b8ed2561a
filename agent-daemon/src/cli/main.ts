#!/usr/bin/env node
// The executable `rollscope`: this process's streams and signals, and the embedded engine, given to the program.
import { embeddedEngines } from "../runs/embeddedEngines.ts";
import { endProcess, ignoreGoneReaders } from "./endProcess.ts";
import { processContext } from "./processContext.ts";
import { runProgram } from "./program.ts";

ignoreGoneReaders();

const version = process.env["ROLLSCOPE_VERSION"] ?? "0.0.0-source";
await endProcess(await runProgram(process.argv.slice(2), processContext(embeddedEngines, version)));
