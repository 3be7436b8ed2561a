// The command line with the engines of the toy model, which fill the disk at a moment that the environment names:
// ROLLSCOPE_TEST_FILL is the file to write into, ROLLSCOPE_TEST_FILL_AT the method of an engine and which call of it, as in `save 2`.
import { endProcess, ignoreGoneReaders } from "../../../agent-daemon/src/cli/endProcess.ts";
import { processContext } from "../../../agent-daemon/src/cli/processContext.ts";
import { runProgram } from "../../../agent-daemon/src/cli/program.ts";
import type { OpenEngines } from "../../../agent-daemon/src/runs/runRecipe.ts";
import { fillDisk } from "../../support/filledDisk.ts";
import { referenceEngines } from "../../support/referenceEngines.ts";

const file = process.env["ROLLSCOPE_TEST_FILL"];
const [method, number] = (process.env["ROLLSCOPE_TEST_FILL_AT"] ?? "").split(" ");

const fillingEngines: OpenEngines = async (...given) => {
  const engines = await referenceEngines(...given);
  if (file === undefined) return engines;
  let calls = 0;
  const filling = <T extends object>(engine: T): T =>
    new Proxy(engine, {
      get(target, name) {
        const found: unknown = Reflect.get(target, name, target);
        if (typeof found !== "function") return found;
        if (name !== method) return found.bind(target);
        return async (...words: unknown[]) => {
          const isTime = ++calls === Number(number);
          const answer: unknown = await found.apply(target, words);
          // Of a checkpoint the first part is on the disk then.
          if (isTime) fillDisk(file);
          return answer;
        };
      },
    });
  return { ...engines, training: filling(engines.training), inference: filling(engines.inference) };
};

ignoreGoneReaders();
runProgram(process.argv.slice(2), processContext(fillingEngines, "0.0.0")).then(endProcess);
