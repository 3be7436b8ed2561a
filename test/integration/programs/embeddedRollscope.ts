// The command line as a process of its own, with the embedded engine, from the sources.
import { endProcess } from "../../../agent-daemon/src/cli/endProcess.ts";
import { processContext } from "../../../agent-daemon/src/cli/processContext.ts";
import { runProgram } from "../../../agent-daemon/src/cli/program.ts";
import { embeddedEngines } from "../../../agent-daemon/src/runs/embeddedEngines.ts";

runProgram(process.argv.slice(2), processContext(embeddedEngines, "0.0.0")).then(endProcess);
