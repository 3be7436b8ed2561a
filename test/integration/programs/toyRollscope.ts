// The command line as a process of its own, with the engines of the toy model.
import { endProcess } from "../../../agent-daemon/src/cli/endProcess.ts";
import { processContext } from "../../../agent-daemon/src/cli/processContext.ts";
import { runProgram } from "../../../agent-daemon/src/cli/program.ts";
import { referenceEngines } from "../../support/referenceEngines.ts";

runProgram(process.argv.slice(2), processContext(referenceEngines, "0.0.0")).then(endProcess);
