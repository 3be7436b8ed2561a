// A server that speaks the part of the Hugging Face Hub that is used, on the loopback interface.
import { createHash } from "node:crypto";
import { startFileServer } from "./fileServer.ts";
import { temporaryFolder } from "./recipeFolder.ts";

const sha256 = (content: Buffer) => createHash("sha256").update(content).digest("hex");
const gitSha1 = (content: Buffer) =>
  createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
/** What the one branch of every repository points to. */
export const hubCommit = "0123456789abcdef0123456789abcdef01234567";

/** A server with one repository, and the options that make it the Hub of a call. */
export async function startHub(id: string, content: Record<string, Buffer>, kind: "models" | "datasets" = "models") {
  const siblings = Object.entries(content).map(([rfilename, bytes]) => {
    const isLarge = /\.(safetensors|bin)$/.test(rfilename);
    const lfs = { sha256: sha256(bytes), size: bytes.length, pointerSize: 134 };
    return { rfilename, size: bytes.length, blobId: gitSha1(bytes), ...(isLarge ? { lfs } : {}) };
  });
  const prefix = kind === "datasets" ? "/datasets" : "";
  const files = Object.entries(content).map(
    ([name, bytes]) => [`${prefix}/${id}/resolve/${hubCommit}/${name}`, bytes] as const,
  );
  const list = JSON.stringify({ id, sha: hubCommit, siblings });
  const server = await startFileServer({
    ...Object.fromEntries(files),
    [`/api/${kind}/${id}/revision/main?blobs=true`]: Buffer.from(list),
  });
  server.cutPaths = /\.safetensors$/;
  const cache = await temporaryFolder();
  return { server, options: { cache, environment: { HF_ENDPOINT: server.url }, firstDelay: 1, tries: 3 } };
}
