// The passes that only generation has, chosen once for the CPU at hand.
#pragma once

#include <cstdint>

namespace rollscope {

/// Largest head_dim that attention holds on the stack.
constexpr int64_t max_head_dim = 512;

/// Query heads that share one key/value head, at one layer.
struct AttentionHeads {
  const float* query = nullptr;           // [group, head_dim], after rope
  float* output = nullptr;                // [group, head_dim]
  const float* const* blocks = nullptr;   // cache blocks of the sequence, in order of position
  int64_t head_offset = 0;                // floats from a block's start to the keys of this layer and key/value head
  int64_t group = 0;                      // query heads per key/value head
  int64_t head_dim = 0;
  int64_t value_stride = 0;               // floats between the values of two positions
  int64_t positions = 0;                  // attends to positions [0, positions)
  float scale = 1.0f;                     // 1 / sqrt(head_dim)
};

/// Logits are summed in blocks of this many ids; a draw walks the blocks' sums first.
constexpr int64_t logit_block = 256;

inline int64_t logit_blocks(int64_t vocabulary) { return (vocabulary + logit_block - 1) / logit_block; }

struct GenerationKernels {
  /// softmax(query · keysᵀ · scale) · values (Vaswani et al. 2017, equation 1). The sums run over absolute positions in fixed
  /// spans, so that neither the cutting of a prompt into chunks nor what lies beside it changes a bit.
  void (*attend)(const AttentionHeads& heads);

  /// Largest logit; NaN when a logit is NaN.
  float (*largest_logit)(const float* logits, int64_t count);
  /// sums[b] = Σ exp((logit − maximum) · inverse_temperature) over block b.
  void (*exponential_sums)(const float* logits, int64_t count, float maximum, float inverse_temperature, float* sums);
  /// Also weighted[b] = Σ exp(z) · z with z = (logit − maximum) · inverse_temperature ≤ 0.
  void (*exponential_moments)(const float* logits, int64_t count, float maximum, float inverse_temperature, float* sums, float* weighted);
  /// out[i] = exp((logit − maximum) · inverse_temperature)
  void (*exponentials)(const float* logits, int64_t count, float maximum, float inverse_temperature, float* out);
};

/// Those of the same instruction set as `kernels()`.
const GenerationKernels& generation_kernels();

}  // namespace rollscope
