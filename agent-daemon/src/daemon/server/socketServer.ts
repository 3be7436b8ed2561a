// Listens on the daemon's socket and gives each connection its session: hello first, then methods from the table; or a bulk channel,
// which carries frames only once hello is answered. What methods do is not known here.
import { chmodSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import { createMessageConnection, type Message, type MessageWriter, type ResponseError } from "vscode-jsonrpc/node.js";
import { type DaemonRequest, type HelloResult, protocolVersion } from "../../../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../../../protocol/errors.ts";
import type { DaemonLog } from "../daemonLog.ts";
import { type MethodTable, parseParams } from "../methods/allMethods.ts";
import { type ClientSession, createClientSession, frameSender } from "./clientSession.ts";
import { makePrivateFolder } from "./daemonHome.ts";
import { createTurnstile, turnstileLimits } from "./turnstile.ts";
import { createReader, createWriter, responseError } from "./wire.ts";

export interface SocketServer {
  readonly sessions: ReadonlySet<ClientSession>;
  dispose(): Promise<void>;
}

export interface SocketServices {
  readonly socket: string;
  readonly table: MethodTable;
  readonly log: DaemonLog;
  /** Session filled in by the server. */
  readonly describe: () => Omit<HelloResult, "session" | "protocol">;
  readonly onShutdown: () => void;
  readonly onSessions: () => void;
}

/** The socket of a daemon that is gone is removed: whoever holds the lock may do so. */
export async function listenOnSocket(services: SocketServices): Promise<SocketServer> {
  const { socket: path } = services;
  makePrivateFolder(dirname(path));
  rmSync(path, { force: true });
  const sessions = new Map<string, ClientSession>();
  const sockets = new Set<Socket>();
  const live = new Set<ClientSession>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    serveConnection(socket, services, sessions, live);
  });
  await listen(server, path);
  return {
    sessions: live,
    async dispose() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      });
      rmSync(path, { force: true });
    },
  };
}

async function listen(server: Server, path: string): Promise<void> {
  // Between bind and chmod the socket must not be open to others.
  const mask = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
  } finally {
    process.umask(mask);
  }
  chmodSync(path, 0o600);
}

function serveConnection(
  socket: Socket,
  services: SocketServices,
  sessions: Map<string, ClientSession>,
  live: Set<ClientSession>,
): void {
  const { table, log } = services;
  const turnstile = createTurnstile(turnstileLimits, (isCrowded) => (isCrowded ? socket.pause() : socket.resume()));
  const watched = watchedWriter(createWriter(socket), turnstile.leave);
  const connection = createMessageConnection(createReader(socket), watched.writer);
  let session: ClientSession | null = null;
  let greeted: DaemonRequest<"hello"> | null = null;

  const greet = (request: DaemonRequest<"hello">): HelloResult => {
    if (greeted !== null) throw invalid("hello was said twice.");
    if (request.channel === "bulk") {
      const owner = sessions.get(request.session ?? "");
      if (owner === undefined) throw invalid("No connection has this session.");
      greeted = request;
      watched.afterNext(() => {
        owner.attachBulk(frameSender(socket), () => socket.writableLength);
        socket.on("close", () => owner.detachBulk());
        owner.onEnd(() => socket.end());
      });
      return { protocol: protocolVersion, ...services.describe(), session: owner.id };
    }
    greeted = request;
    const opened = createClientSession((name, params) => connection.sendNotification(name, params));
    session = opened;
    sessions.set(opened.id, opened);
    live.add(opened);
    services.onSessions();
    log.info(`client ${request.client.name} ${request.client.version} connected`);
    return { protocol: protocolVersion, ...services.describe(), session: opened.id };
  };

  connection.onRequest(async (method, params, token) => {
    const stop = new AbortController();
    const cancelled = token.onCancellationRequested(() => stop.abort());
    await turnstile.enter();
    try {
      if (method === "hello") return greet(parseParams("hello", params) as DaemonRequest<"hello">);
      if (greeted === null || session === null) throw invalid("The first request must be hello.");
      // Of any version: a daemon that does not fit must not stay for ever.
      if (method === "shutdown") {
        watched.afterNext(services.onShutdown);
        return {};
      }
      requireVersion(greeted);
      const off = session.onEnd(() => stop.abort());
      try {
        return await table.call(method, params, { session, signal: stop.signal });
      } finally {
        off();
      }
    } catch (error) {
      if (!(error instanceof RollscopeError) && !stop.signal.aborted) log.error(`${method} failed`, error);
      // Returned, not thrown: the library would wrap it.
      return responseError(error) as ResponseError<void>;
    } finally {
      cancelled.dispose();
    }
  });
  connection.onError(([error]) => {
    log.warn(`a client's message could not be read: ${error.message}`);
    socket.destroy();
  });
  connection.onClose(() => {
    if (session === null) return;
    sessions.delete(session.id);
    live.delete(session);
    session.dispose();
    services.onSessions();
    log.info(`client ${greeted?.client.name ?? ""} gone`);
  });
  connection.listen();
}

function requireVersion({ protocol, client }: DaemonRequest<"hello">): void {
  if (protocol === protocolVersion) return;
  throw new RollscopeError(
    "DAEMON_VERSION_MISMATCH",
    `${client.name} ${client.version} speaks version ${protocol} of the protocol, this daemon ${protocolVersion}.`,
    {
      next: "Install client and daemon of one version, then run `rollscope daemon stop`; runs go on.",
      at: { client: protocol, daemon: protocolVersion },
    },
  );
}

function invalid(sentence: string): RollscopeError {
  return new RollscopeError("DAEMON_REQUEST_INVALID", sentence, {
    next: "This is a fault of the client; report it with its version.",
  });
}

const isResponse = (message: Message) => "result" in message || "error" in message;

/**
 * A writer that calls back once, after the next answer has been handed to the stream.
 *
 * @param onAnswered told after each answer
 */
function watchedWriter(
  inner: MessageWriter,
  onAnswered: () => void,
): { writer: MessageWriter; afterNext(run: () => void): void } {
  let next: (() => void) | null = null;
  return {
    writer: {
      onError: inner.onError,
      onClose: inner.onClose,
      write: async (message: Message) => {
        const after = isResponse(message) ? next : null;
        if (after !== null) next = null;
        try {
          await inner.write(message);
        } finally {
          if (isResponse(message)) onAnswered();
        }
        after?.();
      },
      end: () => inner.end(),
      dispose: () => inner.dispose(),
    },
    afterNext(run) {
      next = run;
    },
  };
}
