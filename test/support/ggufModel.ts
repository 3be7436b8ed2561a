// Writes a small GGUF model with tensors of every element type that is read, together with what they mean in f32, computed
// here from the format's description alone.
import { writeFileSync } from "node:fs";

type Decode = (block: DataView, y: number[]) => void;

interface ElementType {
  readonly name: string;
  readonly id: number;
  readonly block: number;
  readonly bytes: number;
  /** Byte offsets of the half-precision scales in a block; they get values that stay finite. */
  readonly scales: readonly number[];
  readonly decode: Decode;
}

function half(view: DataView, at: number): number {
  const bits = view.getUint16(at, true);
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  return sign * (exponent === 0 ? fraction * 2 ** -14 : (1 + fraction) * 2 ** (exponent - 15));
}

const nibble = (view: DataView, start: number, i: number) => {
  const byte = view.getUint8(start + (i % 16));
  return i < 16 ? byte & 15 : byte >> 4;
};

export const elementTypes: readonly ElementType[] = [
  { name: "F32", id: 0, block: 1, bytes: 4, scales: [], decode: (v, y) => y.push(v.getFloat32(0, true)) },
  { name: "F16", id: 1, block: 1, bytes: 2, scales: [0], decode: (v, y) => y.push(half(v, 0)) },
  {
    name: "BF16",
    id: 30,
    block: 1,
    bytes: 2,
    scales: [],
    decode: (v, y) => {
      const wide = new DataView(new ArrayBuffer(4));
      wide.setUint16(2, v.getUint16(0, true), true);
      y.push(wide.getFloat32(0, true));
    },
  },
  {
    name: "Q8_0",
    id: 8,
    block: 32,
    bytes: 34,
    scales: [0],
    decode: (v, y) => {
      for (let i = 0; i < 32; i++) y.push(half(v, 0) * v.getInt8(2 + i));
    },
  },
  {
    name: "Q4_0",
    id: 2,
    block: 32,
    bytes: 18,
    scales: [0],
    decode: (v, y) => {
      for (let i = 0; i < 32; i++) y.push(half(v, 0) * (nibble(v, 2, i) - 8));
    },
  },
  {
    name: "Q4_1",
    id: 3,
    block: 32,
    bytes: 20,
    scales: [0, 2],
    decode: (v, y) => {
      for (let i = 0; i < 32; i++) y.push(half(v, 0) * nibble(v, 4, i) + half(v, 2));
    },
  },
  {
    name: "Q4_K",
    id: 12,
    block: 256,
    bytes: 144,
    scales: [0, 2],
    decode: (v, y) => {
      // Twelve bytes hold eight 6-bit scales and eight 6-bit minima.
      const byte = (i: number) => v.getUint8(4 + i);
      for (let g = 0; g < 8; g++) {
        const low = g < 4;
        const scale = low ? byte(g) & 63 : (byte(g + 4) & 15) + 16 * (byte(g - 4) >> 6);
        const minimum = low ? byte(g + 4) & 63 : (byte(g + 4) >> 4) + 16 * (byte(g) >> 6);
        for (let i = 0; i < 32; i++) {
          const both = v.getUint8(16 + 32 * (g >> 1) + i);
          const q = g % 2 === 0 ? both & 15 : both >> 4;
          y.push(half(v, 0) * scale * q - half(v, 2) * minimum);
        }
      }
    },
  },
  {
    name: "Q6_K",
    id: 14,
    block: 256,
    bytes: 210,
    scales: [208],
    decode: (v, y) => {
      for (let i = 0; i < 256; i++) {
        const part = i >> 7;
        const quarter = (i >> 5) & 3;
        const low = v.getUint8(64 * part + 32 * (quarter & 1) + (i & 31));
        const high = (v.getUint8(128 + 32 * part + (i & 31)) >> (2 * quarter)) & 3;
        const q = (quarter < 2 ? low & 15 : low >> 4) + 16 * high - 32;
        y.push(half(v, 208) * v.getInt8(192 + (i >> 4)) * q);
      }
    },
  },
];

export interface ExpectedTensor {
  readonly name: string;
  readonly type: string;
  readonly values: Float32Array;
}

const width = 256;
const vocabulary = 12;
const heads = 4;
const kvHeads = 2;

/** A llama of one layer whose tensors take the types in turn. Returns what the engine must hold, by Hugging Face name. */
export function writeGgufModel(file: string): ExpectedTensor[] {
  const layer = "model.layers.0.";
  const plan: [gguf: string, name: string, rows: number, typeName: string, heads: number][] = [
    ["token_embd.weight", "model.embed_tokens.weight", vocabulary, "Q4_K", 0],
    ["blk.0.attn_norm.weight", `${layer}input_layernorm.weight`, 0, "F32", 0],
    ["blk.0.attn_q.weight", `${layer}self_attn.q_proj.weight`, width, "Q6_K", heads],
    ["blk.0.attn_k.weight", `${layer}self_attn.k_proj.weight`, width / 2, "Q4_0", kvHeads],
    ["blk.0.attn_v.weight", `${layer}self_attn.v_proj.weight`, width / 2, "Q4_1", 0],
    ["blk.0.attn_output.weight", `${layer}self_attn.o_proj.weight`, width, "Q8_0", 0],
    ["blk.0.ffn_norm.weight", `${layer}post_attention_layernorm.weight`, 0, "F32", 0],
    ["blk.0.ffn_gate.weight", `${layer}mlp.gate_proj.weight`, width, "F16", 0],
    ["blk.0.ffn_up.weight", `${layer}mlp.up_proj.weight`, width, "BF16", 0],
    ["blk.0.ffn_down.weight", `${layer}mlp.down_proj.weight`, width, "F32", 0],
    ["output_norm.weight", "model.norm.weight", 0, "F32", 0],
    ["output.weight", "lm_head.weight", vocabulary, "Q8_0", 0],
  ];
  const table: Buffer[] = [];
  const data: Buffer[] = [];
  const expected: ExpectedTensor[] = [];
  let offset = 0;
  for (const [gguf, name, rows, typeName, interleaved] of plan) {
    const type = elementTypes.find((known) => known.name === typeName)!;
    const bytes = noise(type, (Math.max(rows, 1) * width) / type.block, data.length);
    const values = decodeAll(type, bytes);
    expected.push({ name, type: typeName, values: interleaved > 0 ? apart(values, interleaved) : values });
    const dims = rows === 0 ? [width] : [width, rows];
    table.push(text(gguf), u32(dims.length), ...dims.map((dim) => u64(dim)), u32(type.id), u64(offset));
    const padded = Buffer.concat([bytes, Buffer.alloc((32 - (bytes.length % 32)) % 32)]);
    data.push(padded);
    offset += padded.length;
  }
  const numbers: [string, number][] = [
    ["llama.block_count", 1],
    ["llama.context_length", 64],
    ["llama.embedding_length", width],
    ["llama.feed_forward_length", width],
    ["llama.attention.head_count", heads],
    ["llama.attention.head_count_kv", kvHeads],
    ["llama.vocab_size", vocabulary],
  ];
  const keys = [
    Buffer.concat([text("general.architecture"), u32(8), text("llama")]),
    Buffer.concat([text("llama.attention.layer_norm_rms_epsilon"), u32(6), f32(1e-5)]),
    ...numbers.map(([key, value]) => Buffer.concat([text(key), u32(4), u32(value)])),
  ];
  const head = Buffer.concat([Buffer.from("GGUF"), u32(3), u64(plan.length), u64(keys.length), ...keys, ...table]);
  writeFileSync(file, Buffer.concat([head, Buffer.alloc((32 - (head.length % 32)) % 32), ...data]));
  return expected;
}

/** llama.cpp stores dimension i of a head beside dimension i + half; Hugging Face keeps the halves apart. */
function apart(values: Float32Array, headCount: number): Float32Array {
  const rowsOfHead = values.length / width / headCount;
  const result = new Float32Array(values.length);
  for (let head = 0; head < headCount; head++) {
    for (let i = 0; i < rowsOfHead / 2; i++) {
      for (const part of [0, 1]) {
        const from = head * rowsOfHead + 2 * i + part;
        const to = head * rowsOfHead + part * (rowsOfHead / 2) + i;
        result.set(values.subarray(from * width, (from + 1) * width), to * width);
      }
    }
  }
  return result;
}

function noise(type: ElementType, blocks: number, seed: number): Buffer {
  const bytes = Buffer.alloc(blocks * type.bytes);
  let state = 12345 + seed;
  for (let i = 0; i < bytes.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  for (let block = 0; block < blocks; block++) {
    const at = block * type.bytes;
    if (type.name === "F32") bytes.writeFloatLE(Math.sin(block + seed), at);
    if (type.name === "BF16") bytes.writeUInt16LE(0x3c00 + (bytes.readUInt16LE(at) & 0x83ff), at);
    for (const scale of type.scales) bytes.writeUInt16LE(bytes.readUInt16LE(at + scale) & 0xa7ff, at + scale);
  }
  return bytes;
}

function decodeAll(type: ElementType, bytes: Buffer): Float32Array {
  const values: number[] = [];
  for (let at = 0; at < bytes.length; at += type.bytes) {
    type.decode(new DataView(bytes.buffer, bytes.byteOffset + at, type.bytes), values);
  }
  return Float32Array.from(values);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function f32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
}
