// Opening models on the embedded engine: the real one from GGUF, small ones from safetensors, and every way a file can be
// wrong.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { embeddedTrainingEngine, openEmbeddedModel } from "../../agent-daemon/src/engines/embedded.ts";
import type { EmbeddedModel } from "../../agent-daemon/src/engines/embeddedModel.ts";
import { loadModelText } from "../../agent-daemon/src/engines/tokenizer/load.ts";
import { rows } from "../support/batches.ts";
import { smallLlama, smallLlamaTensors, writeCheckpoint, writeShards } from "../support/checkpointFolder.ts";
import { smollm2Path } from "../support/model.ts";
import { modelOracles } from "../support/modelOracles.ts";

const root = mkdtempSync(join(tmpdir(), "models-"));
afterAll(() => rmSync(root, { recursive: true }));
let folders = 0;
const newFolder = () => join(root, `model-${folders++}`);

async function failure(work: Promise<unknown>): Promise<{ code: string; message: string; next: string }> {
  try {
    await work;
  } catch (error) {
    return error as { code: string; message: string; next: string };
  }
  throw new Error("it succeeded");
}

async function logprobs(model: EmbeddedModel, tokens: readonly number[]): Promise<Float32Array> {
  const want = { logprob: true, entropy: false, value: false };
  for await (const { scalars } of embeddedTrainingEngine(model).forward([rows([tokens])], want, { kind: "policy" })) {
    return scalars.logprob ?? new Float32Array(0);
  }
  throw new Error("no scalars");
}

describe("SmolLM2 from GGUF", () => {
  let model: EmbeddedModel;
  beforeAll(async () => {
    model = await openEmbeddedModel(smollm2Path());
  });
  afterAll(() => model.dispose());

  test("knows what it learned", async () => {
    const { tokenizer } = loadModelText(smollm2Path());
    const tokens = tokenizer.encode("The capital of France is Paris. The capital of Germany is Berlin", {
      special: "parse",
    });
    const all = await logprobs(model, [...tokens]);
    expect(all[all.length - 1]).toBeGreaterThan(-0.2);
    expect([...all.subarray(1)].reduce((sum, l) => sum + l, 0) / (all.length - 1)).toBeGreaterThan(-2.5);
  });

  test("says what it is and can do", () => {
    const info = model.info();
    expect(info).toMatchObject({
      architecture: "llama",
      vocabularySize: 49152,
      layers: 30,
      hiddenSize: 576,
      dtype: "f32",
    });
    expect(info.parameters).toBe(134_515_008);
    expect(info.capabilities).toMatchObject({ forest: true, deterministic: true, value: false, media: false });
    expect(info.capabilities.maxTokensPerBatch).toBeGreaterThan(1000);
  });
});

describe("safetensors", () => {
  test("shards give the same model as one file", async () => {
    const [single, sharded] = [newFolder(), newFolder()];
    writeCheckpoint(single);
    writeShards(sharded, smallLlama, smallLlamaTensors());
    const [a, b] = [await openEmbeddedModel(single), await openEmbeddedModel(sharded)];
    expect(await logprobs(a, [3, 1, 4, 1, 5])).toEqual(await logprobs(b, [3, 1, 4, 1, 5]));
    a.dispose();
    b.dispose();
  });

  test("tensors arrive as they were stored", async () => {
    const dir = newFolder();
    writeCheckpoint(dir);
    const model = await openEmbeddedModel(dir);
    for (const { name, values } of smallLlamaTensors()) expect(await model.readTensor(name)).toEqual(values);
    model.dispose();
  });

  test("llama's attention_bias puts a bias on the output as well", async () => {
    const dir = newFolder();
    const bias = (part: string, size: number) => ({
      name: `model.layers.0.self_attn.${part}_proj.bias`,
      shape: [size],
      values: new Float32Array(size).fill(0.1),
    });
    const biases = [bias("q", 16), bias("k", 8), bias("v", 8), bias("o", 16)];
    writeCheckpoint(dir, { ...smallLlama, attention_bias: true }, [...smallLlamaTensors(), ...biases]);
    const model = await openEmbeddedModel(dir);
    const before = await logprobs(model, [3, 1, 4]);
    await model.writeTensor("model.layers.0.self_attn.o_proj.bias", new Float32Array(16).fill(0.3));
    expect(await logprobs(model, [3, 1, 4])).not.toEqual(before);
    model.dispose();
  });
});

describe("files that are wrong", () => {
  const tensors = smallLlamaTensors();
  const open = (dir: string) => failure(openEmbeddedModel(dir));
  const damaged = (config: object, list = tensors) => {
    const dir = newFolder();
    writeCheckpoint(dir, { ...smallLlama, ...config }, list);
    return dir;
  };

  test("a missing path names the path and the next action", async () => {
    const error = await open(join(root, "nowhere"));
    expect(error.code).toBe("ENGINE_MODEL_NOT_FOUND");
    expect(error.message).toContain("nowhere");
    expect(error.next).not.toBe("");
  });

  test("weights cut short are refused before anything is computed", async () => {
    const dir = damaged({});
    const file = join(dir, "model.safetensors");
    writeFileSync(file, readFileSync(file).subarray(0, -100));
    expect((await open(dir)).code).toBe("ENGINE_FILE_TRUNCATED");
  });

  test("a header cut short is refused", async () => {
    const dir = damaged({});
    const file = join(dir, "model.safetensors");
    writeFileSync(file, readFileSync(file).subarray(0, 40));
    expect((await open(dir)).code).toBe("ENGINE_FILE_TRUNCATED");
  });

  test("a GGUF file cut short is refused", async () => {
    const whole = readFileSync(smollm2Path());
    const file = join(root, "cut.gguf");
    writeFileSync(file, whole.subarray(0, Math.floor(whole.length / 2)));
    expect((await open(file)).code).toBe("ENGINE_FILE_TRUNCATED");
  });

  test.each([
    ["an unknown architecture", { model_type: "mamba" }, tensors, "ENGINE_ARCHITECTURE_UNKNOWN"],
    ["a shape that the configuration does not have", { intermediate_size: 48 }, tensors, "ENGINE_SHAPE_MISMATCH"],
    ["a missing tensor", {}, tensors.slice(1), "ENGINE_TENSOR_MISSING"],
    [
      "a tensor that the configuration does not describe",
      {},
      [...tensors, { name: "model.layers.0.self_attn.q_proj.bias", shape: [16], values: new Float32Array(16) }],
      "ENGINE_FILE_INVALID",
    ],
    [
      "a weight that is not a number",
      {},
      tensors.map((tensor, i) =>
        i === 3 ? { ...tensor, values: tensor.values.map((v, j) => (j === 7 ? Number.NaN : v)) } : tensor,
      ),
      "ENGINE_NON_FINITE",
    ],
  ])("%s is refused by code", async (_, config, list, code) => {
    expect((await open(damaged(config, list))).code).toBe(code);
  });

  test("an element type that is not read is refused by name", async () => {
    const dir = damaged({});
    const file = join(dir, "model.safetensors");
    const bytes = readFileSync(file);
    bytes.write(bytes.toString("latin1").replace('"F32"', '"I32"'), 0, "latin1");
    writeFileSync(file, bytes);
    const error = await open(dir);
    expect(error.code).toBe("ENGINE_TENSOR_TYPE_UNKNOWN");
    expect(error.message).toContain("I32");
  });

  test("overlapping tensors are refused", async () => {
    const dir = damaged({});
    const file = join(dir, "model.safetensors");
    const bytes = readFileSync(file);
    const text = bytes.toString("latin1");
    // The second tensor is moved onto the first one.
    bytes.write(text.replace("[1536,1600]", "[1472,1536]"), 0, "latin1");
    writeFileSync(file, bytes);
    expect((await open(dir)).code).toBe("ENGINE_FILE_INVALID");
  });

  test("weights larger than the limit are refused with both numbers", async () => {
    const error = await failure(openEmbeddedModel(damaged({}), { memoryLimit: 4096 }));
    expect(error.code).toBe("ENGINE_OUT_OF_MEMORY");
    expect(error.message).toMatch(/\d+ MiB.*\d+ MiB/);
  });

  test("opening can be cancelled", async () => {
    const controller = new AbortController();
    const opening = failure(openEmbeddedModel(smollm2Path(), { signal: controller.signal }));
    controller.abort();
    expect((await opening).code).toBe("ENGINE_CANCELLED");
  });

  test("a failed reload leaves the old weights", async () => {
    const dir = damaged({});
    const model = await openEmbeddedModel(dir);
    const before = await logprobs(model, [1, 2, 3]);
    const other = damaged(
      {},
      tensors.map((tensor, i) => (i === 9 ? { ...tensor, values: tensor.values.map(() => Number.NaN) } : tensor)),
    );
    expect((await failure(model.reload(other))).code).toBe("ENGINE_NON_FINITE");
    expect(await logprobs(model, [1, 2, 3])).toEqual(before);
    model.dispose();
  });

  test("a disposed model says so", async () => {
    const [oracle] = modelOracles();
    const model = await openEmbeddedModel(oracle?.dir ?? "");
    model.dispose();
    expect((await failure(model.readTensor("model.norm.weight"))).code).toBe("ENGINE_REQUEST_INVALID");
  });
});
