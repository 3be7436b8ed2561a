// The attention kernel over cache blocks, compiled once for each instruction set.
#include "generation/generation_kernels.h"
#include "simd.h"

namespace rollscope::ROLLSCOPE_ISA {

namespace {

constexpr int64_t kBlockKeys = 16;
constexpr int64_t kSpanKeys = 512;  // absolute positions [0, 512), [512, 1024), …
constexpr int64_t kVectorsInBlock = kBlockKeys / kLanes;
/// Query heads computed together: what the registers hold with four vectors each.
constexpr int kMostQueries = kLanes == 16 ? 4 : 3;

/// scores[q][kLanes · v + lane] for vectors [first, first + vectors) of keys, counted from `first_block`. Each score adds its
/// products in the order of coordinates.
template <int queries, int vectors>
inline void score_keys(const AttentionHeads& heads, const float* query, int64_t first_block, int64_t first, float (*scores)[kSpanKeys]) {
  Vec sums[queries][vectors] = {};
  const float* keys[vectors];
  for (int v = 0; v < vectors; ++v) {
    keys[v] = heads.blocks[first_block + (first + v) / kVectorsInBlock] + heads.head_offset + (first + v) % kVectorsInBlock * kLanes;
  }
  for (int64_t d = 0; d < heads.head_dim; ++d) {
    for (int v = 0; v < vectors; ++v) {
      const Vec key = load(keys[v] + d * kBlockKeys);
      // The block's values follow its keys, line for line.
      __builtin_prefetch(keys[v] + (heads.head_dim + d) * kBlockKeys, 0, 2);
      for (int q = 0; q < queries; ++q) sums[q][v] += query[q * heads.head_dim + d] * key;
    }
  }
  for (int q = 0; q < queries; ++q) {
    for (int v = 0; v < vectors; ++v) store(&scores[q][(first + v) * kLanes], sums[q][v] * heads.scale);
  }
}

/// totals[q][column …] = totals · correction + Σ weight · value over the span's keys, in order of position.
template <int queries, int vectors>
inline void add_values(const AttentionHeads& heads, int64_t first_block, int64_t keys, const float (*weights)[kSpanKeys],
                       const float* corrections, float (*totals)[max_head_dim], int64_t column) {
  Vec sums[queries][vectors];
  for (int q = 0; q < queries; ++q) {
    for (int v = 0; v < vectors; ++v) sums[q][v] = load(&totals[q][column + kLanes * v]) * corrections[q];
  }
  for (int64_t start = 0; start < keys; start += kBlockKeys) {
    const float* values = heads.blocks[first_block + start / kBlockKeys] + heads.head_offset + kBlockKeys * heads.head_dim + column;
    const int64_t in_block = keys - start < kBlockKeys ? keys - start : kBlockKeys;
    for (int64_t k = 0; k < in_block; ++k) {
      const float* row = values + k * heads.value_stride;
      for (int v = 0; v < vectors; ++v) {
        const Vec value = load(row + kLanes * v);
        // Behind the values lie the next head's keys, which the caller most often asks for next.
        __builtin_prefetch(row + kLanes * v + kBlockKeys * heads.value_stride, 0, 2);
        for (int q = 0; q < queries; ++q) sums[q][v] += weights[q][start + k] * value;
      }
    }
  }
  for (int q = 0; q < queries; ++q) {
    for (int v = 0; v < vectors; ++v) store(&totals[q][column + kLanes * v], sums[q][v]);
  }
}

/// Scores become weights exp(score − maximum), in place. The running maximum and sum follow Milakov and Gimelshein 2018;
/// returns the factor by which everything of earlier spans shrinks.
inline float weigh_span(float* scores, int64_t keys, bool is_first, float& maximum, float& sum) {
  const int64_t padded = (keys + kBlockKeys - 1) / kBlockKeys * kBlockKeys;
  for (int64_t k = keys; k < padded; ++k) scores[k] = -__builtin_inff();
  Vec largest = load(scores);
  for (int64_t k = kLanes; k < padded; k += kLanes) largest = greater(load(scores + k), largest);
  const float span_maximum = largest_lane(largest);
  const float before = maximum;
  if (span_maximum > maximum) maximum = span_maximum;
  Vec span_sum = {};
  for (int64_t k = 0; k < padded; k += kLanes) {
    const Vec weight = exponential(load(scores + k) - maximum);
    store(scores + k, weight);
    span_sum += weight;
  }
  const float correction = is_first ? 0.0f : exponential(splat(before - maximum))[0];
  sum = sum * correction + sum_lanes(span_sum);
  return correction;
}

template <int queries>
void attend_queries(const AttentionHeads& heads, const float* query, float* output) {
  alignas(64) float scores[queries][kSpanKeys];
  alignas(64) float totals[queries][max_head_dim];
  float maxima[queries], sums[queries], corrections[queries];
  for (int q = 0; q < queries; ++q) {
    maxima[q] = -__builtin_inff();
    sums[q] = 0.0f;
    for (int64_t d = 0; d < heads.value_stride; ++d) totals[q][d] = 0.0f;
  }
  for (int64_t span = 0; span < heads.positions; span += kSpanKeys) {
    const int64_t keys = heads.positions - span < kSpanKeys ? heads.positions - span : kSpanKeys;
    const int64_t block = span / kBlockKeys;
    const int64_t vectors = (keys + kBlockKeys - 1) / kBlockKeys * kVectorsInBlock;
    int64_t v = 0;
    for (; v + 4 <= vectors; v += 4) score_keys<queries, 4>(heads, query, block, v, scores);
    for (; v + 2 <= vectors; v += 2) score_keys<queries, 2>(heads, query, block, v, scores);
    for (; v < vectors; ++v) score_keys<queries, 1>(heads, query, block, v, scores);
    for (int q = 0; q < queries; ++q) corrections[q] = weigh_span(scores[q], keys, span == 0, maxima[q], sums[q]);
    int64_t column = 0;
    for (; column + 4 * kLanes <= heads.value_stride; column += 4 * kLanes) {
      add_values<queries, 4>(heads, block, keys, scores, corrections, totals, column);
    }
    for (; column + 2 * kLanes <= heads.value_stride; column += 2 * kLanes) {
      add_values<queries, 2>(heads, block, keys, scores, corrections, totals, column);
    }
    for (; column < heads.value_stride; column += kLanes) {
      add_values<queries, 1>(heads, block, keys, scores, corrections, totals, column);
    }
  }
  for (int q = 0; q < queries; ++q) {
    for (int64_t d = 0; d < heads.head_dim; ++d) output[q * heads.head_dim + d] = totals[q][d] / sums[q];
  }
}

}  // namespace

void attend(const AttentionHeads& heads) {
  for (int64_t head = 0; head < heads.group;) {
    const float* query = heads.query + head * heads.head_dim;
    float* output = heads.output + head * heads.head_dim;
    const int64_t left = heads.group - head;
    if (left >= 4 && kMostQueries == 4) {
      attend_queries<kMostQueries>(heads, query, output);
      head += 4;
    } else if (left >= 3) {
      attend_queries<3>(heads, query, output);
      head += 3;
    } else if (left == 2) {
      attend_queries<2>(heads, query, output);
      head += 2;
    } else {
      attend_queries<1>(heads, query, output);
      head += 1;
    }
  }
}

}  // namespace rollscope::ROLLSCOPE_ISA
