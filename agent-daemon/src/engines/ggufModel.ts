// A Llama model inside one GGUF file: its configuration from the metadata and its tensors under their Hugging Face names.
// llama.cpp's export reorders the rows of q and k; the tensors that need it undone are marked here, the engine does it.
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { RollscopeError } from "../../../protocol/errors.ts";
import { parseModelConfig } from "./modelConfig.ts";
import { llama3Frequencies, ropeFrequencies } from "./ropeFrequencies.ts";
import type { ModelFiles, ModelTensor } from "./storedModel.ts";
import { type GgufMetadata, type GgufTensor, readGgufTensors } from "./tokenizer/gguf.ts";

interface ElementType {
  readonly name: string;
  readonly block: number;
  readonly blockBytes: number;
}

/** By the format's number. */
const elementTypes: Readonly<Record<number, ElementType>> = {
  0: { name: "F32", block: 1, blockBytes: 4 },
  1: { name: "F16", block: 1, blockBytes: 2 },
  2: { name: "Q4_0", block: 32, blockBytes: 18 },
  3: { name: "Q4_1", block: 32, blockBytes: 20 },
  8: { name: "Q8_0", block: 32, blockBytes: 34 },
  12: { name: "Q4_K", block: 256, blockBytes: 144 },
  14: { name: "Q6_K", block: 256, blockBytes: 210 },
  30: { name: "BF16", block: 1, blockBytes: 2 },
};

const wholeModel: Readonly<Record<string, string>> = {
  "token_embd.weight": "model.embed_tokens.weight",
  "output_norm.weight": "model.norm.weight",
  "output.weight": "lm_head.weight",
};
const oneLayer: Readonly<Record<string, string>> = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_output: "self_attn.o_proj",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
};
const ropeFactors = "rope_freqs.weight";

/**
 * Errors: those of readGgufTensors, ENGINE_ARCHITECTURE_UNKNOWN, ENGINE_TENSOR_TYPE_UNKNOWN, ENGINE_TENSOR_MISSING,
 * ENGINE_FILE_TRUNCATED, ENGINE_UNSUPPORTED.
 */
export function readGgufModel(path: string): ModelFiles {
  const gguf = readGgufTensors(path);
  const architecture = gguf.values.get("general.architecture");
  if (architecture !== "llama") {
    throw new RollscopeError(
      "ENGINE_ARCHITECTURE_UNKNOWN",
      `${path} holds a model of the kind ${String(architecture)}.`,
      {
        next: "GGUF files of the kind llama are read; use the Hugging Face folder of other models.",
        at: { file: path },
      },
    );
  }
  const size = statSync(path).size;
  const byName = new Map(gguf.tensors.map((tensor) => [tensor.name, tensor]));
  const configJson = configOf(gguf, byName);
  const config = parseModelConfig(configJson, path);
  const tensors = new Map<string, ModelTensor>();
  for (const tensor of gguf.tensors) {
    if (tensor.name === ropeFactors) continue;
    const name = huggingFaceName(tensor.name, path);
    const heads = /\.attn_q\./.test(tensor.name) ? config.heads : /\.attn_k\./.test(tensor.name) ? config.kvHeads : 0;
    tensors.set(name, { ...located(tensor, path, size), interleavedHeads: heads });
  }
  return { path, kind: "gguf", config, configJson, generationConfig: generationConfigOf(gguf), tensors, version: 0 };
}

function huggingFaceName(name: string, file: string): string {
  const whole = wholeModel[name];
  if (whole !== undefined) return whole;
  const [, layer, part, leaf] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? [];
  const renamed = part === undefined ? undefined : oneLayer[part];
  if (renamed === undefined || leaf !== "weight") {
    throw new RollscopeError(
      "ENGINE_UNSUPPORTED",
      `The tensor ${name} of ${file} belongs to no llama model that is known here.`,
      {
        next: "Use the model's Hugging Face folder.",
        at: { file, tensor: name },
      },
    );
  }
  return `model.layers.${layer}.${renamed}.weight`;
}

function located(tensor: GgufTensor, file: string, size: number): Omit<ModelTensor, "interleavedHeads"> {
  const type = elementTypes[tensor.type];
  if (type === undefined) {
    throw new RollscopeError(
      "ENGINE_TENSOR_TYPE_UNKNOWN",
      `The tensor ${tensor.name} of ${file} has the element type ${tensor.type}.`,
      {
        next: `Use a file with ${Object.values(elementTypes)
          .map((known) => known.name)
          .join(", ")} tensors.`,
        at: { file, tensor: tensor.name, type: tensor.type },
      },
    );
  }
  const bytes = (tensor.dims.reduce((product, axis) => product * axis, 1) / type.block) * type.blockBytes;
  if (tensor.offset + bytes > size) {
    throw new RollscopeError(
      "ENGINE_FILE_TRUNCATED",
      `The model file ${file} ends before its tensor ${tensor.name} does.`,
      {
        next: "Fetch the file again; the download did not finish.",
        at: { file, size, needed: tensor.offset + bytes },
      },
    );
  }
  if (!Number.isInteger(bytes)) {
    throw new RollscopeError(
      "ENGINE_FILE_INVALID",
      `The tensor ${tensor.name} of ${file} does not fill whole blocks.`,
      {
        next: "Fetch the file again, or check where it came from.",
        at: { file, tensor: tensor.name },
      },
    );
  }
  return { file, type: type.name, shape: [...tensor.dims].reverse(), offset: tensor.offset, bytes };
}

/** What config.json of the same model says; `save` writes it. */
function configOf(gguf: GgufMetadata, tensors: ReadonlyMap<string, GgufTensor>): Record<string, unknown> {
  const needed = (key: string): number => {
    const value = numberOf(gguf, `llama.${key}`);
    if (value === undefined) throw lacking(gguf.path, `llama.${key}`);
    return value;
  };
  const heads = needed("attention.head_count");
  const hidden = needed("embedding_length");
  const headDim =
    numberOf(gguf, "llama.attention.key_length") ?? numberOf(gguf, "llama.rope.dimension_count") ?? hidden / heads;
  const rows = tensors.get("token_embd.weight")?.dims[1];
  const vocabulary = rows ?? numberOf(gguf, "llama.vocab_size");
  if (vocabulary === undefined) throw lacking(gguf.path, "llama.vocab_size");
  return {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    vocab_size: vocabulary,
    hidden_size: hidden,
    intermediate_size: needed("feed_forward_length"),
    num_hidden_layers: needed("block_count"),
    num_attention_heads: heads,
    num_key_value_heads: numberOf(gguf, "llama.attention.head_count_kv") ?? heads,
    head_dim: headDim,
    hidden_act: "silu",
    max_position_embeddings: needed("context_length"),
    rms_norm_eps: Math.fround(needed("attention.layer_norm_rms_epsilon")),
    rope_theta: numberOf(gguf, "llama.rope.freq_base") ?? 10000,
    rope_scaling: ropeScalingOf(gguf, tensors.get(ropeFactors), headDim),
    attention_bias: false,
    mlp_bias: false,
    tie_word_embeddings: !tensors.has("output.weight"),
    bos_token_id: numberOf(gguf, "tokenizer.ggml.bos_token_id") ?? null,
    eos_token_id: numberOf(gguf, "tokenizer.ggml.eos_token_id") ?? null,
    pad_token_id: numberOf(gguf, "tokenizer.ggml.padding_token_id") ?? null,
    torch_dtype: "float32",
  };
}

function generationConfigOf(gguf: GgufMetadata): Record<string, unknown> {
  const ids = { bos_token_id: "bos", eos_token_id: "eos", pad_token_id: "padding" };
  return Object.fromEntries(
    Object.entries(ids).flatMap(([key, name]) => {
      const id = numberOf(gguf, `tokenizer.ggml.${name}_token_id`);
      return id === undefined ? [] : [[key, id]];
    }),
  );
}

function ropeScalingOf(
  gguf: GgufMetadata,
  factors: GgufTensor | undefined,
  headDim: number,
): Record<string, unknown> | null {
  if (factors !== undefined) return llama3ScalingOf(gguf, factors, headDim);
  const type = gguf.values.get("llama.rope.scaling.type") ?? "none";
  if (type === "none") return null;
  return {
    rope_type: type,
    factor: numberOf(gguf, "llama.rope.scaling.factor"),
    original_max_position_embeddings: numberOf(gguf, "llama.rope.scaling.original_context_length"),
  };
}

/** The file holds the divisor of each frequency; the published llama3 settings that give the same ones are looked up. */
function llama3ScalingOf(gguf: GgufMetadata, tensor: GgufTensor, headDim: number): Record<string, unknown> {
  const bytes = Buffer.alloc((headDim / 2) * 4);
  const descriptor = openSync(gguf.path, "r");
  try {
    const got = readSync(descriptor, bytes, 0, bytes.length, tensor.offset);
    if (got < bytes.length || tensor.type !== 0) throw lacking(gguf.path, ropeFactors);
  } finally {
    closeSync(descriptor);
  }
  const divisors = Array.from({ length: headDim / 2 }, (_, i) => bytes.readFloatLE(4 * i));
  const factor = Math.max(...divisors);
  const base = ropeFrequencies(numberOf(gguf, "llama.rope.freq_base") ?? 10000, headDim);
  const scaled = llama3Frequencies(base, { factor, low: 1, high: 4, original: 8192 });
  if (divisors.some((divisor, i) => Math.abs((base[i] ?? 0) / divisor / (scaled[i] ?? 1) - 1) > 1e-4)) {
    throw new RollscopeError("ENGINE_UNSUPPORTED", `The frequency factors of ${gguf.path} follow no known rule.`, {
      next: "Use the model's Hugging Face folder.",
      at: { file: gguf.path },
    });
  }
  return {
    rope_type: "llama3",
    factor,
    low_freq_factor: 1,
    high_freq_factor: 4,
    original_max_position_embeddings: 8192,
  };
}

function numberOf(gguf: GgufMetadata, key: string): number | undefined {
  const value = gguf.values.get(key);
  return typeof value === "number" ? value : undefined;
}

function lacking(file: string, key: string): RollscopeError {
  return new RollscopeError("ENGINE_FILE_INVALID", `The model file ${file} lacks ${key}.`, {
    next: "Fetch the file again, or use the model's Hugging Face folder.",
    at: { file, key },
  });
}
