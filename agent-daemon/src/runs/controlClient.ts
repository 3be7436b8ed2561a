// Sends a command to the coordinator of a run in another process. A run whose coordinator is gone is told apart from one that
// refuses; nothing is ever signalled by process number, which may belong to somebody else by now.
import { readFileSync } from "node:fs";
import { createConnection } from "node:net";
import {
  type ControlAddress,
  type ControlCommand,
  type ControlState,
  controlAddressSchema,
  controlAnswerSchema,
} from "../../../protocol/control.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import type { RunFolder } from "./runFolder.ts";

const answerTimeout = 10_000;

function readAddress(file: string): ControlAddress | null {
  try {
    const parsed = controlAddressSchema.safeParse(JSON.parse(readFileSync(file, "utf8")));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/**
 * Sends one command and returns the state after it; null when no coordinator is running.
 *
 * @throws RUN_CONTROL_REFUSED
 */
export async function askCoordinator(folder: RunFolder, command: ControlCommand): Promise<ControlState | null> {
  const address = readAddress(folder.control);
  if (address === null) return null;
  const line = await exchange(address, JSON.stringify({ token: address.token, command }));
  if (line === null) return null;
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    // Something else listens on the port of a coordinator that is gone.
    return null;
  }
  const answer = controlAnswerSchema.safeParse(json);
  if (!answer.success) return null;
  if (answer.data.ok) return answer.data.state.run === folder.run ? answer.data.state : null;
  throw new RollscopeError("RUN_CONTROL_REFUSED", `The run ${folder.run} refused: ${answer.data.message}`, {
    next: "Run the command as the user that started the run.",
    at: { run: folder.run },
  });
}

/** The first line of the answer; null when nobody answers. */
function exchange(address: ControlAddress, line: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: address.host, port: address.port });
    let text = "";
    const end = (answer: string | null) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setEncoding("utf8");
    socket.setTimeout(answerTimeout, () => end(null));
    socket.on("error", () => end(null));
    socket.on("connect", () => socket.write(`${line}\n`));
    socket.on("data", (chunk: string) => {
      text += chunk;
      const newline = text.indexOf("\n");
      if (newline >= 0) end(text.slice(0, newline));
    });
    socket.on("end", () => end(null));
  });
}
