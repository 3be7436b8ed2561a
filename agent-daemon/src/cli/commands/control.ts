// `rollscope stop` and `rollscope pause`: commands to the coordinator of a run in another process.
import type { ControlCommand, ControlState } from "../../../../protocol/control.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import { askCoordinator } from "../../runs/controlClient.ts";
import { findRun, type RunFolder } from "../../runs/runFolder.ts";
import type { ExitName } from "../exitCodes.ts";
import type { Output } from "../output.ts";

/** @throws RUN_NOT_ACTIVE when no process runs it */
export async function controlRun(folder: RunFolder, command: ControlCommand): Promise<ControlState> {
  const state = await askCoordinator(folder, command);
  if (state !== null) return state;
  throw new RollscopeError("RUN_NOT_ACTIVE", `The run ${folder.run} is not running.`, {
    next: "`rollscope list` shows how it ended; `rollscope resume` goes on from its last whole checkpoint.",
    at: { run: folder.run },
  });
}

const done: { readonly [command in ControlCommand]: string } = {
  status: "is running",
  stop: "stops at the next safe point, the end of a window of steps; stop it again to stop at once",
  "stop-now": "stops at once",
  pause: "pauses at the next safe point",
  resume: "goes on",
};

export async function controlCommand(
  wanted: string,
  command: ControlCommand,
  outputDir: string,
  output: Output,
): Promise<ExitName> {
  const state = await controlRun(findRun(wanted, outputDir), command);
  output.document(state);
  if (!output.json)
    output.lines([`${state.run} (${state.phase}, step ${state.step}/${state.steps}) ${done[command]}.`]);
  return "ok";
}
