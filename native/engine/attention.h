// Attention over a forest, exact and without ever storing the scores of a whole row. A token attends to all keys of its
// ancestor nodes and to those of its own node up to itself. Keys are cut into panels at multiples of kPanelKeys of their place
// on the path and visited in that order, so the result for a path has the same bits however it is cut into nodes and whatever
// else is in the batch. A panel that spans several nodes belongs to the deepest one and repeats the keys of its ancestors.
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

/// Up to 64 keys that follow each other on a path: `repeated` ones of the node's ancestors, then the node's own.
struct KeyPanel {
  int32_t node;
  int32_t first;         // token index of the node's first own key in the panel
  int32_t repeated;      // keys of ancestors before it
  int32_t count;         // keys, the repeated ones included
  int32_t width;         // count padded to kPanelAlignment
  int32_t first_run, runs;  // in AttentionPlan::runs: where its keys stand in the batch
  bool full;             // no later token of the path belongs to it: descendants read this panel; of others they have their own copy
  int64_t position;      // padded keys before this panel: times padded_dim = offset in packed storage
};

/// Consecutive tokens of the batch.
struct TokenRun {
  int32_t first;
  int32_t count;
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
  const TokenRun* runs;
  const int64_t* copies;          // padded keys that hold a token: its own node's first, then descendants' ascending
  const int32_t* token_copies;    // [tokens + 1] first of each token's copies
  const QueryTile* tiles;         // grouped by tree, ascending
  const int32_t* tree_tiles;      // [trees + 1] first tile of each tree
  const int32_t* tree_of_panel;   // [panel_count]
  int64_t tokens;
  int64_t panel_count;
  int64_t tile_count;
  int64_t trees;
  int64_t padded_keys;  // Σ width of all panels
};

/// Floats of workspace that attention needs: a part for each thread, and for all of them with the packed keys and values.
int64_t attention_forward_part(const AttentionShape& shape, int64_t tokens);
int64_t attention_backward_part(const AttentionShape& shape, int64_t tokens);
int64_t attention_forward_workspace(const AttentionShape& shape, int64_t tokens, int64_t padded_keys, int threads);
int64_t attention_backward_workspace(const AttentionShape& shape, int64_t tokens, int64_t padded_keys, int threads);

}  // namespace rollscope
