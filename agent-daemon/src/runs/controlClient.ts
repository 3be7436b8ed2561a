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

function readAddress(folder: RunFolder): ControlAddress | null {
  try {
    const parsed = controlAddressSchema.safeParse(JSON.parse(readFileSync(folder.control, "utf8")));
    return parsed.success ? parsed.data : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") return null;
    throw new RollscopeError("RUN_CONTROL_REFUSED", `The run ${folder.run} belongs to another user.`, {
      next: "Run the command as the user that started the run.",
      cause: error,
      at: { path: folder.control },
    });
  }
}

/**
 * Sends one command and returns the state after it; null when no coordinator is running. A listener that refuses the token is
 * another run's, on a port that this run left behind.
 *
 * @throws RUN_CONTROL_REFUSED when control.json may not be read
 */
export async function askCoordinator(folder: RunFolder, command: ControlCommand): Promise<ControlState | null> {
  const address = readAddress(folder);
  if (address === null) return null;
  const line = await exchange(address, JSON.stringify({ token: address.token, command }));
  if (line === null) return null;
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return null;
  }
  const answer = controlAnswerSchema.safeParse(json);
  return answer.success && answer.data.ok ? answer.data.state : null;
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
