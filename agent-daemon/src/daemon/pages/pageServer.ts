// Serves pages to a browser on this machine: 127.0.0.1 only, a one-time code exchanged for a cookie, Host and Origin checked, so that
// neither other users nor other sites reach a run. It is opened by the first page that is asked for.
import { randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { pageDocument } from "../../../../protocol/pageDocument.ts";
import type { PageState } from "../../../../protocol/pageHost.ts";
import type { Clock } from "../../sampling/clock.ts";
import { pagePath, stateOfAddress } from "./pageAddress.ts";
import { type PageServices, servePage } from "./pageConnection.ts";

export interface PageServer {
  readonly port: number;
  /** An address that opens the page once; the browser keeps its cookie for the next ones. */
  urlOf(state: PageState): string;
  dispose(): Promise<void>;
}

const codeMilliseconds = 10 * 60_000;
const greatestMessage = 4 * 1024 * 1024;
const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".woff2": "font/woff2",
  ".ttf": "font/ttf",
};

/** Where the bundles of pages lie, beside the program or in the checkout; null when they are not built. */
export function pagesFolder(): string | null {
  const here = dirname(fileURLToPath(import.meta.url));
  const candidates = ["webview", "../../../../dist/webview", "../../../dist/webview"].map((path) => join(here, path));
  return candidates.find((path) => existsSync(path)) ?? null;
}

export async function startPageServer(
  folder: string,
  clock: Clock,
  services: Omit<PageServices, "states">,
): Promise<PageServer> {
  const token = randomBytes(32).toString("base64url");
  const codes = new Map<string, { readonly state: PageState; readonly until: number }>();
  const states = new Map<string, PageState>();
  const sockets = new WebSocketServer({ noServer: true, maxPayload: greatestMessage });
  let port = 0;
  const cookieName = () => `rollscope-${port}`;

  const mayEnter = (request: IncomingMessage) => {
    const given = cookieOf(request, cookieName());
    return given !== null && equal(given, token);
  };

  const serve = (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== "GET") return refuse(response, 405, "Only GET.");
    if (!isLoopback(request.headers.host)) return refuse(response, 403, "This address is not served.");
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const code = /^\/open\/([\w-]+)$/.exec(url.pathname)?.[1];
    if (code !== undefined) return exchange(code, request, response);
    if (!mayEnter(request)) return refuse(response, 403, "Open the page again with `rollscope open`.");
    const asset = /^\/assets\/([\w-]+\.(?:js|css|woff2|ttf))$/.exec(url.pathname)?.[1];
    if (asset !== undefined) return sendAsset(join(folder, asset), response);
    const state = stateOfAddress(url);
    if (state === null || url.pathname !== `/${state.page}`) return refuse(response, 404, "There is no such page.");
    sendDocument(state, languageOf(request), response);
  };

  const exchange = (code: string, request: IncomingMessage, response: ServerResponse) => {
    const entry = codes.get(code);
    if (entry === undefined || (entry.until < clock.now() && !mayEnter(request)))
      return refuse(response, 403, "This address was used already. Open the page again with `rollscope open`.");
    codes.delete(code);
    response.writeHead(303, {
      ...safe,
      Location: pagePath(entry.state),
      "Set-Cookie": `${cookieName()}=${token}; HttpOnly; SameSite=Lax; Path=/`,
    });
    response.end();
  };

  const sendDocument = (state: PageState, language: string, response: ServerResponse) => {
    const text = pageDocument({
      page: state.page,
      title: state.page === "dashboard" ? "Rollscope: runs" : "Rollscope: trajectory",
      language,
      nonce: randomBytes(18).toString("base64url"),
      script: `/assets/${state.page}.js`,
      style: `/assets/${state.page}.css`,
      source: "'self'",
      socket: `/socket?state=${encodeURIComponent(JSON.stringify(state))}`,
    });
    response.writeHead(200, { ...safe, "Content-Type": "text/html; charset=utf-8" });
    response.end(text);
  };

  const server = createServer((request, response) => {
    try {
      serve(request, response);
    } catch (error) {
      services.log.error("a page could not be served", error);
      if (!response.headersSent) refuse(response, 500, "The page could not be served; the daemon's log says why.");
    }
  });
  server.on("upgrade", (request, socket, head) => {
    const { host, origin } = request.headers;
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const state = url.pathname === "/socket" ? stateOfAddress(url) : null;
    if (!isLoopback(host) || origin !== `http://${host}` || !mayEnter(request) || state === null) {
      socket.end("HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n");
      return;
    }
    sockets.handleUpgrade(request, socket, head, (opened) =>
      servePage(opened, state, languageOf(request), { ...services, states }),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: 0 }, resolve);
  });
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the page server has no port");
  port = bound.port;
  return {
    port,
    urlOf(state) {
      const now = clock.now();
      for (const [code, { until }] of codes) if (until < now) codes.delete(code);
      const code = randomBytes(24).toString("base64url");
      codes.set(code, { state, until: now + codeMilliseconds });
      return `http://127.0.0.1:${port}/open/${code}`;
    },
    async dispose() {
      for (const client of sockets.clients) client.terminate();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

/** On every answer: no other site may show it, read it or learn its address, and nothing but the page's own files is loaded. */
const safe = {
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Content-Security-Policy": "frame-ancestors 'none'",
} as const;

function refuse(response: ServerResponse, status: number, sentence: string): void {
  response.writeHead(status, { ...safe, "Content-Type": "text/plain; charset=utf-8" });
  response.end(`${sentence}\n`);
}

function sendAsset(file: string, response: ServerResponse): void {
  if (!existsSync(file)) {
    refuse(response, 404, "There is no such file.");
    return;
  }
  response.writeHead(200, { ...safe, "Content-Type": types[extname(file)] ?? "application/octet-stream" });
  response.end(readFileSync(file));
}

/** Whatever port it is forwarded to: a name that another site chose never is one of these. */
function isLoopback(host: string | undefined): boolean {
  return host !== undefined && /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(host);
}

function cookieOf(request: IncomingMessage, name: string): string | null {
  for (const part of (request.headers.cookie ?? "").split(";")) {
    const [key, value] = part.trim().split("=", 2);
    if (key === name && value !== undefined) return value;
  }
  return null;
}

function equal(a: string, b: string): boolean {
  const one = Buffer.from(a);
  const other = Buffer.from(b);
  return one.length === other.length && timingSafeEqual(one, other);
}

function languageOf(request: IncomingMessage): string {
  return /^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*/.exec(request.headers["accept-language"] ?? "")?.[0] ?? "en";
}
