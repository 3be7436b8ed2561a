// Listens for commands to a running coordinator, on the loopback interface, with a token that only the run's owner can read.
// It passes commands on and tells the state; what they do is decided by whoever started it.
import { randomBytes, timingSafeEqual } from "node:crypto";
import { rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import {
  type ControlAddress,
  type ControlAnswer,
  type ControlCommand,
  type ControlState,
  controlRequestSchema,
} from "../../../protocol/control.ts";
import { writeWhole } from "./runFolder.ts";

/** A request is one short line; more than this is not one of ours. */
const longestRequest = 4096;

export interface ControlServer {
  readonly address: ControlAddress;
  /** Stops listening and removes control.json. */
  dispose(): Promise<void>;
}

/** @param handle carries a command out and returns the state after it */
export async function startControlServer(
  file: string,
  attempt: number,
  handle: (command: ControlCommand) => ControlState,
): Promise<ControlServer> {
  const token = randomBytes(32).toString("hex");
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setEncoding("utf8");
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    let text = "";
    socket.on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\n");
      if (end >= 0) socket.end(`${JSON.stringify(answer(text.slice(0, end), token, handle))}\n`);
      else if (text.length > longestRequest) socket.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: 0 }, resolve);
  });
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the control server has no port");
  const address: ControlAddress = { host: "127.0.0.1", port: bound.port, token, pid: process.pid, attempt };
  writeWhole(file, `${JSON.stringify(address)}\n`);
  return {
    address,
    async dispose() {
      rmSync(file, { force: true });
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        // A command that is being answered gets its answer; a client that never asks does not hold the run.
        for (const socket of sockets) if (!socket.writableEnded) socket.destroy();
      });
    },
  };
}

function answer(line: string, token: string, handle: (command: ControlCommand) => ControlState): ControlAnswer {
  const refused = { ok: false, code: "RUN_CONTROL_REFUSED", message: "The request was not understood." } as const;
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return refused;
  }
  const request = controlRequestSchema.safeParse(json);
  if (!request.success) return refused;
  const shown = Buffer.from(request.data.token);
  const expected = Buffer.from(token);
  if (shown.length !== expected.length || !timingSafeEqual(shown, expected)) {
    return { ok: false, code: "RUN_CONTROL_REFUSED", message: "The token is not that of this run." };
  }
  return { ok: true, state: handle(request.data.command) };
}
