// All parameters of a model in one f32 arena, with the Hugging Face name of every tensor. Matrices keep their [out, in]
// layout; q, k, v lie behind each other, and so do gate and up, so that one product serves all of them. Gradients and
// optimizer moments use arenas of the same layout.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "aligned_buffer.h"
#include "model_config.h"

namespace rollscope {

struct TensorSlot {
  std::string name;            // Hugging Face name
  std::vector<int64_t> shape;  // as in safetensors
  int64_t offset = 0;          // in floats, 64-byte aligned groups
  int64_t size = 0;            // in floats
  bool is_matrix = false;      // two or more axes: what `decayed: "matrices"` means
};

/// Offsets (in floats) of one layer's tensors; −1 where the architecture has none.
struct LayerLayout {
  int64_t attention_norm = -1;  // [hidden]
  int64_t qkv = -1;             // [qkv_width, hidden]
  int64_t qkv_bias = -1;        // [qkv_width]
  int64_t query_norm = -1;      // [head_dim]
  int64_t key_norm = -1;        // [head_dim]
  int64_t output = -1;          // [hidden, query_width]
  int64_t output_bias = -1;     // [hidden]
  int64_t mlp_norm = -1;        // [hidden]
  int64_t gate_up = -1;         // dense: [2 * intermediate, hidden]
  int64_t down = -1;            // dense: [hidden, intermediate]
  int64_t router = -1;          // mixture: [experts, hidden]
  int64_t expert_gate_up = -1;  // mixture: expert e at + e * expert_gate_up_stride, [2 * moe_intermediate, hidden]
  int64_t expert_down = -1;     // mixture: expert e at + e * expert_down_stride, [hidden, moe_intermediate]
  int64_t expert_gate_up_stride = 0;
  int64_t expert_down_stride = 0;
};

/// Where every tensor of a model lies. Immutable after construction.
class ParameterLayout {
 public:
  explicit ParameterLayout(const ModelConfig& config);
  ParameterLayout(const ParameterLayout&) = delete;
  ParameterLayout& operator=(const ParameterLayout&) = delete;

  int64_t size() const { return size_; }              // floats in an arena
  int64_t parameter_count() const { return count_; }  // without alignment gaps, a tied matrix once
  const std::vector<TensorSlot>& slots() const { return slots_; }
  /// nullptr when the model has no tensor of that name.
  const TensorSlot* find(std::string_view name) const;

  int64_t embedding() const { return embedding_; }    // [vocabulary, hidden]
  int64_t final_norm() const { return final_norm_; }  // [hidden]
  int64_t head() const { return head_; }              // [vocabulary, hidden]; equals embedding() when tied
  int64_t value_weight() const { return value_weight_; }  // [hidden]; −1 without a value head
  int64_t value_bias() const { return value_bias_; }      // [1]
  const LayerLayout& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }

 private:
  int64_t add(std::string name, std::vector<int64_t> shape);
  void align();

  std::vector<TensorSlot> slots_;
  std::unordered_map<std::string_view, size_t> by_name_;  // keys live in slots_
  std::vector<LayerLayout> layers_;
  int64_t embedding_ = -1;
  int64_t final_norm_ = -1;
  int64_t head_ = -1;
  int64_t value_weight_ = -1;
  int64_t value_bias_ = -1;
  int64_t size_ = 0;
  int64_t count_ = 0;
};

/// One arena of floats in a model's layout: weights, gradient, a moment or a snapshot.
using Arena = AlignedBuffer<float>;

}  // namespace rollscope
