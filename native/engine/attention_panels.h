// What the forward and the backward attention kernels share: packed keys and values, tiles of query rows, and which panels a
// tile sees in which order. For one instruction set; holds no arithmetic of its own.
#pragma once

#include <cstdint>
#include <cstring>

#include "attention.h"
#include "simd.h"

namespace rollscope::ROLLSCOPE_ISA {

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
inline void pack_rows(float* to, const float* from, int64_t columns, const Context& context, const KeyPanel& panel) {
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
inline void pack_transposed(float* to, const float* from, int64_t columns, const Context& context, const KeyPanel& panel) {
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

inline void pack(const Context& context, const Packed& packed, const float* qkv, bool backward, int threads) {
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
inline void gather_tile(float* rows, const float* from, int64_t stride, const QueryTile& tile, const Context& context, float factor) {
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

inline void scatter_tile(float* to, const float* rows, int64_t stride, const QueryTile& tile, const Context& context, float factor) {
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

/// Hands out consecutive pieces of a workspace, each on a cache line of its own.
struct Carver {
  float* at;
  float* take(int64_t size) {
    float* piece = at;
    at += (size + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
    return piece;
  }
};

}  // namespace rollscope::ROLLSCOPE_ISA
