// The command line as a process of its own, with the engines of the toy model.
import { endProcess, ignoreGoneReaders } from "../../../agent-daemon/src/cli/endProcess.ts";
import { processContext } from "../../../agent-daemon/src/cli/processContext.ts";
import { runProgram } from "../../../agent-daemon/src/cli/program.ts";
import { referenceEngines } from "../../support/referenceEngines.ts";

ignoreGoneReaders();
runProgram(process.argv.slice(2), processContext(referenceEngines, "0.0.0")).then(endProcess);
