// The passes between the matrix products, chosen once for the CPU at hand. Each splits its rows over the OpenMP threads;
// every row (or, in sums over rows, every block of rows) is computed in one fixed order, whatever the thread count and
// whatever rows lie beside it. All matrices are row-major f32.
#pragma once

#include <cstdint>

namespace rollscope {

struct AttentionShape;
struct AttentionPlan;
struct AdamwNumbers;

/// What one row of logits says about itself: log Σ eᶻ and the entropy −Σ p log p, natural logarithm.
struct LogitStatistics {
  float log_sum;
  float entropy;
};

struct Kernels {
  const char* name;  // "avx512", "avx2", "sse" or "generic"

  /// y[rows, width] = x · rsqrt(mean(x²) + epsilon) · weight.
  void (*rms_norm)(float* y, const float* x, const float* weight, int64_t rows, int64_t width, float epsilon);
  /// sum = x + delta, y = norm(sum). `sum` may be `x`.
  void (*add_rms_norm)(float* sum, float* y, const float* x, const float* delta, const float* weight, int64_t rows, int64_t width,
                       float epsilon);
  /// sum = x + delta, element by element; `sum` may be `x`.
  void (*add)(float* sum, const float* x, const float* delta, int64_t size);
  /// y[rows, width] += bias.
  void (*add_bias)(float* y, const float* bias, int64_t rows, int64_t width);
  /// sums[width] += Σ over rows of x[rows, width]. `partial` holds ceil(rows / 64) · width floats.
  void (*add_column_sums)(float* sums, const float* x, float* partial, int64_t rows, int64_t width);
  /// dx += ∂norm, dweight[width] += ∂norm: gradients of y = norm(x) from dy. `partial` holds ceil(rows / 64) · width floats.
  void (*rms_norm_backward)(float* dx, float* dweight, const float* dy, const float* x, const float* weight, float* partial,
                            int64_t rows, int64_t width, float epsilon);

  /// In place on rows of fused q, k, v [rows, (heads + 2 kv_heads) · head_dim]: bias (or nullptr), RMSNorm per head with
  /// `query_norm` and `key_norm` (or nullptr), then rotation of q and k. `cos_sin` is [position][2][head_dim / 2], cosines
  /// first; the pair of dimension i is i + head_dim / 2. `before_norm` (or nullptr) receives the rows after the bias and before the norm.
  void (*prepare_qkv)(float* qkv, float* before_norm, const float* bias, const float* query_norm, const float* key_norm,
                      const float* cos_sin, const int32_t* positions, int64_t rows, int64_t heads, int64_t kv_heads,
                      int64_t head_dim, float epsilon);
  /// The reverse, in place on the gradient; adds to dbias and the norms' gradients where they exist. `partial` holds
  /// ceil(rows / 64) · (qkv width + 2 · head_dim) floats.
  void (*prepare_qkv_backward)(float* dqkv, float* dbias, float* dquery_norm, float* dkey_norm, const float* before_norm,
                               const float* query_norm, const float* key_norm, const float* cos_sin, const int32_t* positions,
                               float* partial, int64_t rows, int64_t heads, int64_t kv_heads, int64_t head_dim, float epsilon);

  /// y[rows, width] = silu(gate) · up with gate_up[rows, 2 · width], gate first.
  void (*swiglu)(float* y, const float* gate_up, int64_t rows, int64_t width);
  /// In place: y holds ∂y and becomes y; gate_up becomes its gradient.
  void (*swiglu_backward)(float* y, float* gate_up, int64_t rows, int64_t width);

  /// statistics[rows] of logits[rows, vocabulary].
  void (*logit_statistics)(LogitStatistics* statistics, const float* logits, int64_t rows, int64_t vocabulary);
  /// In place: logits become −p · (logprob_sum + entropy_sum · (log p + H)). The caller adds the cotangent of each chosen token.
  void (*logit_gradient)(float* logits, const LogitStatistics* statistics, const float* logprob_sum, const float* entropy_sum,
                         int64_t rows, int64_t vocabulary);

  /// Attention over a forest; see attention.h.
  void (*attention_forward)(float* out, float* log_sums, const float* qkv, const AttentionShape& shape, const AttentionPlan& plan,
                            float* workspace, int threads);
  void (*attention_backward)(float* dqkv, const float* dout, const float* out, const float* log_sums, const float* qkv,
                             const AttentionShape& shape, const AttentionPlan& plan, float* workspace, int threads);

  /// One AdamW step over [size]; see adamw.h for the formula. Clears the gradient.
  void (*adamw)(float* weights, float* gradient, float* first, float* second, int64_t size, const AdamwNumbers& numbers);
  /// Σ x² in double, in blocks of one fixed size. `partial` holds ceil(size / 65536) doubles.
  double (*sum_of_squares)(const float* x, double* partial, int64_t size);
};

/// The kernels of the newest instruction set that both this build and this CPU have.
const Kernels& kernels();

}  // namespace rollscope
