// A model of a few thousand weights, written where it is asked for: something real for the engine to load, run and train in
// milliseconds. Its numbers come from a fixed sequence and mean nothing.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const tinyVocabulary = 64;
const hidden = 32;
const intermediate = 64;
const heads = 4;
const kvHeads = 2;
const layers = 2;

function shapes(): [name: string, shape: number[]][] {
  const headDim = hidden / heads;
  const layer = (index: number): [string, number[]][] => {
    const name = (part: string) => `model.layers.${index}.${part}.weight`;
    return [
      [name("input_layernorm"), [hidden]],
      [name("self_attn.q_proj"), [heads * headDim, hidden]],
      [name("self_attn.k_proj"), [kvHeads * headDim, hidden]],
      [name("self_attn.v_proj"), [kvHeads * headDim, hidden]],
      [name("self_attn.o_proj"), [hidden, heads * headDim]],
      [name("post_attention_layernorm"), [hidden]],
      [name("mlp.gate_proj"), [intermediate, hidden]],
      [name("mlp.up_proj"), [intermediate, hidden]],
      [name("mlp.down_proj"), [hidden, intermediate]],
    ];
  };
  return [
    ["model.embed_tokens.weight", [tinyVocabulary, hidden]],
    ...Array.from({ length: layers }, (_, index) => layer(index)).flat(),
    ["model.norm.weight", [hidden]],
  ];
}

/** Writes a Hugging Face folder of it. */
export function writeTinyModel(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const config = {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    vocab_size: tinyVocabulary,
    hidden_size: hidden,
    intermediate_size: intermediate,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    max_position_embeddings: 64,
    rms_norm_eps: 1e-5,
    rope_theta: 10000,
    tie_word_embeddings: true,
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  const header: Record<string, unknown> = {};
  const parts: Float32Array[] = [];
  let offset = 0;
  let state = 1;
  for (const [name, shape] of shapes()) {
    const values = new Float32Array(shape.reduce((product, axis) => product * axis, 1));
    for (let index = 0; index < values.length; index++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      values[index] = shape.length === 1 ? 1 : (state / 2 ** 32 - 0.5) * 0.5;
    }
    header[name] = { dtype: "F32", shape, data_offsets: [offset, offset + values.byteLength] };
    offset += values.byteLength;
    parts.push(values);
  }
  const text = Buffer.from(JSON.stringify(header));
  const padded = Buffer.concat([text, Buffer.alloc((8 - (text.length % 8)) % 8, " ")]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  const bytes = parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength));
  writeFileSync(join(folder, "model.safetensors"), Buffer.concat([length, padded, ...bytes]));
}
