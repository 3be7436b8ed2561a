// Flash-style attention over a forest, forward and backward, for one instruction set. Keys and values are packed once a call;
// then query tiles run in parallel, each visiting its node's panels and its ancestors' in one fixed order.
#include "attention_kernels.h"

#include <omp.h>

#include <cmath>

#include "block_product.h"

namespace rollscope::ROLLSCOPE_ISA {

namespace {

constexpr float kMinusInfinity = -__builtin_inff();

/// Packed copies of one call. All are [kv_head][padded key] with padded_dim floats a key, zero where padded; the transposed
/// ones hold [padded_dim][width] for each panel.
struct Packed {
  float* keys_transposed;
  float* values;
  float* keys;               // backward only, as all that follow
  float* values_transposed;
  float* key_gradient;
  float* value_gradient;
};

struct Context {
  const AttentionShape& shape;
  const AttentionPlan& plan;
  int64_t group;
  int64_t dim;     // padded_dim
  int64_t stride;  // floats in a row of fused q, k, v
  int64_t head_floats;  // padded_keys · dim

  Context(const AttentionShape& s, const AttentionPlan& p)
      : shape(s), plan(p), group(s.group()), dim(s.padded_dim()), stride(s.width()), head_floats(p.padded_keys * s.padded_dim()) {}

  int64_t panel_at(int64_t kv_head, const KeyPanel& panel) const { return kv_head * head_floats + panel.position * dim; }
};

/// Rows [width][dim] of the panel's keys from a matrix with a row for each token, zero beyond its keys and `columns`.
void pack_rows(float* to, const float* from, int64_t columns, const Context& context, const KeyPanel& panel) {
  for (int32_t index = panel.first_run; index < panel.first_run + panel.runs; index++) {
    const TokenRun& run = context.plan.runs[index];
    for (int64_t token = run.first; token < run.first + run.count; token++, to += context.dim) {
      std::memcpy(to, from + token * context.stride, static_cast<size_t>(columns) * sizeof(float));
      for (int64_t i = columns; i < context.dim; i++) to[i] = 0.0f;
    }
  }
  std::memset(to, 0, static_cast<size_t>((panel.width - panel.count) * context.dim) * sizeof(float));
}

/// The same as [dim][width].
void pack_transposed(float* to, const float* from, int64_t columns, const Context& context, const KeyPanel& panel) {
  for (int64_t i = 0; i < context.dim; i++) {
    float* target = to + i * panel.width;
    if (i >= columns) {
      std::memset(target, 0, static_cast<size_t>(panel.width) * sizeof(float));
      continue;
    }
    for (int32_t index = panel.first_run; index < panel.first_run + panel.runs; index++) {
      const TokenRun& run = context.plan.runs[index];
      for (int64_t token = run.first; token < run.first + run.count; token++) *target++ = from[token * context.stride + i];
    }
    for (int64_t key = panel.count; key < panel.width; key++) *target++ = 0.0f;
  }
}

void pack(const Context& context, const Packed& packed, const float* qkv, bool backward, int threads) {
  const AttentionShape& shape = context.shape;
  const int64_t tasks = shape.kv_heads * context.plan.panel_count;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t task = 0; task < tasks; task++) {
    const int64_t head = task / context.plan.panel_count;
    const KeyPanel& panel = context.plan.panels[task % context.plan.panel_count];
    const float* key = qkv + (shape.heads + head) * shape.head_dim;
    const float* value = key + shape.kv_heads * shape.head_dim;
    const int64_t at = context.panel_at(head, panel);
    pack_transposed(packed.keys_transposed + at, key, shape.head_dim, context, panel);
    if (!backward) {
      pack_rows(packed.values + at, value, shape.head_dim, context, panel);
      continue;
    }
    pack_rows(packed.keys + at, key, shape.head_dim, context, panel);
    pack_transposed(packed.values_transposed + at, value, shape.head_dim, context, panel);
    std::memset(packed.key_gradient + at, 0, static_cast<size_t>(panel.width * context.dim) * sizeof(float));
    std::memset(packed.value_gradient + at, 0, static_cast<size_t>(panel.width * context.dim) * sizeof(float));
  }
}

/// One group's query heads of a tile as rows [token][head of group][dim], times `factor`.
void gather_tile(float* rows, const float* from, int64_t stride, const QueryTile& tile, const Context& context, float factor) {
  const int64_t head_dim = context.shape.head_dim;
  for (int64_t token = 0; token < tile.count; token++) {
    const float* source = from + (tile.first + token) * stride;
    for (int64_t head = 0; head < context.group; head++) {
      float* target = rows + (token * context.group + head) * context.dim;
      for (int64_t i = 0; i < head_dim; i++) target[i] = source[head * head_dim + i] * factor;
      for (int64_t i = head_dim; i < context.dim; i++) target[i] = 0.0f;
    }
  }
}

void scatter_tile(float* to, const float* rows, int64_t stride, const QueryTile& tile, const Context& context, float factor) {
  const int64_t head_dim = context.shape.head_dim;
  for (int64_t token = 0; token < tile.count; token++) {
    float* target = to + (tile.first + token) * stride;
    for (int64_t head = 0; head < context.group; head++) {
      const float* source = rows + (token * context.group + head) * context.dim;
      for (int64_t i = 0; i < head_dim; i++) target[head * head_dim + i] = source[i] * factor;
    }
  }
}

/// How many keys of a panel a row may see: all of an ancestor's, those up to its own token in its own node.
inline int64_t visible_keys(const KeyPanel& panel, const QueryTile& tile, int64_t token) {
  if (panel.node != tile.node) return panel.count;
  const int64_t seen = panel.repeated + tile.first + token - panel.first + 1;
  return seen < 0 ? 0 : seen < panel.count ? seen : panel.count;
}

/// Columns of a panel that some row of the tile sees, padded.
inline int64_t visible_width(const KeyPanel& panel, const QueryTile& tile) {
  const int64_t most = visible_keys(panel, tile, tile.count - 1);
  return (most + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
}

/// Calls visit(panel, visible width) for the panels that a tile sees, in the order of the path. `path` has room for all nodes of a path.
template <typename Visit>
inline void visit_panels(const AttentionPlan& plan, const QueryTile& tile, int32_t* path, const Visit& visit) {
  int32_t above = 0;
  for (int32_t node = plan.nodes[tile.node].parent; node >= 0; node = plan.nodes[node].parent) path[above++] = node;
  while (above > 0) {
    const AttentionNode& keys = plan.nodes[path[--above]];
    for (int32_t index = keys.first_panel; index < keys.first_panel + keys.panels; index++)
      if (plan.panels[index].full) visit(plan.panels[index], plan.panels[index].width);
  }
  const AttentionNode& own = plan.nodes[tile.node];
  for (int32_t index = own.first_panel; index < own.first_panel + own.panels; index++) {
    const int64_t width = visible_width(plan.panels[index], tile);
    if (width == 0) return;
    visit(plan.panels[index], width);
  }
}

inline void hide_unseen(float* scores, int64_t seen, int64_t width) {
  for (int64_t key = seen; key < width; key++) scores[key] = kMinusInfinity;
}

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

/// Hands out consecutive pieces of a workspace, each on a cache line of its own.
struct Carver {
  float* at;
  float* take(int64_t size) {
    float* piece = at;
    at += (size + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
    return piece;
  }
};

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
