// Flash-style attention over a forest, forward, for one instruction set. Keys and values are packed once a call; then query tiles
// run in parallel, each visiting the panels of its path in order with a running softmax.
#include "attention_kernels.h"

#include <omp.h>

#include <cmath>

#include "attention_panels.h"
#include "block_product.h"

namespace rollscope::ROLLSCOPE_ISA {

namespace {

/// Softmax of one more panel for every row: scores become exp(score − maximum), sums and outputs are rescaled.
void absorb_scores(float* scores, float* maxima, float* sums, float* output, const KeyPanel& panel, const QueryTile& tile,
                   const Context& context, int64_t width) {
  for (int64_t row = 0; row < tile.count * context.group; row++) {
    float* s = scores + row * kPanelKeys;
    hide_unseen(s, visible_keys(panel, tile, row / context.group), width);
    Vec highest = load(s);
    for (int64_t key = kLanes; key < width; key += kLanes) highest = greater(load(s + key), highest);
    const float old = maxima[row];
    const float panel_maximum = largest_lane(highest);
    const float maximum = panel_maximum > old ? panel_maximum : old;
    Vec total{};
    for (int64_t key = 0; key < width; key += kLanes) {
      const Vec e = exponential(load(s + key) - maximum);
      store(s + key, e);
      total += e;
    }
    if (maximum != old) {
      const float shrink = old == kMinusInfinity ? 0.0f : exponential(splat(old - maximum))[0];
      sums[row] *= shrink;
      float* out = output + row * context.dim;
      for (int64_t i = 0; i < context.dim; i += kLanes) store(out + i, load(out + i) * shrink);
      maxima[row] = maximum;
    }
    sums[row] += sum_lanes(total);
  }
}

struct ForwardScratch {
  int32_t* path;   // [tokens]
  float* queries;  // [tile_rows][dim]
  float* output;   // [tile_rows][dim]
  float* scores;   // [tile_rows][kPanelKeys]
  float* maxima;   // [tile_rows]
  float* sums;     // [tile_rows]
};

void forward_tile(float* out, float* log_sums, const float* qkv, const Context& context, const Packed& packed, int64_t kv_head,
                  const QueryTile& tile, const ForwardScratch& scratch) {
  const AttentionShape& shape = context.shape;
  const int64_t rows = tile.count * context.group;
  const int64_t first_head = kv_head * context.group;
  gather_tile(scratch.queries, qkv + first_head * shape.head_dim, context.stride, tile, context, shape.scale);
  std::memset(scratch.output, 0, static_cast<size_t>(rows * context.dim) * sizeof(float));
  for (int64_t row = 0; row < rows; row++) {
    scratch.maxima[row] = kMinusInfinity;
    scratch.sums[row] = 0.0f;
  }
  visit_panels(context.plan, tile, scratch.path, [&](const KeyPanel& panel, int64_t width) {
    const int64_t at = context.panel_at(kv_head, panel);
    block_product(scratch.scores, kPanelKeys, scratch.queries, context.dim, 1, packed.keys_transposed + at, panel.width, rows, width,
                  context.dim, false);
    absorb_scores(scratch.scores, scratch.maxima, scratch.sums, scratch.output, panel, tile, context, width);
    block_product(scratch.output, context.dim, scratch.scores, kPanelKeys, 1, packed.values + at, context.dim, rows, context.dim, width,
                  true);
  });
  for (int64_t row = 0; row < rows; row++) {
    float* result = scratch.output + row * context.dim;
    const float inverse = 1.0f / scratch.sums[row];
    for (int64_t i = 0; i < context.dim; i += kLanes) store(result + i, load(result + i) * inverse);
    const int64_t token = tile.first + row / context.group;
    if (log_sums != nullptr)
      log_sums[token * shape.heads + first_head + row % context.group] = scratch.maxima[row] + std::log(scratch.sums[row]);
  }
  scatter_tile(out + first_head * shape.head_dim, scratch.output, shape.heads * shape.head_dim, tile, context, 1.0f);
}

}  // namespace

void attention_forward(float* out, float* log_sums, const float* qkv, const AttentionShape& shape, const AttentionPlan& plan,
                       float* workspace, int threads) {
  const Context context(shape, plan);
  Carver carver{workspace};
  const int64_t all = shape.kv_heads * context.head_floats;
  Packed packed{};
  packed.keys_transposed = carver.take(all);
  packed.values = carver.take(all);
  pack(context, packed, qkv, false, threads);
  const int64_t rows = shape.tile_rows();
  const int64_t own = attention_forward_part(shape, plan.tokens);
  float* const private_parts = carver.at;
  const int64_t tasks = shape.kv_heads * plan.tile_count;
#pragma omp parallel num_threads(threads)
  {
    Carver mine{private_parts + omp_get_thread_num() * own};
    ForwardScratch scratch{};
    scratch.path = reinterpret_cast<int32_t*>(mine.take(plan.tokens));
    scratch.queries = mine.take(rows * context.dim);
    scratch.output = mine.take(rows * context.dim);
    scratch.scores = mine.take(rows * kPanelKeys);
    scratch.maxima = mine.take(rows);
    scratch.sums = mine.take(rows);
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < tasks; task++) {
      forward_tile(out, log_sums, qkv, context, packed, task % shape.kv_heads, plan.tiles[task / shape.kv_heads], scratch);
    }
  }
}

}  // namespace rollscope::ROLLSCOPE_ISA
