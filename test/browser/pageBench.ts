// A host of pages for tests: serves a page's document and bundle, and speaks pageHost.ts over a WebSocket with answers that the test
// gives. It keeps what was asked, and can lose its connections.
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { type WebSocket, WebSocketServer } from "ws";
import { type BulkArray, encodeBulkFrame } from "../../protocol/bulkFrame.ts";
import { specialsAsWords } from "../../protocol/journal.ts";
import { pageDocument } from "../../protocol/pageDocument.ts";
import { type PageState, pageMessageSchema } from "../../protocol/pageHost.ts";

const dist = fileURLToPath(new URL("../../dist/webview", import.meta.url));

export interface BenchSession {
  notify(method: string, params: unknown): void;
  bulk(content: { arrays: ReadonlyMap<string, BulkArray>; extra: Readonly<Record<string, unknown>> }): { bulk: number };
}
/** Throw a BenchRefusal to refuse. */
export type BenchHandler = (params: never, session: BenchSession) => unknown;

export class BenchRefusal extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly next: string,
  ) {
    super(message);
  }
}

export interface PageBench {
  readonly url: string;
  /** Every request that came, in order. */
  readonly asked: { readonly method: string; readonly params: unknown }[];
  /** What host/ready answers; host/keepState writes it. */
  state: PageState;
  readonly handlers: Record<string, BenchHandler>;
  notify(method: string, params: unknown): void;
  /** Ends every connection; new ones are refused until `accept`. */
  loseConnections(): void;
  accept(): void;
  close(): Promise<void>;
}

export async function startPageBench(
  page: "dashboard" | "inspector",
  state: PageState,
  handlers: Record<string, BenchHandler>,
  locale = "en",
): Promise<PageBench> {
  const sessions = new Set<BenchSession>();
  const sockets = new Set<WebSocket>();
  let accepting = true;

  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    if (path === "/") {
      const nonce = randomBytes(16).toString("base64url");
      const document = pageDocument({
        page,
        title: "Rollscope",
        language: locale,
        nonce,
        script: `${page}.js`,
        style: `${page}.css`,
        source: "'self'",
        socket: "socket",
      });
      response.setHeader("Content-Type", "text/html; charset=utf-8").end(document);
      return;
    }
    const type = { js: "text/javascript", css: "text/css" }[path.split(".").at(-1) ?? ""];
    if (type === undefined) return void response.writeHead(404).end();
    readFile(join(dist, path.slice(1))).then(
      (bytes) => response.setHeader("Content-Type", type).end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  const socketServer = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) => {
    if (!accepting) return void socket.destroy();
    socketServer.handleUpgrade(request, socket, head, (opened) => serve(opened));
  });

  const bench: PageBench = {
    url: "",
    asked: [],
    state,
    handlers: {
      "host/ready": () => ({ state: bench.state, locale, host: "browser" }),
      "host/keepState": (params: { state: PageState }) => {
        bench.state = params.state;
        return {};
      },
      ...handlers,
    },
    notify: (method, params) => {
      for (const session of sessions) session.notify(method, params);
    },
    loseConnections: () => {
      accepting = false;
      for (const socket of sockets) socket.terminate();
    },
    accept: () => {
      accepting = true;
    },
    close: async () => {
      for (const socket of sockets) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  const serve = (socket: WebSocket) => {
    let lastBulk = 0;
    const send = (message: unknown) => socket.send(JSON.stringify(message, specialsAsWords));
    const session: BenchSession = {
      notify: (method, params) => send({ kind: "notification", method, params }),
      bulk: (content) => {
        lastBulk += 1;
        socket.send(encodeBulkFrame({ id: lastBulk, ...content }));
        return { bulk: lastBulk };
      },
    };
    sessions.add(session);
    sockets.add(socket);
    socket.on("close", () => {
      sessions.delete(session);
      sockets.delete(socket);
    });
    socket.on("message", async (data) => {
      const message = pageMessageSchema.parse(JSON.parse(String(data)));
      if (message.kind !== "request") return;
      const { id, method, params } = message;
      bench.asked.push({ method, params });
      try {
        const handler = bench.handlers[method];
        if (handler === undefined)
          throw new BenchRefusal("METHOD_UNKNOWN", `No method ${method}.`, "Update the bench.");
        const result = await handler(params as never, session);
        send({ kind: "result", id, result });
      } catch (error) {
        if (!(error instanceof BenchRefusal)) throw error;
        const { code, message: text, next } = error;
        send({ kind: "error", id, error: { code, message: text, next, retryable: false } });
      }
    });
  };

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The bench has no port.");
  return Object.assign(bench, { url: `http://127.0.0.1:${address.port}/` });
}

/** Errors, refused policies and failed loads of a page: a good page has none. */
export function watchPage(page: Page): string[] {
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error.stack ?? error)));
  page.on("console", (message) => {
    // A connection that the test itself ended is no fault of the page.
    if (message.type() === "error" && !/WebSocket connection/.test(message.text())) faults.push(message.text());
  });
  return faults;
}
