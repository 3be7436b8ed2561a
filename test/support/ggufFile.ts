// Writes small GGUF headers, so that tests can have damaged and unusual ones.

export type GgufEntry =
  | readonly [key: string, type: "text", value: string]
  | readonly [key: string, type: "u32", value: number]
  | readonly [key: string, type: "u64", value: bigint]
  | readonly [key: string, type: "texts", value: readonly string[]]
  | readonly [key: string, type: "i32s", value: readonly number[]];

/** A GGUF header of version 3 with these keys and no tensors. */
export function ggufHeader(entries: readonly GgufEntry[]): Buffer {
  const parts = [Buffer.from("GGUF"), u32(3), u64(0n), u64(BigInt(entries.length))];
  for (const [key, type, value] of entries) {
    parts.push(text(key));
    if (type === "text") parts.push(u32(8), text(value));
    else if (type === "u32") parts.push(u32(4), u32(value));
    else if (type === "u64") parts.push(u32(10), u64(value));
    else if (type === "texts") parts.push(u32(9), u32(8), u64(BigInt(value.length)), ...value.map(text));
    else parts.push(u32(9), u32(5), u64(BigInt(value.length)), ...value.map(u32));
  }
  return Buffer.concat(parts);
}

/** Metadata of a tokenizer with these tokens and merges; `types`: 1 ordinary, 3 control, 4 user-defined. */
export function ggufTokenizer(
  tokens: readonly string[],
  merges: readonly string[],
  more: readonly GgufEntry[] = [],
  types: readonly number[] = tokens.map(() => 1),
): readonly GgufEntry[] {
  return [
    ["tokenizer.ggml.model", "text", "gpt2"],
    ["tokenizer.ggml.tokens", "texts", tokens],
    ["tokenizer.ggml.merges", "texts", merges],
    ["tokenizer.ggml.token_type", "i32s", types],
    ...more,
  ];
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(BigInt(bytes.length)), bytes]);
}
