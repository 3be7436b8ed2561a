// Copies and packs the weights for generation.
#include "generation/inference_weights.h"

#include <algorithm>

namespace rollscope {

void InferenceWeights::take(MatrixProducts& products, const float* arena, int64_t version) {
  const int64_t hidden = config_.hidden;
  const bool is_first = layers_.empty();
  try {
    if (is_first) {
      layers_.resize(static_cast<size_t>(config_.layers));
      embedding_.resize(config_.vocabulary * hidden);
      const int64_t per_layer = 3 * hidden + config_.qkv_width() + 2 * config_.head_dim + 6 * 16;
      vectors_.resize(config_.layers * per_layer + hidden + 16);
    }
    vectors_used_ = 0;
    std::copy_n(arena + layout_.embedding(), config_.vocabulary * hidden, embedding_.data());
    final_norm_ = keep(arena, layout_.final_norm(), hidden);
    pack(products, head_, arena + layout_.head(), config_.vocabulary, hidden);
    for (int64_t index = 0; index < config_.layers; ++index) {
      const LayerLayout& from = layout_.layer(index);
      Layer& layer = layers_[static_cast<size_t>(index)];
      layer.attention_norm = keep(arena, from.attention_norm, hidden);
      layer.qkv_bias = keep(arena, from.qkv_bias, config_.qkv_width());
      layer.query_norm = keep(arena, from.query_norm, config_.head_dim);
      layer.key_norm = keep(arena, from.key_norm, config_.head_dim);
      layer.output_bias = keep(arena, from.output_bias, hidden);
      layer.mlp_norm = keep(arena, from.mlp_norm, hidden);
      pack(products, layer.qkv, arena + from.qkv, config_.qkv_width(), hidden);
      pack(products, layer.output, arena + from.output, hidden, config_.query_width());
      if (from.router < 0) {
        pack(products, layer.gate_up, arena + from.gate_up, 2 * config_.intermediate, hidden);
        pack(products, layer.down, arena + from.down, hidden, config_.intermediate);
        continue;
      }
      const MixtureConfig& mixture = config_.mixture;
      pack(products, layer.router, arena + from.router, mixture.experts, hidden);
      layer.expert_gate_up.resize(static_cast<size_t>(mixture.experts));
      layer.expert_down.resize(static_cast<size_t>(mixture.experts));
      for (int64_t expert = 0; expert < mixture.experts; ++expert) {
        const auto e = static_cast<size_t>(expert);
        pack(products, layer.expert_gate_up[e], arena + from.expert_gate_up + expert * from.expert_gate_up_stride, 2 * mixture.intermediate, hidden);
        pack(products, layer.expert_down[e], arena + from.expert_down + expert * from.expert_down_stride, hidden, mixture.intermediate);
      }
    }
  } catch (...) {
    release();
    throw;
  }
  version_ = version;
}

void InferenceWeights::release() {
  layers_.clear();
  head_.reset();
  final_norm_ = nullptr;
  embedding_.resize(0);
  vectors_.resize(0);
}

void InferenceWeights::pack(MatrixProducts& products, std::shared_ptr<PackedMatrix>& packed, const float* matrix, int64_t out, int64_t in) {
  if (packed == nullptr) {
    packed = products.pack(matrix, out, in);
  } else {
    products.repack(*packed, matrix);
  }
}

const float* InferenceWeights::keep(const float* arena, int64_t offset, int64_t size) {
  if (offset < 0) return nullptr;
  float* to = vectors_.data() + vectors_used_;
  std::copy_n(arena + offset, size, to);
  vectors_used_ += (size + 15) / 16 * 16;
  return to;
}

}  // namespace rollscope
