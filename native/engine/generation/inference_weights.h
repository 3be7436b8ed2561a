// The weights that generation runs on: copies taken at one policy version, matrices packed for products with few rows. The
// trainer may change its own weights meanwhile without a sampled token ever seeing half a step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aligned_buffer.h"
#include "matrix_products.h"
#include "model_config.h"
#include "parameters.h"

namespace rollscope {

class InferenceWeights {
 public:
  struct Layer {
    const float* attention_norm = nullptr;  // [hidden]
    const float* qkv_bias = nullptr;        // [qkv_width] or nullptr
    const float* query_norm = nullptr;      // [head_dim] or nullptr
    const float* key_norm = nullptr;
    const float* output_bias = nullptr;     // [hidden] or nullptr
    const float* mlp_norm = nullptr;        // [hidden]
    std::shared_ptr<PackedMatrix> qkv, output;
    std::shared_ptr<PackedMatrix> gate_up, down;  // dense layers
    std::shared_ptr<PackedMatrix> router;         // mixture layers
    std::vector<std::shared_ptr<PackedMatrix>> expert_gate_up, expert_down;
  };

  InferenceWeights(const ModelConfig& config, const ParameterLayout& layout) : config_(config), layout_(layout) {}

  /// Copies and packs `arena`, laid out as the layout says; reuses the memory of an earlier take.
  void take(MatrixProducts& products, const float* arena, int64_t version);
  void release();

  bool is_loaded() const { return !layers_.empty(); }
  int64_t version() const { return version_; }
  const float* embedding() const { return embedding_.data(); }  // [vocabulary, hidden]
  const float* final_norm() const { return final_norm_; }       // [hidden]
  const PackedMatrix& head() const { return *head_; }           // [vocabulary, hidden]
  const Layer& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }

 private:
  void pack(MatrixProducts& products, std::shared_ptr<PackedMatrix>& packed, const float* matrix, int64_t out, int64_t in);
  const float* keep(const float* arena, int64_t offset, int64_t size);

  const ModelConfig& config_;
  const ParameterLayout& layout_;
  int64_t version_ = 0;
  AlignedBuffer<float> embedding_;
  AlignedBuffer<float> vectors_;  // norms and biases, one behind the other
  int64_t vectors_used_ = 0;
  const float* final_norm_ = nullptr;
  std::shared_ptr<PackedMatrix> head_;
  std::vector<Layer> layers_;
};

}  // namespace rollscope
