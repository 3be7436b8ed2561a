// The passes over a row of logits, compiled once for each instruction set.
#include "generation/generation_kernels.h"
#include "simd.h"

namespace rollscope::ROLLSCOPE_ISA {

float largest_logit(const float* logits, int64_t count) {
  const Vec lowest = splat(-__builtin_inff());
  Vec largest[4] = {lowest, lowest, lowest, lowest};
  // NaN compares false with everything, so the maximum alone would lose it.
  Vec poison = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    for (int part = 0; part < 4; ++part) {
      const Vec value = load(logits + i + kLanes * part);
      largest[part] = greater(value, largest[part]);
      poison = value == value ? poison : value;
    }
  }
  for (; i < count; i += kLanes) {
    const Vec value = count - i >= kLanes ? load(logits + i) : load_part(logits + i, count - i, -__builtin_inff());
    largest[0] = greater(value, largest[0]);
    poison = value == value ? poison : value;
  }
  const float poisoned = sum_lanes(poison);
  if (poisoned != poisoned) return poisoned;
  return largest_lane(greater(greater(largest[0], largest[1]), greater(largest[2], largest[3])));
}

namespace {

template <bool with_moments>
inline void sum_blocks(const float* logits, int64_t count, float maximum, float inverse_temperature, float* sums, float* weighted) {
  for (int64_t start = 0; start < count; start += logit_block) {
    const int64_t end = count - start < logit_block ? count : start + logit_block;
    Vec sum = {};
    Vec moment = {};
    for (int64_t i = start; i < end; i += kLanes) {
      const Vec value = end - i >= kLanes ? load(logits + i) : load_part(logits + i, end - i, -__builtin_inff());
      const Vec z = (value - maximum) * inverse_temperature;
      const Vec e = exponential(z);
      sum += e;
      // A token of probability 0 adds nothing to the entropy, though its z is −∞.
      if constexpr (with_moments) moment += e > 0.0f ? e * z : Vec{};
    }
    sums[start / logit_block] = sum_lanes(sum);
    if constexpr (with_moments) weighted[start / logit_block] = sum_lanes(moment);
  }
}

}  // namespace

void exponential_sums(const float* logits, int64_t count, float maximum, float inverse_temperature, float* sums) {
  sum_blocks<false>(logits, count, maximum, inverse_temperature, sums, nullptr);
}

void exponential_moments(const float* logits, int64_t count, float maximum, float inverse_temperature, float* sums, float* weighted) {
  sum_blocks<true>(logits, count, maximum, inverse_temperature, sums, weighted);
}

void exponentials(const float* logits, int64_t count, float maximum, float inverse_temperature, float* out) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, exponential((load(logits + i) - maximum) * inverse_temperature));
  if (i < count) {
    const Vec rest = exponential((load_part(logits + i, count - i, -__builtin_inff()) - maximum) * inverse_temperature);
    store_part(out + i, rest, count - i);
  }
}

}  // namespace rollscope::ROLLSCOPE_ISA
