// Checks and cuts a micro-batch; see forest_plan.h.
#include "training/forest_plan.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine_error.h"

namespace rollscope {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw EngineError("ENGINE_REQUEST_INVALID", "The batch is invalid: " + what + ".", "This is a mistake in the code that packed it; report it.");
}

int64_t padded(int64_t size) { return (size + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment; }

}  // namespace

AttentionShape attention_shape(const ModelConfig& config) {
  return {config.heads, config.kv_heads, config.head_dim, static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)))};
}

ForestPlan::ForestPlan(const Batch& batch, const ModelConfig& config) : shape_(attention_shape(config)) {
  check(batch, config);
  plan_attention(batch);
  plan_head(batch);
}

void ForestPlan::check(const Batch& batch, const ModelConfig& config) {
  const size_t size = batch.tokens.size();
  if (size == 0) refuse("it has no tokens");
  if (batch.positions.size() != size || batch.temperature.size() != size || batch.wanted.size() != size)
    refuse("positions, temperature and wanted must have one entry for each of its " + std::to_string(size) + " tokens");
  int32_t covered = 0;
  for (size_t index = 0; index < batch.nodes.size(); index++) {
    const BatchNodeRange& node = batch.nodes[index];
    if (node.start != covered || node.end <= node.start) refuse("node " + std::to_string(index) + " does not begin where the one before it ends");
    if (node.parent < -1 || node.parent >= static_cast<int32_t>(index)) refuse("node " + std::to_string(index) + " comes before its parent");
    covered = node.end;
  }
  if (covered != static_cast<int32_t>(size)) refuse("its nodes cover " + std::to_string(covered) + " of " + std::to_string(size) + " tokens");
  for (size_t i = 0; i < size; i++) {
    if (batch.tokens[i] < 0 || batch.tokens[i] >= config.vocabulary)
      refuse("token " + std::to_string(i) + " has the id " + std::to_string(batch.tokens[i]) + ", outside the vocabulary");
    if (batch.positions[i] < 0 || batch.positions[i] >= config.max_positions)
      refuse("token " + std::to_string(i) + " has the position " + std::to_string(batch.positions[i]) + "; the model has " +
             std::to_string(config.max_positions));
    if (!(batch.temperature[i] >= 0.0f) || std::isinf(batch.temperature[i]))
      refuse("token " + std::to_string(i) + " has no usable temperature");
    largest_position_ = std::max(largest_position_, batch.positions[i]);
  }
  const size_t routed = static_cast<size_t>(config.layers) * size * static_cast<size_t>(config.mixture.experts_per_token);
  if (!batch.routing.empty()) {
    if (config.mixture.experts == 0 || batch.routing.size() != routed) refuse("its routing does not fit the model's experts");
    for (const int16_t expert : batch.routing)
      if (expert < -1 || expert >= config.mixture.experts) refuse("its routing names the expert " + std::to_string(expert));
  }
}

void ForestPlan::plan_attention(const Batch& batch) {
  const size_t count = batch.nodes.size();
  std::vector<int32_t> tree(count), subtree(count, 1);
  std::vector<std::vector<int32_t>> children(count);
  int32_t trees = 0;
  for (size_t index = 0; index < count; index++) {
    const BatchNodeRange& node = batch.nodes[index];
    tree[index] = node.parent < 0 ? trees++ : tree[static_cast<size_t>(node.parent)];
    if (node.parent >= 0) children[static_cast<size_t>(node.parent)].push_back(static_cast<int32_t>(index));
  }
  for (size_t index = count; index-- > 0;) {
    const int32_t parent = batch.nodes[index].parent;
    if (parent >= 0) subtree[static_cast<size_t>(parent)] += subtree[index];
  }
  // Depth-first numbers without recursion: a child's interval starts behind its earlier siblings' ones.
  std::vector<int32_t> enter(count);
  int32_t next_root = 0;
  for (size_t index = 0; index < count; index++) {
    if (batch.nodes[index].parent < 0) {
      enter[index] = next_root;
      next_root += subtree[index];
    }
    int32_t next = enter[index] + 1;
    for (const int32_t child : children[index]) {
      enter[static_cast<size_t>(child)] = next;
      next += subtree[static_cast<size_t>(child)];
    }
  }

  std::vector<int32_t> place(count, 0);
  std::vector<std::vector<QueryTile>> tiles(static_cast<size_t>(trees));
  const auto tile_tokens = static_cast<int32_t>(shape_.tile_tokens());
  for (size_t index = 0; index < count; index++) {
    const BatchNodeRange& range = batch.nodes[index];
    const auto node = static_cast<int32_t>(index);
    if (range.parent >= 0) {
      const auto parent = static_cast<size_t>(range.parent);
      place[index] = place[parent] + batch.nodes[parent].end - batch.nodes[parent].start;
    }
    const auto first_panel = static_cast<int32_t>(panels_.size());
    plan_panels(batch, node, place[index]);
    tree_of_panel_.resize(panels_.size(), tree[index]);
    for (int32_t first = range.start; first < range.end; first += tile_tokens)
      tiles[static_cast<size_t>(tree[index])].push_back({node, first, std::min(tile_tokens, range.end - first)});
    nodes_.push_back({range.start, range.end, range.parent, first_panel, static_cast<int32_t>(panels_.size()) - first_panel, enter[index],
                      enter[index] + subtree[index]});
  }
  for (const std::vector<QueryTile>& own : tiles) {
    tree_tiles_.push_back(static_cast<int32_t>(tiles_.size()));
    tiles_.insert(tiles_.end(), own.begin(), own.end());
  }
  tree_tiles_.push_back(static_cast<int32_t>(tiles_.size()));
  plan_copies(batch.size());
  attention_ = {nodes_.data(),
                panels_.data(),
                runs_.data(),
                copies_.data(),
                token_copies_.data(),
                tiles_.data(),
                tree_tiles_.data(),
                tree_of_panel_.data(),
                batch.size(),
                static_cast<int64_t>(panels_.size()),
                static_cast<int64_t>(tiles_.size()),
                trees,
                panels_.back().position + panels_.back().width};
}

void ForestPlan::plan_panels(const Batch& batch, int32_t index, int32_t place) {
  constexpr auto kKeys = static_cast<int32_t>(kPanelKeys);
  const BatchNodeRange& range = batch.nodes[static_cast<size_t>(index)];
  int32_t repeated = place % kKeys;
  for (int32_t first = range.start; first < range.end;) {
    const int32_t own = std::min(kKeys - repeated, range.end - first);
    const auto first_run = static_cast<int32_t>(runs_.size());
    int32_t missing = repeated;
    for (int32_t above = range.parent; missing > 0; above = batch.nodes[static_cast<size_t>(above)].parent) {
      const BatchNodeRange& ancestor = batch.nodes[static_cast<size_t>(above)];
      const int32_t taken = std::min(missing, ancestor.end - ancestor.start);
      runs_.push_back({ancestor.end - taken, taken});
      missing -= taken;
    }
    std::reverse(runs_.begin() + first_run, runs_.end());
    runs_.push_back({first, own});
    const int64_t position = panels_.empty() ? 0 : panels_.back().position + panels_.back().width;
    const int32_t keys = repeated + own;
    panels_.push_back({index, first, repeated, keys, static_cast<int32_t>(padded(keys)), first_run,
                       static_cast<int32_t>(runs_.size()) - first_run, keys == kKeys, position});
    first += own;
    repeated = 0;
  }
}

void ForestPlan::plan_copies(int64_t tokens) {
  token_copies_.assign(static_cast<size_t>(tokens) + 1, 0);
  for (const TokenRun& run : runs_)
    for (int32_t token = run.first; token < run.first + run.count; token++) token_copies_[static_cast<size_t>(token) + 1]++;
  for (size_t token = 0; token < static_cast<size_t>(tokens); token++) token_copies_[token + 1] += token_copies_[token];
  copies_.resize(static_cast<size_t>(token_copies_.back()));
  std::vector<int32_t> next(token_copies_.begin(), token_copies_.end() - 1);
  for (const KeyPanel& panel : panels_) {
    int64_t key = panel.position;
    for (int32_t run = panel.first_run; run < panel.first_run + panel.runs; run++) {
      const TokenRun& tokens_of = runs_[static_cast<size_t>(run)];
      for (int32_t i = 0; i < tokens_of.count; i++)
        copies_[static_cast<size_t>(next[static_cast<size_t>(tokens_of.first + i)]++)] = key++;
    }
  }
}

void ForestPlan::plan_head(const Batch& batch) {
  struct Query {
    int32_t state;  // token index
    int32_t token;
    float temperature;
  };
  std::vector<Query> queries;
  for (const BatchNodeRange& node : batch.nodes) {
    for (int32_t token = node.start; token < node.end; token++) {
      if (batch.wanted[static_cast<size_t>(token)] == 0) continue;
      const int32_t state = token > node.start ? token - 1 : node.parent >= 0 ? batch.nodes[static_cast<size_t>(node.parent)].end - 1 : -1;
      const float temperature = batch.temperature[static_cast<size_t>(token)];
      if (state >= 0) queries.push_back({state, token, temperature == 0.0f ? 1.0f : temperature});
    }
  }
  std::sort(queries.begin(), queries.end(), [](const Query& a, const Query& b) {
    if (a.state != b.state) return a.state < b.state;
    if (a.temperature != b.temperature) return a.temperature < b.temperature;
    return a.token < b.token;
  });
  float temperature = 0.0f;
  for (const Query& query : queries) {
    const bool new_state = states_.empty() || states_.back() != query.state;
    if (new_state) states_.push_back(query.state);
    if (new_state || temperature != query.temperature) {
      if (!new_state || query.temperature != 1.0f) rows_are_states_ = false;
      rows_.push_back({static_cast<int32_t>(states_.size()) - 1, 1.0f / query.temperature});
      temperature = query.temperature;
    }
    wanted_.push_back({query.token, static_cast<int32_t>(rows_.size()) - 1, static_cast<int32_t>(states_.size()) - 1});
  }
}

}  // namespace rollscope
