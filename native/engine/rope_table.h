// Cosines and sines of the rotary angles, computed in double and grown to the largest position asked for.
#pragma once

#include <cstdint>

#include "aligned_buffer.h"
#include "model_config.h"

namespace rollscope {

class RopeTable {
 public:
  explicit RopeTable(const ModelConfig& config) : config_(config) {}

  /// [position][2][head_dim / 2], cosines first, for positions [0, positions). Valid until a larger count is asked for.
  const float* table(int64_t positions);

 private:
  const ModelConfig& config_;
  AlignedBuffer<float> values_;
  int64_t positions_ = 0;
};

}  // namespace rollscope
