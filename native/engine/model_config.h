// Shape of a decoder-only transformer, already normalised: spellings, defaults and rope scaling are resolved in TypeScript.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rollscope {

struct MixtureConfig {
  int64_t experts = 0;  // 0: every layer is dense
  int64_t experts_per_token = 0;
  int64_t intermediate = 0;
  bool normalise_top_k = true;
  std::vector<uint8_t> is_mixture;  // [layers]
};

struct ModelConfig {
  std::string architecture;  // "llama", "qwen2", "qwen3", "qwen3_moe"
  int64_t vocabulary = 0;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 0;
  float rms_epsilon = 1e-5f;
  bool tied_head = false;
  bool attention_bias = false;      // q, k, v carry a bias
  bool output_bias = false;         // the attention's output carries a bias
  bool query_key_norm = false;      // RMSNorm per head on q and k, before rope
  bool value_head = false;          // value_head.weight [hidden] and value_head.bias [1] exist
  std::vector<double> inverse_frequencies;  // [head_dim / 2], rope scaling applied
  float rope_attention_scale = 1.0f;       // multiplies cos and sin (yarn)
  MixtureConfig mixture;

  int64_t query_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  /// Rows of the fused q, k, v matrix.
  int64_t qkv_width() const { return query_width() + 2 * kv_width(); }
};

}  // namespace rollscope
