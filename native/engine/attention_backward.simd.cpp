// Gradients of attention_forward.simd.cpp: probabilities are computed again from the stored log-sums, panel by panel.
#include "attention_kernels.h"

#include <omp.h>

#include "attention_panels.h"
#include "block_product.h"

namespace rollscope::ROLLSCOPE_ISA {

namespace {

struct BackwardScratch {
  int32_t* path;          // [tokens]
  float* queries;         // [tile_rows][dim], scaled
  float* output_gradient;  // [tile_rows][dim]
  float* query_gradient;  // [tile_rows][dim]; first holds the forward output
  float* probabilities;   // [tile_rows][kPanelKeys]
  float* gradients;       // [tile_rows][kPanelKeys]
  float* log_sums;        // [tile_rows]
  float* dots;            // [tile_rows] Σ dO · O
};

void load_tile(const BackwardScratch& scratch, const float* qkv, const float* out, const float* dout, const float* log_sums,
               const Context& context, int64_t kv_head, const QueryTile& tile) {
  const AttentionShape& shape = context.shape;
  const int64_t first_head = kv_head * context.group;
  const int64_t at = first_head * shape.head_dim;
  const int64_t out_stride = shape.heads * shape.head_dim;
  const int64_t rows = tile.count * context.group;
  gather_tile(scratch.queries, qkv + at, context.stride, tile, context, shape.scale);
  gather_tile(scratch.output_gradient, dout + at, out_stride, tile, context, 1.0f);
  gather_tile(scratch.query_gradient, out + at, out_stride, tile, context, 1.0f);
  for (int64_t row = 0; row < rows; row++) {
    Vec dot{};
    for (int64_t i = 0; i < context.dim; i += kLanes)
      dot += load(scratch.output_gradient + row * context.dim + i) * load(scratch.query_gradient + row * context.dim + i);
    scratch.dots[row] = sum_lanes(dot);
    scratch.log_sums[row] = log_sums[(tile.first + row / context.group) * shape.heads + first_head + row % context.group];
  }
}

/// Probabilities and score gradients of one tile against one panel, then whichever of dq and dk, dv is wanted.
void backward_panel(const BackwardScratch& scratch, const Context& context, const Packed& packed, int64_t kv_head,
                    const QueryTile& tile, const KeyPanel& panel, int64_t width, bool want_query, bool want_keys) {
  const int64_t rows = tile.count * context.group;
  const int64_t dim = context.dim;
  const int64_t at = context.panel_at(kv_head, panel);
  block_product(scratch.probabilities, kPanelKeys, scratch.queries, dim, 1, packed.keys_transposed + at, panel.width, rows, width, dim,
                false);
  block_product(scratch.gradients, kPanelKeys, scratch.output_gradient, dim, 1, packed.values_transposed + at, panel.width, rows, width,
                dim, false);
  for (int64_t row = 0; row < rows; row++) {
    float* p = scratch.probabilities + row * kPanelKeys;
    float* ds = scratch.gradients + row * kPanelKeys;
    hide_unseen(p, visible_keys(panel, tile, row / context.group), width);
    const float log_sum = scratch.log_sums[row], dot = scratch.dots[row];
    for (int64_t key = 0; key < width; key += kLanes) {
      const Vec probability = exponential(load(p + key) - log_sum);
      store(p + key, probability);
      store(ds + key, probability * (load(ds + key) - dot));
    }
  }
  if (want_query)
    block_product(scratch.query_gradient, dim, scratch.gradients, kPanelKeys, 1, packed.keys + at, dim, rows, dim, width, true);
  if (want_keys) {
    block_product(packed.key_gradient + at, dim, scratch.gradients, 1, kPanelKeys, scratch.queries, dim, width, dim, rows, true);
    block_product(packed.value_gradient + at, dim, scratch.probabilities, 1, kPanelKeys, scratch.output_gradient, dim, width, dim, rows,
                  true);
  }
}

struct BackwardInputs {
  float* dqkv;
  const float* dout;
  const float* out;
  const float* log_sums;
  const float* qkv;
};

void backward_query_tile(const BackwardInputs& in, const BackwardScratch& scratch, const Context& context, const Packed& packed,
                         int64_t kv_head, const QueryTile& tile, bool want_keys) {
  load_tile(scratch, in.qkv, in.out, in.dout, in.log_sums, context, kv_head, tile);
  std::memset(scratch.query_gradient, 0, static_cast<size_t>(tile.count * context.group * context.dim) * sizeof(float));
  visit_panels(context.plan, tile, scratch.path, [&](const KeyPanel& panel, int64_t width) {
    backward_panel(scratch, context, packed, kv_head, tile, panel, width, true, want_keys);
  });
  scatter_tile(in.dqkv + kv_head * context.group * context.shape.head_dim, scratch.query_gradient, context.stride, tile, context,
               context.shape.scale);
}

void backward_key_panel(const BackwardInputs& in, const BackwardScratch& scratch, const Context& context, const Packed& packed,
                        int64_t kv_head, int64_t index) {
  const KeyPanel& panel = context.plan.panels[index];
  const AttentionNode& owner = context.plan.nodes[panel.node];
  const int32_t tree = context.plan.tree_of_panel[index];
  for (int32_t t = context.plan.tree_tiles[tree]; t < context.plan.tree_tiles[tree + 1]; t++) {
    const QueryTile& tile = context.plan.tiles[t];
    const int32_t enter = context.plan.nodes[tile.node].enter;
    if (panel.full ? enter < owner.enter || enter >= owner.leave : tile.node != panel.node) continue;
    const int64_t width = visible_width(panel, tile);
    if (width == 0) continue;
    load_tile(scratch, in.qkv, in.out, in.dout, in.log_sums, context, kv_head, tile);
    backward_panel(scratch, context, packed, kv_head, tile, panel, width, false, true);
  }
}

/// A token's key and value gradient: the sum over the panels that hold it, in their order.
void write_key_gradients(float* dqkv, const Context& context, const Packed& packed, int threads) {
  const AttentionShape& shape = context.shape;
  const AttentionPlan& plan = context.plan;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t token = 0; token < plan.tokens; token++) {
    for (int64_t head = 0; head < shape.kv_heads; head++) {
      float* key = dqkv + token * context.stride + (shape.heads + head) * shape.head_dim;
      float* value = key + shape.kv_heads * shape.head_dim;
      for (int32_t copy = plan.token_copies[token]; copy < plan.token_copies[token + 1]; copy++) {
        const int64_t at = head * context.head_floats + plan.copies[copy] * context.dim;
        const bool add = copy > plan.token_copies[token];
        for (int64_t i = 0; i < shape.head_dim; i++) {
          key[i] = packed.key_gradient[at + i] + (add ? key[i] : 0.0f);
          value[i] = packed.value_gradient[at + i] + (add ? value[i] : 0.0f);
        }
      }
    }
  }
}

}  // namespace

void attention_backward(float* dqkv, const float* dout, const float* out, const float* log_sums, const float* qkv,
                        const AttentionShape& shape, const AttentionPlan& plan, float* workspace, int threads) {
  const Context context(shape, plan);
  Carver carver{workspace};
  const int64_t all = shape.kv_heads * context.head_floats;
  Packed packed{};
  packed.keys_transposed = carver.take(all);
  packed.keys = carver.take(all);
  packed.values_transposed = carver.take(all);
  packed.key_gradient = carver.take(all);
  packed.value_gradient = carver.take(all);
  pack(context, packed, qkv, true, threads);
  const int64_t rows = shape.tile_rows();
  const int64_t own = attention_backward_part(shape, plan.tokens);
  float* const private_parts = carver.at;
  const BackwardInputs in{dqkv, dout, out, log_sums, qkv};
  // A tree and head per task does the least work; with too few of them, queries and keys are walked separately so that every
  // thread has something to do. Both add every element's terms in the same order.
  const bool together = plan.trees * shape.kv_heads >= 2 * threads;
#pragma omp parallel num_threads(threads)
  {
    Carver mine{private_parts + omp_get_thread_num() * own};
    BackwardScratch scratch{};
    scratch.path = reinterpret_cast<int32_t*>(mine.take(plan.tokens));
    scratch.queries = mine.take(rows * context.dim);
    scratch.output_gradient = mine.take(rows * context.dim);
    scratch.query_gradient = mine.take(rows * context.dim);
    scratch.probabilities = mine.take(rows * kPanelKeys);
    scratch.gradients = mine.take(rows * kPanelKeys);
    scratch.log_sums = mine.take(rows);
    scratch.dots = mine.take(rows);
    if (together) {
      const int64_t tasks = plan.trees * shape.kv_heads;
#pragma omp for schedule(dynamic)
      for (int64_t task = 0; task < tasks; task++) {
        const int64_t tree = task / shape.kv_heads;
        for (int32_t t = plan.tree_tiles[tree]; t < plan.tree_tiles[tree + 1]; t++)
          backward_query_tile(in, scratch, context, packed, task % shape.kv_heads, plan.tiles[t], true);
      }
    } else {
      const int64_t tile_tasks = plan.tile_count * shape.kv_heads;
      const int64_t panel_tasks = plan.panel_count * shape.kv_heads;
#pragma omp for schedule(dynamic)
      for (int64_t task = 0; task < tile_tasks + panel_tasks; task++) {
        if (task < tile_tasks)
          backward_query_tile(in, scratch, context, packed, task % shape.kv_heads, plan.tiles[task / shape.kv_heads], false);
        else
          backward_key_panel(in, scratch, context, packed, (task - tile_tasks) % shape.kv_heads, (task - tile_tasks) / shape.kv_heads);
      }
    }
  }
  write_key_gradients(dqkv, context, packed, threads);
}

}  // namespace rollscope::ROLLSCOPE_ISA
