// The table of rope_table.h.
#include "rope_table.h"

#include <algorithm>
#include <cmath>

namespace rollscope {

const float* RopeTable::table(int64_t positions) {
  if (positions <= positions_) return values_.data();
  const int64_t half = config_.head_dim / 2;
  const int64_t count = std::max(positions, std::min(2 * positions_, config_.max_positions));
  values_.resize(count * config_.head_dim);
  for (int64_t position = 0; position < count; position++) {
    float* at = values_.data() + position * config_.head_dim;
    for (int64_t i = 0; i < half; i++) {
      const double angle = static_cast<double>(position) * config_.inverse_frequencies[static_cast<size_t>(i)];
      at[i] = static_cast<float>(std::cos(angle) * config_.rope_attention_scale);
      at[half + i] = static_cast<float>(std::sin(angle) * config_.rope_attention_scale);
    }
  }
  positions_ = count;
  return values_.data();
}

}  // namespace rollscope
