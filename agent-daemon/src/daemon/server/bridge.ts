// `rollscope daemon stdio`: joins a client that can only talk to a process (an editor, ssh) to the daemon's socket, byte for byte.
import { createConnection } from "node:net";
import type { Readable, Writable } from "node:stream";
import { RollscopeError } from "../../../../protocol/errors.ts";

/**
 * Resolves when either side ended.
 *
 * @throws DAEMON_UNREACHABLE when the daemon went away first
 */
export function bridge(socketPath: string, input: Readable, output: Writable): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(socketPath);
    let clientLeft = false;
    const lost = (cause?: Error) =>
      reject(
        new RollscopeError("DAEMON_UNREACHABLE", "The daemon closed the connection.", {
          next: "Connect again; a new daemon is started, and finds the runs that go on.",
          cause,
        }),
      );
    const leave = () => {
      clientLeft = true;
      socket.end();
    };
    input.on("end", leave);
    input.on("error", leave);
    output.on("error", leave);
    socket.on("error", (error) => (clientLeft ? resolve() : lost(error)));
    socket.on("close", () => (clientLeft ? resolve() : lost()));
    input.pipe(socket, { end: false });
    socket.pipe(output, { end: false });
  });
}
