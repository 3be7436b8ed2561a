// Configurations of models in every spelling, and the rotary frequencies they mean.
import { describe, expect, test } from "vitest";
import { parseModelConfig } from "../../agent-daemon/src/engines/modelConfig.ts";

const llama = {
  model_type: "llama",
  vocab_size: 100,
  num_hidden_layers: 2,
  hidden_size: 64,
  intermediate_size: 96,
  num_attention_heads: 4,
  max_position_embeddings: 128,
  rms_norm_eps: 1e-6,
};
const parse = (changes: object) => parseModelConfig({ ...llama, ...changes }, "config.json");
const code = (changes: object) => {
  try {
    parse(changes);
    return "none";
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe("spellings", () => {
  test("rope_theta with rope_scaling means what rope_parameters means", () => {
    const scaling = { factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 64 };
    const old = parse({ rope_theta: 5000, rope_scaling: { rope_type: "llama3", ...scaling } });
    const older = parse({ rope_theta: 5000, rope_scaling: { type: "llama3", ...scaling } });
    const recent = parse({ rope_parameters: { rope_theta: 5000, rope_type: "llama3", ...scaling } });
    expect(old.rope).toEqual(recent.rope);
    expect(older.rope).toEqual(recent.rope);
  });

  test("num_experts means what num_local_experts means", () => {
    const mixture = {
      model_type: "qwen3_moe",
      num_experts_per_tok: 2,
      moe_intermediate_size: 16,
      norm_topk_prob: true,
    };
    expect(parse({ ...mixture, num_experts: 4 }).mixture).toEqual(parse({ ...mixture, num_local_experts: 4 }).mixture);
  });

  test("an absent or null rope_scaling, head_dim and num_key_value_heads take their defaults", () => {
    const config = parse({ rope_scaling: null, head_dim: null });
    expect(config.headDim).toBe(16);
    expect(config.kvHeads).toBe(4);
    expect(config.rope.inverseFrequencies[0]).toBe(1);
    expect(config.rope.inverseFrequencies[4]).toBeCloseTo(10000 ** -0.5, 15);
  });
});

describe("mixtures", () => {
  test("mlp_only_layers and decoder_sparse_step decide which layers are mixtures", () => {
    const mixture = {
      model_type: "qwen3_moe",
      num_hidden_layers: 6,
      num_experts: 4,
      num_experts_per_tok: 2,
      moe_intermediate_size: 16,
      decoder_sparse_step: 2,
      mlp_only_layers: [3],
    };
    expect(parse(mixture).mixture.isMixture).toEqual([false, true, false, false, false, true]);
  });
});

describe("rope scaling", () => {
  test("linear divides every frequency", () => {
    const plain = parse({}).rope.inverseFrequencies;
    const scaled = parse({ rope_scaling: { type: "linear", factor: 4 } }).rope.inverseFrequencies;
    scaled.forEach((frequency, i) => {
      expect(frequency).toBeCloseTo((plain[i] ?? 0) / 4, 15);
    });
  });

  test("yarn keeps short waves, divides long ones and scales attention", () => {
    const settings = { rope_type: "yarn", factor: 4, original_max_position_embeddings: 32 };
    const { rope } = parse({ rope_theta: 10000, rope_scaling: settings, max_position_embeddings: 128 });
    const plain = parse({ rope_theta: 10000 }).rope.inverseFrequencies;
    // d(β) = 16 · ln(32 / 2πβ) / (2 ln 10000): d(32) < 0 → 0, d(1) = 1.41… → 2.
    const kept = [1, 0.5, 0, 0, 0, 0, 0, 0];
    rope.inverseFrequencies.forEach((frequency, i) => {
      const base = plain[i] ?? 0;
      expect(frequency).toBeCloseTo(base * (kept[i] ?? 0) + (base / 4) * (1 - (kept[i] ?? 0)), 12);
    });
    expect(rope.attentionScale).toBeCloseTo(0.1 * Math.log(4) + 1, 12);
  });

  test("a kind that is not implemented is refused", () => {
    expect(code({ rope_scaling: { type: "dynamic", factor: 2 } })).toBe("ENGINE_UNSUPPORTED");
  });
});

describe("what would compute something else is refused", () => {
  test.each([
    [{ model_type: "gpt2" }, "ENGINE_ARCHITECTURE_UNKNOWN"],
    [{ model_type: undefined }, "ENGINE_FILE_INVALID"],
    [{ hidden_act: "gelu" }, "ENGINE_UNSUPPORTED"],
    [{ mlp_bias: true }, "ENGINE_UNSUPPORTED"],
    [{ use_sliding_window: true }, "ENGINE_UNSUPPORTED"],
    [{ layer_types: ["full_attention", "sliding_attention"] }, "ENGINE_UNSUPPORTED"],
    [{ partial_rotary_factor: 0.5 }, "ENGINE_UNSUPPORTED"],
    [{ num_key_value_heads: 3 }, "ENGINE_FILE_INVALID"],
    [{ num_attention_heads: 5 }, "ENGINE_FILE_INVALID"],
    [{ hidden_size: "64" }, "ENGINE_FILE_INVALID"],
    [{ model_type: "qwen3_moe" }, "ENGINE_FILE_INVALID"],
  ])("%o", (changes, expected) => {
    expect(code(changes)).toBe(expected);
  });
});
