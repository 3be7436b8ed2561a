import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Download, downloadFile, hashFile } from "../../../agent-daemon/src/recipes/download.ts";
import { startFileServer } from "../../support/fileServer.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

const sha256 = (content: Buffer) => createHash("sha256").update(content).digest("hex");

async function prepare(content = randomBytes(3_000_000)) {
  const server = await startFileServer({ "/file": content });
  const folder = await temporaryFolder();
  const download: Download = {
    url: `${server.url}/file`,
    target: join(folder, "file"),
    size: content.length,
    hash: { algorithm: "sha256", digest: sha256(content) },
    firstDelay: 1,
    tries: 3,
  };
  return { server, folder, download, content };
}

describe("a download", () => {
  it("arrives whole and leaves nothing else behind", async () => {
    const { download, content, folder } = await prepare();
    const seen: number[] = [];
    const done = await downloadFile({ ...download, onProgress: (bytes) => seen.push(bytes) });
    expect(done).toEqual({ sha256: sha256(content), size: content.length });
    expect(readdirSync(folder)).toEqual(["file"]);
    expect((await readFile(download.target)).equals(content)).toBe(true);
    expect(seen.at(-1)).toBe(content.length);
  });

  it("goes on where the connection was cut, however often, as long as something arrives", async () => {
    const { download, server, content } = await prepare();
    server.cuts.push(400_000, 1, 700_000, 500_000, 1, 300_000);
    await downloadFile(download);
    expect((await readFile(download.target)).equals(content)).toBe(true);
    const starts = server.requests.map(({ range }) => Number(/\d+/.exec(range ?? "bytes=0-")?.[0]));
    expect(starts).toHaveLength(7);
    expect(starts).toEqual([...starts].sort((a, b) => a - b));
    expect(starts.at(-1)).toBeGreaterThan(0);
  });

  it("gives up with a code when nothing more arrives, and the next call goes on there", async () => {
    const { download, server } = await prepare();
    server.cuts.push(500_000, 0, 0, 0);
    await expect(downloadFile(download)).rejects.toMatchObject({ code: "MODEL_DOWNLOAD_FAILED" });
    expect(existsSync(download.target)).toBe(false);
    const before = server.requests.length;
    await downloadFile(download);
    expect(server.requests.slice(before)).toHaveLength(1);
    expect(server.requests.at(-1)?.range).toMatch(/^bytes=[1-9]/);
  });

  it("starts over when the server's file is another one meanwhile, or the server knows no ranges", async () => {
    const { download, server } = await prepare();
    server.cuts.push(500_000, 0, 0, 0);
    await expect(downloadFile(download)).rejects.toMatchObject({ code: "MODEL_DOWNLOAD_FAILED" });
    const other = randomBytes(1_000_000);
    server.files.set("/file", other);
    const changed = { ...download, size: other.length, hash: { algorithm: "sha256" as const, digest: sha256(other) } };
    server.cuts.push(300_000);
    server.honoursRanges = false;
    await downloadFile(changed);
    expect((await readFile(download.target)).equals(other)).toBe(true);
  });

  it("starts over when what lies there is longer than the file", async () => {
    const { download, content } = await prepare();
    await writeFile(`${download.target}.partial`, randomBytes(content.length + 10));
    await writeFile(`${download.target}.partial.json`, JSON.stringify({ url: download.url, etag: null }));
    await downloadFile(download);
    expect((await readFile(download.target)).equals(content)).toBe(true);
  });

  it("refuses content that is not what was announced, and deletes it", async () => {
    const { download, server, content, folder } = await prepare();
    server.files.set("/file", Buffer.concat([content.subarray(1), Buffer.from("x")]));
    await expect(downloadFile(download)).rejects.toMatchObject({ code: "MODEL_HASH_MISMATCH" });
    expect(readdirSync(folder)).toEqual([]);
  });

  it("tries again after a server's error, not after its refusal", async () => {
    const { download, server } = await prepare();
    server.statuses.push(503, 429);
    await downloadFile(download);
    expect(server.requests).toHaveLength(3);
    const missing = { ...download, url: `${server.url}/gone`, target: `${download.target}2` };
    await expect(downloadFile(missing)).rejects.toMatchObject({ code: "MODEL_NOT_FOUND", at: { status: 404 } });
    expect(server.requests).toHaveLength(4);
  });

  it("says that there is no network when nobody answers", async () => {
    const { download } = await prepare();
    const silent = { ...download, url: "http://127.0.0.1:1/file", tries: 2 };
    await expect(downloadFile(silent)).rejects.toMatchObject({
      code: "MODEL_NETWORK_UNAVAILABLE",
      next: expect.stringContaining("model.source"),
    });
  });

  it("does not fetch again what is there, unless it was damaged", async () => {
    const { download, server, content } = await prepare();
    await downloadFile(download);
    await downloadFile(download);
    expect(server.requests).toHaveLength(1);
    await truncate(download.target, 10);
    await downloadFile(download);
    expect((await readFile(download.target)).equals(content)).toBe(true);
  });

  it("stops when it is told to, and keeps what has arrived", async () => {
    const { download, server } = await prepare();
    server.cuts.push(500_000);
    const stop = new AbortController();
    const onProgress = (bytes: number) => bytes > 100_000 && stop.abort(new Error("enough"));
    await expect(downloadFile({ ...download, signal: stop.signal, onProgress })).rejects.toThrow();
    expect(existsSync(`${download.target}.partial`)).toBe(true);
    await downloadFile(download);
  });

  it("is right for any size and any cuts", async () => {
    const { server, download } = await prepare();
    let number = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200 }),
        fc.array(fc.integer({ min: 1, max: 60 })),
        async (bytes, cuts) => {
          const content = Buffer.from(bytes);
          server.files.set("/file", content);
          server.cuts.splice(0, Infinity, ...cuts);
          const target = `${download.target}-${number++}`;
          const hash = { algorithm: "sha256" as const, digest: sha256(content) };
          await downloadFile({ ...download, target, size: content.length, hash, tries: 50 });
          expect((await readFile(target)).equals(content)).toBe(true);
        },
      ),
      { numRuns: 30 },
    );
  });

  it("hashes a file as Git does", async () => {
    const folder = await temporaryFolder({ hello: "hello\n", empty: "" });
    expect(await hashFile(join(folder, "hello"), "git-sha1")).toBe("ce013625030ba8dba906f756967f9e9ca394464a");
    expect(await hashFile(join(folder, "empty"), "git-sha1")).toBe("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  });
});
