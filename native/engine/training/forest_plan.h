// One micro-batch as the trainer sees it: a checked forest, cut into key panels and query tiles for attention, and the list
// of states that must predict something. Nothing here knows a weight.
#pragma once

#include <cstdint>
#include <vector>

#include "attention.h"
#include "model_config.h"

namespace rollscope {

struct BatchNodeRange {
  int32_t start;
  int32_t end;
  int32_t parent;  // −1: root
};

/// As PackedBatch of the TypeScript contract.
struct Batch {
  std::vector<int32_t> tokens;       // [n]
  std::vector<int32_t> positions;    // [n]
  std::vector<BatchNodeRange> nodes;
  std::vector<float> temperature;    // [n]; 0 is read as 1
  std::vector<uint8_t> wanted;       // [n]
  std::vector<int16_t> routing;      // empty, or forced experts [layers][n][k], −1 = free

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
};

/// A row of logits: the state of one token at one temperature. Children of a node share it when they ask at the same temperature.
struct HeadRow {
  int32_t state;  // index into ForestPlan::states()
  float inverse_temperature;
};

/// A token whose prediction is wanted.
struct WantedToken {
  int32_t token;
  int32_t row;    // index into ForestPlan::rows()
  int32_t state;  // index into ForestPlan::states()
};

class ForestPlan {
 public:
  /// Throws ENGINE_REQUEST_INVALID with the first thing wrong.
  ForestPlan(const Batch& batch, const ModelConfig& config);
  ForestPlan(const ForestPlan&) = delete;
  ForestPlan& operator=(const ForestPlan&) = delete;

  const AttentionPlan& attention() const { return attention_; }
  const AttentionShape& shape() const { return shape_; }
  /// Token indices of the states that predict a wanted token, ascending, each once.
  const std::vector<int32_t>& states() const { return states_; }
  const std::vector<HeadRow>& rows() const { return rows_; }
  /// Ordered by row.
  const std::vector<WantedToken>& wanted() const { return wanted_; }
  /// Every row is a state at temperature 1: hidden states can be used as they are.
  bool rows_are_states() const { return rows_are_states_; }
  int32_t largest_position() const { return largest_position_; }

 private:
  void check(const Batch& batch, const ModelConfig& config);
  void plan_attention(const Batch& batch);
  /// Cuts node `index`, whose first token has `place` tokens before it on its path, into panels.
  void plan_panels(const Batch& batch, int32_t index, int32_t place);
  void plan_copies(int64_t tokens);
  void plan_head(const Batch& batch);

  AttentionShape shape_{};
  AttentionPlan attention_{};
  std::vector<AttentionNode> nodes_;
  std::vector<KeyPanel> panels_;
  std::vector<TokenRun> runs_;
  std::vector<int64_t> copies_;
  std::vector<int32_t> token_copies_;
  std::vector<QueryTile> tiles_;
  std::vector<int32_t> tree_tiles_;
  std::vector<int32_t> tree_of_panel_;
  std::vector<int32_t> states_;
  std::vector<HeadRow> rows_;
  std::vector<WantedToken> wanted_;
  bool rows_are_states_ = true;
  int32_t largest_position_ = 0;
};

/// Shape and scale of a model's attention.
AttentionShape attention_shape(const ModelConfig& config);

}  // namespace rollscope
