// Norms, rotation, activation, logits and optimizer for one instruction set. See kernels.h for what each computes.
#include "kernels.h"

#include <cmath>

#include "adamw.h"
#include "attention_kernels.h"
#include "simd.h"

namespace rollscope::ROLLSCOPE_ISA {

namespace {

/// Below this many floats, waking the other threads costs more than it saves.
constexpr int64_t kParallelFloats = 32768;
constexpr int64_t kSumRows = 64;       // rows in a block of a sum over rows
constexpr int64_t kSquareBlock = 65536;

float row_sum_of_squares(const float* x, int64_t width) {
  Vec a{}, b{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    const Vec first = load(x + i), second = load(x + i + kLanes);
    a += first * first;
    b += second * second;
  }
  for (; i + kLanes <= width; i += kLanes) {
    const Vec value = load(x + i);
    a += value * value;
  }
  if (i < width) {
    const Vec value = load_part(x + i, width - i);
    b += value * value;
  }
  return sum_lanes(a + b);
}

float inverse_rms(const float* x, int64_t width, float epsilon) {
  return 1.0f / std::sqrt(row_sum_of_squares(x, width) / static_cast<float>(width) + epsilon);
}

/// y = x · scale · weight; y may be x.
void scale_row(float* y, const float* x, const float* weight, float scale, int64_t width) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) store(y + i, load(x + i) * scale * load(weight + i));
  for (; i < width; i++) y[i] = x[i] * scale * weight[i];
}

void add_row(float* sum, const float* x, const float* delta, int64_t width) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) store(sum + i, load(x + i) + load(delta + i));
  for (; i < width; i++) sum[i] = x[i] + delta[i];
}

void rms_norm(float* y, const float* x, const float* weight, int64_t rows, int64_t width, float epsilon) {
#pragma omp parallel for schedule(static) if (rows * width >= kParallelFloats)
  for (int64_t row = 0; row < rows; row++) {
    const float* from = x + row * width;
    scale_row(y + row * width, from, weight, inverse_rms(from, width, epsilon), width);
  }
}

void add_rms_norm(float* sum, float* y, const float* x, const float* delta, const float* weight, int64_t rows, int64_t width,
                  float epsilon) {
#pragma omp parallel for schedule(static) if (rows * width >= kParallelFloats)
  for (int64_t row = 0; row < rows; row++) {
    float* total = sum + row * width;
    add_row(total, x + row * width, delta + row * width, width);
    scale_row(y + row * width, total, weight, inverse_rms(total, width, epsilon), width);
  }
}

void add(float* sum, const float* x, const float* delta, int64_t size) {
  const int64_t blocks = (size + kSquareBlock - 1) / kSquareBlock;
#pragma omp parallel for schedule(static) if (size >= kParallelFloats)
  for (int64_t block = 0; block < blocks; block++) {
    const int64_t start = block * kSquareBlock;
    const int64_t count = size - start < kSquareBlock ? size - start : kSquareBlock;
    add_row(sum + start, x + start, delta + start, count);
  }
}

/// target[width] += Σ over blocks of partial[block][stride], in block order.
void add_partials(float* target, const float* partial, int64_t blocks, int64_t stride, int64_t width) {
  for (int64_t i = 0; i < width; i++) {
    float sum = 0.0f;
    for (int64_t block = 0; block < blocks; block++) sum += partial[block * stride + i];
    target[i] += sum;
  }
}

void add_bias(float* y, const float* bias, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width >= kParallelFloats)
  for (int64_t row = 0; row < rows; row++) add_row(y + row * width, y + row * width, bias, width);
}

void add_column_sums(float* sums, const float* x, float* partial, int64_t rows, int64_t width) {
  const int64_t blocks = (rows + kSumRows - 1) / kSumRows;
#pragma omp parallel for schedule(static) if (rows * width >= kParallelFloats)
  for (int64_t block = 0; block < blocks; block++) {
    float* own = partial + block * width;
    std::memset(own, 0, static_cast<size_t>(width) * sizeof(float));
    const int64_t last = (block + 1) * kSumRows < rows ? (block + 1) * kSumRows : rows;
    for (int64_t row = block * kSumRows; row < last; row++) add_row(own, own, x + row * width, width);
  }
  add_partials(sums, partial, blocks, width, width);
}

/// For y = x · r · w with r = 1/rms(x): dx (+)= r · w·dy − x · r³/width · Σ w·dy·x and dweight += dy · x · r. `dx` may be `dy` when not adding.
template <bool kAdd>
void rms_norm_backward_row(float* dx, float* dweight, const float* dy, const float* x, const float* weight, int64_t width,
                           float epsilon) {
  const float r = inverse_rms(x, width, epsilon);
  Vec dots{};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) dots += load(dy + i) * load(weight + i) * load(x + i);
  float dot = sum_lanes(dots);
  for (; i < width; i++) dot += dy[i] * weight[i] * x[i];
  const float pull = r * r * r / static_cast<float>(width) * dot;
  i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    const Vec in = load(x + i), gradient = load(dy + i);
    store(dweight + i, load(dweight + i) + gradient * in * r);
    const Vec result = gradient * load(weight + i) * r - in * pull;
    store(dx + i, kAdd ? load(dx + i) + result : result);
  }
  for (; i < width; i++) {
    const float gradient = dy[i];
    dweight[i] += gradient * x[i] * r;
    const float result = gradient * weight[i] * r - x[i] * pull;
    dx[i] = kAdd ? dx[i] + result : result;
  }
}

void rms_norm_backward(float* dx, float* dweight, const float* dy, const float* x, const float* weight, float* partial,
                       int64_t rows, int64_t width, float epsilon) {
  const int64_t blocks = (rows + kSumRows - 1) / kSumRows;
#pragma omp parallel for schedule(static) if (rows * width >= kParallelFloats)
  for (int64_t block = 0; block < blocks; block++) {
    float* sums = partial + block * width;
    std::memset(sums, 0, static_cast<size_t>(width) * sizeof(float));
    const int64_t last = (block + 1) * kSumRows < rows ? (block + 1) * kSumRows : rows;
    for (int64_t row = block * kSumRows; row < last; row++) {
      const int64_t at = row * width;
      rms_norm_backward_row<true>(dx + at, sums, dy + at, x + at, weight, width, epsilon);
    }
  }
  add_partials(dweight, partial, blocks, width, width);
}

/// Rotates pairs (i, i + half) by the position's angle; `sign` −1 turns back.
void rotate(float* head, const float* cos_sin, int64_t half, float sign) {
  const float* cosines = cos_sin;
  const float* sines = cos_sin + half;
  int64_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Vec first = load(head + i), second = load(head + half + i);
    const Vec c = load(cosines + i), s = load(sines + i) * sign;
    store(head + i, first * c - second * s);
    store(head + half + i, second * c + first * s);
  }
  for (; i < half; i++) {
    const float first = head[i], second = head[half + i], s = sines[i] * sign;
    head[i] = first * cosines[i] - second * s;
    head[half + i] = second * cosines[i] + first * s;
  }
}

void prepare_qkv(float* qkv, float* before_norm, const float* bias, const float* query_norm, const float* key_norm,
                 const float* cos_sin, const int32_t* positions, int64_t rows, int64_t heads, int64_t kv_heads, int64_t head_dim,
                 float epsilon) {
  const int64_t width = (heads + 2 * kv_heads) * head_dim;
#pragma omp parallel for schedule(static) if (rows * width >= kParallelFloats)
  for (int64_t row = 0; row < rows; row++) {
    float* at = qkv + row * width;
    if (bias != nullptr) add_row(at, at, bias, width);
    if (before_norm != nullptr) std::memcpy(before_norm + row * width, at, static_cast<size_t>(width) * sizeof(float));
    const float* angles = cos_sin + positions[row] * head_dim;
    for (int64_t head = 0; head < heads + kv_heads; head++) {
      float* values = at + head * head_dim;
      const float* norm = head < heads ? query_norm : key_norm;
      if (norm != nullptr) scale_row(values, values, norm, inverse_rms(values, head_dim, epsilon), head_dim);
      rotate(values, angles, head_dim / 2, 1.0f);
    }
  }
}

void prepare_qkv_backward(float* dqkv, float* dbias, float* dquery_norm, float* dkey_norm, const float* before_norm,
                          const float* query_norm, const float* key_norm, const float* cos_sin, const int32_t* positions,
                          float* partial, int64_t rows, int64_t heads, int64_t kv_heads, int64_t head_dim, float epsilon) {
  const int64_t width = (heads + 2 * kv_heads) * head_dim;
  const int64_t stride = width + 2 * head_dim;
  const int64_t blocks = (rows + kSumRows - 1) / kSumRows;
  const bool sums_needed = dbias != nullptr || query_norm != nullptr;
#pragma omp parallel for schedule(static) if (rows * width >= kParallelFloats)
  for (int64_t block = 0; block < blocks; block++) {
    float* bias_sums = partial + block * stride;
    float* norm_sums = bias_sums + width;
    if (sums_needed) std::memset(bias_sums, 0, static_cast<size_t>(stride) * sizeof(float));
    const int64_t last = (block + 1) * kSumRows < rows ? (block + 1) * kSumRows : rows;
    for (int64_t row = block * kSumRows; row < last; row++) {
      float* at = dqkv + row * width;
      const float* angles = cos_sin + positions[row] * head_dim;
      for (int64_t head = 0; head < heads + kv_heads; head++) {
        float* values = at + head * head_dim;
        rotate(values, angles, head_dim / 2, -1.0f);
        const float* norm = head < heads ? query_norm : key_norm;
        if (norm == nullptr) continue;
        rms_norm_backward_row<false>(values, norm_sums + (head < heads ? 0 : head_dim), values,
                                     before_norm + row * width + head * head_dim, norm, head_dim, epsilon);
      }
      if (dbias != nullptr) add_row(bias_sums, bias_sums, at, width);
    }
  }
  if (dbias != nullptr) add_partials(dbias, partial, blocks, stride, width);
  if (query_norm != nullptr) {
    add_partials(dquery_norm, partial + width, blocks, stride, head_dim);
    add_partials(dkey_norm, partial + width + head_dim, blocks, stride, head_dim);
  }
}

inline Vec sigmoid(Vec x) { return 1.0f / (1.0f + exponential(-x)); }

/// silu(gate) · up for one vector; the tail of a row goes through the same arithmetic, padded.
inline Vec swiglu_vector(Vec gate, Vec up) { return gate * sigmoid(gate) * up; }

void swiglu(float* y, const float* gate_up, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width >= kParallelFloats / 2)
  for (int64_t row = 0; row < rows; row++) {
    const float* gate = gate_up + row * 2 * width;
    const float* up = gate + width;
    float* to = y + row * width;
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) store(to + i, swiglu_vector(load(gate + i), load(up + i)));
    if (i < width) store_part(to + i, swiglu_vector(load_part(gate + i, width - i), load_part(up + i, width - i)), width - i);
  }
}

/// d silu(g) = σ(g) · (1 + g · (1 − σ(g))).
inline void swiglu_backward_vector(Vec& y, Vec& gate, Vec& up) {
  const Vec s = sigmoid(gate);
  const Vec silu = gate * s;
  const Vec gradient = y;
  y = silu * up;
  gate = gradient * up * s * (1.0f + gate * (1.0f - s));
  up = gradient * silu;
}

void swiglu_backward(float* y, float* gate_up, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width >= kParallelFloats / 2)
  for (int64_t row = 0; row < rows; row++) {
    float* gates = gate_up + row * 2 * width;
    float* ups = gates + width;
    float* at = y + row * width;
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      Vec value = load(at + i), gate = load(gates + i), up = load(ups + i);
      swiglu_backward_vector(value, gate, up);
      store(at + i, value);
      store(gates + i, gate);
      store(ups + i, up);
    }
    if (i < width) {
      const int64_t left = width - i;
      Vec value = load_part(at + i, left), gate = load_part(gates + i, left), up = load_part(ups + i, left);
      swiglu_backward_vector(value, gate, up);
      store_part(at + i, value, left);
      store_part(gates + i, gate, left);
      store_part(ups + i, up, left);
    }
  }
}

float row_maximum(const float* x, int64_t width) {
  Vec a = splat(x[0]), b = a;
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    a = greater(load(x + i), a);
    b = greater(load(x + i + kLanes), b);
  }
  float largest = largest_lane(greater(a, b));
  for (; i < width; i++) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

void logit_statistics(LogitStatistics* statistics, const float* logits, int64_t rows, int64_t vocabulary) {
  constexpr int64_t kBlock = 64;  // vectors added in f32 before they go to the double sums
#pragma omp parallel for schedule(static) if (rows * vocabulary >= kParallelFloats)
  for (int64_t row = 0; row < rows; row++) {
    const float* z = logits + row * vocabulary;
    const float maximum = row_maximum(z, vocabulary);
    DoubleVec sums{}, weighted{};
    int64_t i = 0;
    while (i + kLanes <= vocabulary) {
      const int64_t end = i + kBlock * kLanes < vocabulary ? i + kBlock * kLanes : vocabulary;
      Vec sum{}, with{};
      for (; i + kLanes <= end; i += kLanes) {
        const Vec d = load(z + i) - maximum;
        const Vec e = exponential(d);
        sum += e;
        with += e * d;
      }
      sums += widen(sum);
      weighted += widen(with);
    }
    if (i < vocabulary) {
      // Far below the maximum, yet finite: e · d is 0 for the padding lanes.
      const Vec d = load_part(z + i, vocabulary - i, maximum - 1000.0f) - maximum;
      const Vec e = exponential(d);
      sums += widen(e);
      weighted += widen(e * d);
    }
    const double sum = sum_lanes(sums);
    const double log_sum = std::log(sum);
    statistics[row].log_sum = static_cast<float>(maximum + log_sum);
    statistics[row].entropy = static_cast<float>(log_sum - sum_lanes(weighted) / sum);
  }
}

void logit_gradient(float* logits, const LogitStatistics* statistics, const float* logprob_sum, const float* entropy_sum,
                    int64_t rows, int64_t vocabulary) {
#pragma omp parallel for schedule(static) if (rows * vocabulary >= kParallelFloats)
  for (int64_t row = 0; row < rows; row++) {
    float* z = logits + row * vocabulary;
    const float log_sum = statistics[row].log_sum;
    const float slope = entropy_sum[row];
    const float base = logprob_sum[row] + slope * statistics[row].entropy;
    int64_t i = 0;
    for (; i + kLanes <= vocabulary; i += kLanes) {
      const Vec log_p = load(z + i) - log_sum;
      store(z + i, -exponential(log_p) * (base + slope * log_p));
    }
    if (i < vocabulary) {
      const Vec log_p = load_part(z + i, vocabulary - i) - log_sum;
      store_part(z + i, -exponential(log_p) * (base + slope * log_p), vocabulary - i);
    }
  }
}

void adamw(float* weights, float* gradient, float* first, float* second, int64_t size, const AdamwNumbers& numbers) {
  const AdamwNumbers n = numbers;
  const int64_t blocks = (size + kSquareBlock - 1) / kSquareBlock;
#pragma omp parallel for schedule(static) if (size >= kParallelFloats)
  for (int64_t block = 0; block < blocks; block++) {
    const int64_t start = block * kSquareBlock;
    const int64_t end = start + kSquareBlock < size ? start + kSquareBlock : size;
#pragma omp simd
    for (int64_t i = start; i < end; i++) {
      const float g = gradient[i] * n.clip;
      const float m = n.beta1 * first[i] + n.one_minus_beta1 * g;
      const float v = n.beta2 * second[i] + n.one_minus_beta2 * g * g;
      weights[i] = weights[i] * n.keep - n.rate * m / (std::sqrt(v) * n.second_scale + n.epsilon);
      first[i] = m;
      second[i] = v;
      gradient[i] = 0.0f;
    }
  }
}

double sum_of_squares(const float* x, double* partial, int64_t size) {
  const int64_t blocks = (size + kSquareBlock - 1) / kSquareBlock;
#pragma omp parallel for schedule(static) if (size >= kParallelFloats)
  for (int64_t block = 0; block < blocks; block++) {
    const int64_t start = block * kSquareBlock;
    const int64_t end = start + kSquareBlock < size ? start + kSquareBlock : size;
    DoubleVec sums{};
    int64_t i = start;
    for (; i + kLanes <= end; i += kLanes) {
      const DoubleVec value = widen(load(x + i));
      sums += value * value;
    }
    double sum = sum_lanes(sums);
    for (; i < end; i++) sum += static_cast<double>(x[i]) * x[i];
    partial[block] = sum;
  }
  double total = 0.0;
  for (int64_t block = 0; block < blocks; block++) total += partial[block];
  return total;
}

}  // namespace

extern const Kernels table;
const Kernels table = {
#if defined(__AVX512F__)
    "avx512",
#elif defined(__AVX2__)
    "avx2",
#elif defined(__SSE2__)
    "sse",
#else
    "generic",
#endif
    rms_norm,
    add_rms_norm,
    add,
    add_bias,
    add_column_sums,
    rms_norm_backward,
    prepare_qkv,
    prepare_qkv_backward,
    swiglu,
    swiglu_backward,
    logit_statistics,
    logit_gradient,
    attention_forward,
    attention_backward,
    adamw,
    sum_of_squares,
};

}  // namespace rollscope::ROLLSCOPE_ISA
