// Attention over a forest, exact and without ever storing the scores of a whole row. A token attends to all keys of its
// ancestor nodes and to those of its own node up to itself. Keys of a node are cut into panels from the node's own start and
// visited in one fixed order, so the result for a path depends on its nodes only, never on what else is in the batch.
#pragma once

#include <cstdint>

namespace rollscope {

inline constexpr int64_t kPanelKeys = 64;    // keys in a panel
inline constexpr int64_t kPanelAlignment = 16;  // panels and head dimensions are padded to a multiple of this
inline constexpr int64_t kTileRows = 96;     // query rows (tokens × heads of one group) in a tile

struct AttentionShape {
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;
  float scale;  // 1 / √head_dim

  int64_t group() const { return heads / kv_heads; }
  int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }
  int64_t padded_dim() const { return (head_dim + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment; }
  int64_t tile_tokens() const { return group() >= kTileRows ? 1 : kTileRows / group(); }
  int64_t tile_rows() const { return tile_tokens() * group(); }
};

/// Up to 64 consecutive keys of one node.
struct KeyPanel {
  int32_t node;
  int32_t first;     // token index of the first key
  int32_t count;     // keys
  int32_t width;     // count padded to kPanelAlignment
  int64_t position;  // padded keys before this panel: times padded_dim = offset in packed storage
};

/// Consecutive query tokens of one node.
struct QueryTile {
  int32_t node;
  int32_t first;
  int32_t count;
};

struct AttentionNode {
  int32_t start, end;
  int32_t parent;  // −1: root
  int32_t first_panel, panels;
  int32_t enter, leave;  // depth-first interval: b is below a (or a itself) if a.enter <= b.enter < a.leave
};

/// Built by ForestPlan, which owns the arrays.
struct AttentionPlan {
  const AttentionNode* nodes;
  const KeyPanel* panels;
  const QueryTile* tiles;         // grouped by tree, ascending
  const int32_t* tree_tiles;      // [trees + 1] first tile of each tree
  const int32_t* tree_of_panel;   // [panel_count]
  int64_t tokens;
  int64_t panel_count;
  int64_t tile_count;
  int64_t trees;
  int64_t padded_keys;  // Σ width of all panels
};

/// Floats of workspace that attention needs.
int64_t attention_forward_workspace(const AttentionShape& shape, int64_t padded_keys, int threads);
int64_t attention_backward_workspace(const AttentionShape& shape, int64_t padded_keys, int threads);

}  // namespace rollscope
