// A typed client of the daemon for the command line and tests: connects to the socket that the lock names, says hello, calls
// methods, hands on notifications and takes bulk frames. Results are parsed; errors come back as they were thrown.
import { createConnection, type Socket } from "node:net";
import { createMessageConnection, type MessageConnection } from "vscode-jsonrpc/node.js";
import { type BulkFrame, decodeBulkFrame } from "../../../protocol/bulkFrame.ts";
import { createBulkReader } from "../../../protocol/bulkStream.ts";
import {
  type DaemonMethod,
  type DaemonNotification,
  type DaemonParams,
  type DaemonResult,
  daemonMethods,
  daemonNotifications,
  type HelloResult,
  type NotificationOf,
  protocolVersion,
} from "../../../protocol/daemonMethods.ts";
import { RollscopeError } from "../../../protocol/errors.ts";
import { createReader, createWriter, errorOfResponse } from "./server/wire.ts";

export interface DaemonClient {
  readonly hello: HelloResult;
  call<M extends DaemonMethod>(method: M, params: DaemonParams<M>): Promise<DaemonResult<M>>;
  /** A method whose answer is a bulk frame. */
  callBulk(method: DaemonMethod & BulkMethod, params: DaemonParams<BulkMethod>): Promise<BulkFrame>;
  on<N extends DaemonNotification>(name: N, listener: (value: NotificationOf<N>) => void): () => void;
  /** Resolves when the connection is gone. */
  readonly ended: Promise<void>;
  /** Stops reading, as a client does whose process is held; for tests. */
  pause(): void;
  resume(): void;
  dispose(): void;
}

export type BulkMethod = "metrics/series" | "trajectory/tokens" | "trajectory/image";

/** @throws DAEMON_UNREACHABLE; what the daemon refuses */
export async function connectDaemon(
  socketPath: string,
  client: { readonly name: string; readonly version: string },
): Promise<DaemonClient> {
  const socket = await openSocket(socketPath);
  const connection = createMessageConnection(createReader(socket), createWriter(socket));
  const listeners = new Map<string, Set<(value: never) => void>>();
  for (const [name, schema] of Object.entries(daemonNotifications)) {
    connection.onNotification(name, (params: unknown) => {
      const own = listeners.get(name);
      if (own === undefined || own.size === 0) return;
      const value = schema.parse(params) as never;
      for (const listener of own) listener(value);
    });
  }
  const ended = new Promise<void>((resolve) => connection.onClose(() => resolve()));
  connection.onError(() => socket.destroy());
  connection.listen();
  const greeting = { protocol: protocolVersion, client, channel: "rpc" as const, session: null };
  const hello = (await send(connection, "hello", greeting)) as HelloResult;
  let bulk: Promise<Frames> | null = null;
  return {
    hello,
    call: async (method, params) => (await send(connection, method, params)) as never,
    async callBulk(method, params) {
      bulk ??= openFrames(socketPath, { ...greeting, channel: "bulk", session: hello.session });
      const frames = await bulk;
      const { bulk: id } = (await send(connection, method, params)) as { bulk: number };
      return await frames.take(id);
    },
    on(name, listener) {
      const own = listeners.get(name) ?? new Set();
      listeners.set(name, own);
      own.add(listener);
      return () => own.delete(listener);
    },
    ended,
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    dispose() {
      void bulk?.then((frames) => frames.dispose()).catch(() => {});
      connection.dispose();
      socket.destroy();
    },
  };
}

async function send(connection: MessageConnection, method: DaemonMethod, params: unknown): Promise<unknown> {
  try {
    return daemonMethods[method].result.parse(await connection.sendRequest(method, params));
  } catch (error) {
    throw errorOfResponse(error);
  }
}

function openSocket(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once("connect", () => {
      socket.on("error", () => socket.destroy());
      resolve(socket);
    });
    socket.once("error", (cause) =>
      reject(
        new RollscopeError("DAEMON_UNREACHABLE", `No daemon answers at ${path}.`, {
          next: "Start one with `rollscope daemon --background`.",
          cause,
          at: { path },
        }),
      ),
    );
  });
}

interface Frames {
  take(id: number): Promise<BulkFrame>;
  dispose(): void;
}

async function openFrames(path: string, greeting: object): Promise<Frames> {
  const socket = await openSocket(path);
  const arrived = new Map<number, BulkFrame>();
  const waiting = new Map<number, { resolve: (frame: BulkFrame) => void; reject: (error: unknown) => void }>();
  const gone = () =>
    new RollscopeError("DAEMON_UNREACHABLE", "The bulk connection to the daemon was closed.", {
      next: "Connect again.",
    });
  await new Promise<void>((resolve, reject) => {
    const reader = createBulkReader(
      (json) => ((JSON.parse(json) as { error?: unknown }).error === undefined ? resolve() : reject(gone())),
      (bytes) => {
        const frame = decodeBulkFrame(bytes);
        const taker = waiting.get(frame.id);
        waiting.delete(frame.id);
        if (taker === undefined) arrived.set(frame.id, frame);
        else taker.resolve(frame);
      },
    );
    socket.on("data", (chunk) => reader.push(chunk));
    socket.on("close", () => {
      reject(gone());
      for (const { reject: fail } of waiting.values()) fail(gone());
      waiting.clear();
    });
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "hello", params: greeting });
    socket.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  });
  return {
    take(id) {
      const frame = arrived.get(id);
      arrived.delete(id);
      if (frame !== undefined) return Promise.resolve(frame);
      if (socket.destroyed) return Promise.reject(gone());
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
    dispose: () => socket.destroy(),
  };
}
