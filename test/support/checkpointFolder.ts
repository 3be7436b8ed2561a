// Writes small Hugging Face checkpoints, sound and damaged, so that tests can load them.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { safetensorsHeader } from "../../agent-daemon/src/engines/safetensors.ts";

export interface WrittenTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

export const smallLlama = {
  model_type: "llama",
  vocab_size: 24,
  num_hidden_layers: 1,
  hidden_size: 16,
  intermediate_size: 32,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 8,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  tie_word_embeddings: true,
};

/** Tensors of smallLlama with fixed, small numbers. */
export function smallLlamaTensors(): WrittenTensor[] {
  const layer = "model.layers.0.";
  const shapes: [string, number[]][] = [
    ["model.embed_tokens.weight", [24, 16]],
    [`${layer}input_layernorm.weight`, [16]],
    [`${layer}self_attn.q_proj.weight`, [16, 16]],
    [`${layer}self_attn.k_proj.weight`, [8, 16]],
    [`${layer}self_attn.v_proj.weight`, [8, 16]],
    [`${layer}self_attn.o_proj.weight`, [16, 16]],
    [`${layer}post_attention_layernorm.weight`, [16]],
    [`${layer}mlp.gate_proj.weight`, [32, 16]],
    [`${layer}mlp.up_proj.weight`, [32, 16]],
    [`${layer}mlp.down_proj.weight`, [16, 32]],
    ["model.norm.weight", [16]],
  ];
  return shapes.map(([name, shape], t) => {
    const size = shape.reduce((product, axis) => product * axis, 1);
    return { name, shape, values: Float32Array.from({ length: size }, (_, i) => Math.sin(i * 1.7 + t) * 0.3) };
  });
}

export function writeSafetensors(file: string, tensors: readonly WrittenTensor[]): void {
  const bytes = tensors.map(({ values }) => Buffer.from(values.buffer, values.byteOffset, values.byteLength));
  writeFileSync(file, Buffer.concat([safetensorsHeader(tensors), ...bytes]));
}

/** config.json and model.safetensors. */
export function writeCheckpoint(
  dir: string,
  config: Readonly<Record<string, unknown>> = smallLlama,
  tensors: readonly WrittenTensor[] = smallLlamaTensors(),
): void {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "config.json"), JSON.stringify(config));
  writeSafetensors(join(dir, "model.safetensors"), tensors);
}

/** The same tensors in two shards with an index. */
export function writeShards(
  dir: string,
  config: Readonly<Record<string, unknown>>,
  tensors: readonly WrittenTensor[],
): void {
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "config.json"), JSON.stringify(config));
  const half = Math.ceil(tensors.length / 2);
  const shards = [tensors.slice(0, half), tensors.slice(half)];
  const weight_map: Record<string, string> = {};
  for (const [index, shard] of shards.entries()) {
    const name = `model-0000${index + 1}-of-00002.safetensors`;
    writeSafetensors(join(dir, name), shard);
    for (const tensor of shard) weight_map[tensor.name] = name;
  }
  writeFileSync(join(dir, "model.safetensors.index.json"), JSON.stringify({ metadata: {}, weight_map }));
}
