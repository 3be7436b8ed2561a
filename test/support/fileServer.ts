// A real HTTP server of a few files for tests of downloads: honours ranges and validators, and misbehaves on request.
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface FileServer {
  readonly url: string;
  /** Path and Range header of each request, in order. */
  readonly requests: { readonly path: string; readonly range: string | undefined }[];
  readonly files: Map<string, Buffer>;
  /** Cut the connection after so many bytes of the body, once for each entry; for paths that match `cutPaths` only. */
  readonly cuts: number[];
  cutPaths: RegExp;
  /** Answer the next requests for files with these statuses. */
  readonly statuses: number[];
  honoursRanges: boolean;
}

export async function startFileServer(files: Readonly<Record<string, Buffer | string>>): Promise<FileServer> {
  const state = {
    requests: [] as { path: string; range: string | undefined }[],
    files: new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)])),
    cuts: [] as number[],
    cutPaths: /./,
    statuses: [] as number[],
    honoursRanges: true,
  };
  const server = createServer((request, response) => answer(state, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return Object.assign(state, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

function answer(state: Omit<FileServer, "url">, request: IncomingMessage, response: ServerResponse): void {
  const path = decodeURIComponent(request.url ?? "/");
  const range = request.headers.range;
  state.requests.push({ path, range });
  const status = state.statuses.shift();
  const content = state.files.get(path);
  if (status !== undefined || content === undefined) {
    response.writeHead(status ?? 404).end();
    return;
  }
  const etag = `"${createHash("sha256").update(content).digest("hex")}"`;
  const validator = request.headers["if-range"];
  const start = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
  const isPart = state.honoursRanges && range !== undefined && (validator === undefined || validator === etag);
  if (isPart && start >= content.length) {
    response.writeHead(416, { "content-range": `bytes */${content.length}` }).end();
    return;
  }
  const body = isPart ? content.subarray(start) : content;
  const headers: Record<string, string | number> = { etag, "content-length": body.length };
  if (isPart) headers["content-range"] = `bytes ${start}-${content.length - 1}/${content.length}`;
  response.writeHead(isPart ? 206 : 200, headers);
  const cut = state.cutPaths.test(path) ? state.cuts.shift() : undefined;
  if (cut === undefined) response.end(body);
  else response.write(body.subarray(0, cut), () => response.destroy());
}
